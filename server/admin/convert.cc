// SPDX-License-Identifier: Apache-2.0
#include "server/admin/convert.h"

#include <algorithm>
#include <utility>

namespace hawser::server::admin {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr size_t kMaxName = 256;

/// Length of the UTF-8 sequence that begins here; 0: none does.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                        : (first & 0xf0) == 0xe0         ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Too long for what it says, a surrogate, beyond the last character.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

pb::SessionState ToMessage(SessionPhase phase) {
  switch (phase) {
    case SessionPhase::kStarting:
      return pb::SESSION_STATE_STARTING;
    case SessionPhase::kRunning:
      return pb::SESSION_STATE_RUNNING;
    case SessionPhase::kEnding:
      return pb::SESSION_STATE_ENDING;
  }
  return pb::SESSION_STATE_UNSPECIFIED;
}

pb::TraceKind ToMessage(TraceKind kind) {
  switch (kind) {
    case TraceKind::kSessionBegin:
      return pb::TRACE_KIND_SESSION_BEGIN;
    case TraceKind::kSessionEnd:
      return pb::TRACE_KIND_SESSION_END;
    case TraceKind::kKernel:
      return pb::TRACE_KIND_KERNEL;
    case TraceKind::kCommand:
      return pb::TRACE_KIND_COMMAND;
    case TraceKind::kGrant:
      return pb::TRACE_KIND_GRANT;
    case TraceKind::kCopy:
      return pb::TRACE_KIND_COPY;
  }
  return pb::TRACE_KIND_UNSPECIFIED;
}

/// Tenant and Session name the fields alike.
template <typename Message>
void SetDeviceTime(const std::optional<DeviceTime>& time, Message* message) {
  if (!time) return;
  message->set_gpu_ns(time->used_ns);
  message->set_pending_ns(time->pending_ns);
  message->set_inflight_ns(time->inflight_ns);
}

template <typename Message>
void SetDeviceTimes(const DeviceTimes& times, Message* message) {
  for (const auto& [device, time] : times) {
    pb::DeviceTime* added = message->add_device_times();
    added->set_device(CleanText(device));
    added->set_gpu_ns(time.used_ns);
    added->set_pending_ns(time.pending_ns);
    added->set_inflight_ns(time.inflight_ns);
  }
}

}  // namespace

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const bool control = length == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f);
    // U+0080 to U+009F move cursors too.
    const bool c1 = length == 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0 || control || c1) {
      clean += '?';
    } else {
      clean.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

void ToMessage(const PolicyState& state, pb::Policy* message) {
  message->set_name(CleanText(state.name));
  for (const std::string& name : state.available) message->add_available(CleanText(name));
  message->set_ejections(state.ejections);
  if (!state.last_ejection) return;
  pb::Ejection* last = message->mutable_last_ejection();
  last->set_policy(CleanText(state.last_ejection->policy));
  last->set_reason(CleanText(state.last_ejection->reason));
  last->set_unix_ns(state.last_ejection->unix_ns);
  last->set_dump(CleanText(state.last_ejection->dump));
}

void ToMessage(const ServerState& state, pb::ServerStatus* message) {
  message->set_version(state.version);
  message->set_pid(state.pid);
  message->set_uptime_ns(state.uptime_ns);
  message->set_started_unix_ns(state.started_unix_ns);
  for (const ListenerState& listener : state.listeners) {
    pb::Listener* added = message->add_listeners();
    added->set_uri(CleanText(listener.uri));
    added->set_transport(listener.transport);
  }
  for (const DeviceState& device : state.devices) {
    pb::Device* added = message->add_devices();
    added->set_name(CleanText(device.name));
    added->set_api(device.api);
    added->set_memory_bytes(device.memory_bytes);
    added->set_sessions(device.sessions);
  }
  ToMessage(state.policy, message->mutable_policy());
  message->set_sessions(state.sessions);
  message->set_max_sessions(state.max_sessions);
  message->set_sessions_started(state.sessions_started);
  message->set_connections_pending(state.connections_pending);
}

void ToMessage(const TenantState& state, pb::Tenant* message) {
  message->set_name(CleanText(state.name));
  message->set_configured(state.configured);
  message->set_changed(state.changed);
  pb::TenantSettings* settings = message->mutable_settings();
  settings->set_weight(state.settings.share.weight);
  settings->set_priority(state.settings.share.priority);
  settings->set_min_share_ppm(state.settings.share.min_share_ppm);
  settings->set_max_share_ppm(state.settings.share.max_share_ppm);
  settings->set_slo_ns(state.settings.share.slo_ns);
  settings->set_max_sessions(state.settings.max_sessions);
  settings->set_session_device_memory_bytes(state.settings.session_device_memory);
  message->set_sessions(state.sessions);
  message->set_device_memory_bytes(state.device_memory);
  message->set_commands(state.commands);
  message->set_bytes_up(state.bytes_up);
  message->set_bytes_down(state.bytes_down);
  message->set_copied_in_bytes(state.copied_in);
  message->set_copied_out_bytes(state.copied_out);
  SetDeviceTime(state.device_time, message);
  SetDeviceTimes(state.device_times, message);
}

void ToMessage(const SessionState& state, pb::Session* message) {
  message->set_id(state.id);
  message->set_tenant(CleanText(state.tenant));
  message->set_program(CleanText(state.program));
  message->set_guest_pid(state.guest_pid);
  message->set_worker_pid(state.worker_pid);
  message->set_api(state.api);
  message->set_transport(state.transport);
  message->set_peer(CleanText(state.peer));
  message->set_started_unix_ns(state.started_unix_ns);
  message->set_age_ns(state.age_ns);
  message->set_state(ToMessage(state.phase));
  message->set_commands(state.commands);
  message->set_bytes_up(state.bytes_up);
  message->set_bytes_down(state.bytes_down);
  message->set_copied_in_bytes(state.copied_in);
  message->set_copied_out_bytes(state.copied_out);
  message->set_device_memory_bytes(state.device_memory);
  message->set_kernels(state.kernels);
  message->set_split_alarms(state.split_alarms);
  SetDeviceTime(state.device_time, message);
  SetDeviceTimes(state.device_times, message);
}

void ToMessage(const Snapshot& state, pb::Snapshot* message) {
  message->set_unix_ns(state.unix_ns);
  message->set_monotonic_ns(state.monotonic_ns);
  ToMessage(state.server, message->mutable_status());
  for (const TenantState& tenant : state.tenants) ToMessage(tenant, message->add_tenants());
  for (const SessionState& session : state.sessions) ToMessage(session, message->add_sessions());
  if (!state.system) return;
  pb::System* system = message->mutable_system();
  system->set_gap_ns(state.system->gap_ns);
  system->set_switches(state.system->switches);
  system->set_waited_ns(state.system->waited_ns);
}

void ToMessage(const TraceBatch& batch, pb::TraceBatch* message) {
  for (const TraceEvent& event : batch.events) {
    pb::TraceEvent* added = message->add_events();
    added->set_kind(ToMessage(event.kind));
    added->set_begin_ns(event.begin_ns);
    added->set_end_ns(event.end_ns);
    added->set_session(event.session);
    added->set_tenant(CleanText(event.tenant));
    added->set_name(CleanText(event.name));
    added->set_track(event.track);
    added->set_device(CleanText(event.device));
  }
  message->set_lost(batch.lost);
  message->set_unix_minus_monotonic_ns(batch.unix_minus_monotonic_ns);
}

Result<TenantChange> FromMessage(const pb::SetTenantRequest& message) {
  if (message.name().empty()) return Status(Code::kInvalid, "name: which tenant?");
  if (message.name().size() > kMaxName) {
    return Status(Code::kInvalid, "name has " + std::to_string(message.name().size()) + " bytes; at most " +
                                      std::to_string(kMaxName) + " are a tenant's name");
  }
  TenantChange change;
  change.reset = message.reset();
  if (message.has_weight()) change.weight = message.weight();
  if (message.has_priority()) change.priority = message.priority();
  if (message.has_min_share_ppm()) change.min_share_ppm = message.min_share_ppm();
  if (message.has_max_share_ppm()) change.max_share_ppm = message.max_share_ppm();
  if (message.has_slo_ns()) change.slo_ns = message.slo_ns();
  if (message.has_max_sessions()) change.max_sessions = message.max_sessions();
  if (message.has_session_device_memory_bytes()) change.session_device_memory = message.session_device_memory_bytes();
  if (change.empty()) return Status(Code::kInvalid, "nothing to change: give at least one field, or reset");
  return change;
}

}  // namespace hawser::server::admin
