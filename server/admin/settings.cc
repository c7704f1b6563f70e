// SPDX-License-Identifier: Apache-2.0
#include "server/admin/settings.h"

#include <string>

namespace hawser::server::admin {

using wire::Code;
using wire::Status;

Status Apply(const TenantChange& change, TenantSettings* settings) {
  constexpr uint32_t kMaxSessions = 1u << 24;
  TenantSettings changed = *settings;
  if (change.weight) changed.share.weight = *change.weight;
  if (change.priority) changed.share.priority = *change.priority;
  if (change.min_share_ppm) changed.share.min_share_ppm = *change.min_share_ppm;
  if (change.max_share_ppm) changed.share.max_share_ppm = *change.max_share_ppm;
  if (change.slo_ns) changed.share.slo_ns = *change.slo_ns;
  if (change.max_sessions) changed.max_sessions = *change.max_sessions;
  if (change.session_device_memory) changed.session_device_memory = *change.session_device_memory;
  if (Status status = changed.share.Check(); !status.ok()) return status;
  if (changed.max_sessions > kMaxSessions) {
    return Status(Code::kInvalid, "max_sessions must be at most " + std::to_string(kMaxSessions));
  }
  if (changed.session_device_memory > uint64_t{INT64_MAX}) {
    return Status(Code::kInvalid, "session_device_memory_bytes must be below 2^63");
  }
  *settings = changed;
  return {};
}

}  // namespace hawser::server::admin
