// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

namespace hawser::tools {

using wire::Code;
using wire::Result;
using wire::Status;

namespace {

constexpr uint64_t kMicrosecond = 1000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
const char* const kUnknown = "-";

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

/// Characters of valid UTF-8.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string Cut(std::string_view text, size_t columns) {
  if (columns == 0 || Width(text) <= columns) return std::string(text);
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && seen++ == columns) break;
  }
  return std::string(text.substr(0, end));
}

/// At least as in `text`, with two digits.
std::string TwoUnits(uint64_t large, char large_unit, uint64_t small, char small_unit) {
  char text[64];
  std::snprintf(text, sizeof(text), "%llu%c%02llu%c", static_cast<unsigned long long>(large), large_unit,
                static_cast<unsigned long long>(small), small_unit);
  return text;
}

/// Counts for each second.
std::string RateText(double rate) {
  if (rate >= 1e6) return Format("%.1fM", rate / 1e6);
  if (rate >= 1e4) return Format("%.0fk", rate / 1e3);
  if (rate >= 10 || rate == 0) return Format("%.0f", rate);
  return Format("%.1f", rate);
}

const char* StateText(pb::SessionState state) {
  switch (state) {
    case pb::SESSION_STATE_STARTING:
      return "starting";
    case pb::SESSION_STATE_RUNNING:
      return "running";
    case pb::SESSION_STATE_ENDING:
      return "ending";
    default:
      return "?";
  }
}

std::string LimitText(uint64_t bytes) { return bytes == 0 ? "device" : BytesText(bytes); }

template <typename Message>
std::string Queue(const Message& message) {
  return message.has_pending_ns() ? DurationText(message.pending_ns()) : kUnknown;
}
template <typename Message>
std::string InFlight(const Message& message) {
  return message.has_inflight_ns() ? DurationText(message.inflight_ns()) : kUnknown;
}

/// What happened between two snapshots to one tenant or session. Counters that went down (a server that was started
/// again) count from zero.
class Change {
 public:
  Change(const pb::Snapshot& now, const pb::Snapshot* before) {
    if (before != nullptr && now.monotonic_ns() > before->monotonic_ns()) {
      seconds_ = static_cast<double>(now.monotonic_ns() - before->monotonic_ns()) / 1e9;
    }
  }
  bool known() const { return seconds_ > 0; }
  static uint64_t Difference(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

  std::string Rate(uint64_t now, uint64_t before) const {
    return known() ? RateText(static_cast<double>(Difference(now, before)) / seconds_) : kUnknown;
  }
  std::string Bytes(uint64_t now, uint64_t before) const {
    return known() ? BytesText(static_cast<uint64_t>(static_cast<double>(Difference(now, before)) / seconds_))
                   : kUnknown;
  }
  /// Part of the time between the two.
  std::string Part(uint64_t now_ns, uint64_t before_ns) const {
    if (!known()) return kUnknown;
    return Format("%.1f%%", 100.0 * static_cast<double>(Difference(now_ns, before_ns)) / 1e9 / seconds_);
  }

 private:
  double seconds_ = 0;
};

template <typename Messages, typename Key>
auto ByKey(const Messages& messages, Key key) {
  std::map<decltype(key(messages[0])), const std::remove_cvref_t<decltype(messages[0])>*> found;
  for (const auto& one : messages) found[key(one)] = &one;
  return found;
}

std::string Heading(const pb::Snapshot& now, const std::string& where) {
  const pb::ServerStatus& status = now.status();
  std::string text = "hawser " + status.version() + " at " + where + "   up " + DurationText(status.uptime_ns()) +
                     "   policy " + status.policy().name() + "   sessions " + std::to_string(status.sessions()) + "/" +
                     std::to_string(status.max_sessions()) + " (" + std::to_string(status.sessions_started()) +
                     " since the start)\n";
  if (status.policy().has_last_ejection()) {
    const pb::Ejection& last = status.policy().last_ejection();
    const uint64_t ago = now.unix_ns() - std::min(now.unix_ns(), last.unix_ns());
    text += "policy " + last.policy() + " was ejected " + DurationText(ago) + " ago: " + last.reason() + "\n";
  }
  for (const pb::Device& device : status.devices()) {
    text += "device   " + device.name() + "   " + device.api() +
            (device.memory_bytes() != 0 ? "   " + BytesText(device.memory_bytes()) : "") + "   " +
            std::to_string(device.sessions()) + (device.sessions() == 1 ? " session\n" : " sessions\n");
  }
  return text;
}

std::string TopTenants(const pb::Snapshot& now, const pb::Snapshot* before, const Change& change) {
  const auto name = [](const pb::Tenant& tenant) { return tenant.name(); };
  const auto earlier = ByKey(before != nullptr ? before->tenants() : pb::Snapshot::default_instance().tenants(), name);
  uint64_t all_ns = 0;
  std::vector<std::pair<const pb::Tenant*, const pb::Tenant*>> pairs;
  for (const pb::Tenant& tenant : now.tenants()) {
    const auto at = earlier.find(tenant.name());
    const pb::Tenant* old = at != earlier.end() ? at->second : &pb::Tenant::default_instance();
    pairs.emplace_back(&tenant, old);
    all_ns += Change::Difference(tenant.gpu_ns(), old->gpu_ns());
  }
  Table table({"TENANT", "WEIGHT", "SHARE", "DEVICE", "QUEUE", "IN FLIGHT", "MEMORY", "SESSIONS", "CMD/s", "UP/s",
               "DOWN/s", "IN/s", "OUT/s"},
              {true});
  for (const auto& [tenant, old] : pairs) {
    std::string share = kUnknown;
    if (change.known() && tenant->has_gpu_ns() && all_ns != 0) {
      share = Format("%.1f%%", 100.0 * static_cast<double>(Change::Difference(tenant->gpu_ns(), old->gpu_ns())) /
                                   static_cast<double>(all_ns));
    }
    table.Add({tenant->name(), std::to_string(tenant->settings().weight()), share,
               tenant->has_gpu_ns() ? change.Part(tenant->gpu_ns(), old->gpu_ns()) : kUnknown, Queue(*tenant),
               InFlight(*tenant), BytesText(tenant->device_memory_bytes()),
               std::to_string(tenant->sessions()) + "/" + std::to_string(tenant->settings().max_sessions()),
               change.Rate(tenant->commands(), old->commands()), change.Bytes(tenant->bytes_up(), old->bytes_up()),
               change.Bytes(tenant->bytes_down(), old->bytes_down()),
               change.Bytes(tenant->copied_in_bytes(), old->copied_in_bytes()),
               change.Bytes(tenant->copied_out_bytes(), old->copied_out_bytes())});
  }
  if (now.has_system()) {
    const pb::System& old = before != nullptr ? before->system() : pb::System::default_instance();
    const auto row = [&](const char* title, const std::string& part) {
      table.Add({title, "", "", part, "", "", "", "", "", "", "", "", ""});
    };
    row("(system)", change.Part(now.system().gap_ns(), old.gap_ns()));
    row("(waits)", change.Part(now.system().waited_ns(), old.waited_ns()));
  }
  return table.Text();
}

/// Where there is more than one device: who has how much of which.
std::string TopDevices(const pb::Snapshot& now, const pb::Snapshot* before, const Change& change) {
  struct Row {
    const pb::Tenant* tenant;
    const pb::DeviceTime* time;
    uint64_t old_ns = 0;
  };
  std::map<std::string, std::vector<Row>> devices;
  for (const pb::Tenant& tenant : now.tenants()) {
    for (const pb::DeviceTime& time : tenant.device_times()) devices[time.device()].push_back({&tenant, &time});
  }
  if (devices.size() < 2) return "";
  for (const pb::Tenant& tenant : before != nullptr ? before->tenants() : pb::Snapshot::default_instance().tenants()) {
    for (const pb::DeviceTime& time : tenant.device_times()) {
      const auto at = devices.find(time.device());
      if (at == devices.end()) continue;
      for (Row& row : at->second) {
        if (row.tenant->name() == tenant.name()) row.old_ns = time.gpu_ns();
      }
    }
  }
  Table table({"ON", "TENANT", "WEIGHT", "SHARE", "DEVICE", "QUEUE", "IN FLIGHT"}, {true, true});
  for (const auto& [device, rows] : devices) {
    uint64_t all_ns = 0;
    for (const Row& row : rows) all_ns += Change::Difference(row.time->gpu_ns(), row.old_ns);
    for (const Row& row : rows) {
      const uint64_t ns = Change::Difference(row.time->gpu_ns(), row.old_ns);
      const bool known = change.known() && all_ns != 0;
      table.Add({device, row.tenant->name(), std::to_string(row.tenant->settings().weight()),
                 known ? Format("%.1f%%", 100.0 * static_cast<double>(ns) / static_cast<double>(all_ns)) : kUnknown,
                 change.Part(row.time->gpu_ns(), row.old_ns), DurationText(row.time->pending_ns()),
                 DurationText(row.time->inflight_ns())});
    }
  }
  return table.Text();
}

std::string TopSessions(const pb::Snapshot& now, const pb::Snapshot* before, const Change& change) {
  const auto id = [](const pb::Session& session) { return session.id(); };
  const auto earlier = ByKey(before != nullptr ? before->sessions() : pb::Snapshot::default_instance().sessions(), id);
  Table table({"SESSION", "TENANT", "PROGRAM", "PID", "API", "VIA", "STATE", "AGE", "DEVICE", "QUEUE", "IN FLIGHT",
               "MEMORY", "CMD/s", "KERNELS/s", "UP/s", "DOWN/s"},
              {false, true, true, false, true, true, true});
  for (const pb::Session& session : now.sessions()) {
    const auto at = earlier.find(session.id());
    const pb::Session& old = at != earlier.end() ? *at->second : pb::Session::default_instance();
    table.Add({std::to_string(session.id()), session.tenant(), session.program(), std::to_string(session.guest_pid()),
               session.api(), session.transport(), StateText(session.state()), DurationText(session.age_ns()),
               session.has_gpu_ns() ? change.Part(session.gpu_ns(), old.gpu_ns()) : kUnknown, Queue(session),
               InFlight(session), BytesText(session.device_memory_bytes()),
               change.Rate(session.commands(), old.commands()), change.Rate(session.kernels(), old.kernels()),
               change.Bytes(session.bytes_up(), old.bytes_up()), change.Bytes(session.bytes_down(), old.bytes_down())});
  }
  return table.Text();
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  if (bytes == 0) return "0";
  if (bytes < 1024) return std::to_string(bytes) + " B";
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return Format(value < 100 ? "%.1f " : "%.0f ", value) + units[unit];
}

std::string DurationText(uint64_t ns) {
  const uint64_t seconds = ns / kSecond;
  if (ns == 0) return "0";
  if (ns < kMicrosecond) return std::to_string(ns) + " ns";
  if (ns < kMillisecond) return Format("%.1f us", static_cast<double>(ns) / kMicrosecond);
  if (ns < kSecond) return Format("%.1f ms", static_cast<double>(ns) / kMillisecond);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return TwoUnits(seconds / 60, 'm', seconds % 60, 's');
  if (seconds < 86400) return TwoUnits(seconds / 3600, 'h', seconds / 60 % 60, 'm');
  return TwoUnits(seconds / 86400, 'd', seconds / 3600 % 24, 'h');
}

std::string PercentText(uint64_t ppm) { return Format("%.6g%%", static_cast<double>(ppm) / 1e4); }

Result<uint32_t> ParsePercent(std::string_view text) {
  std::string_view number = text;
  if (!number.empty() && number.back() == '%') number.remove_suffix(1);
  double value = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !(value >= 0 && value <= 100)) {
    return Status(Code::kInvalid, "'" + std::string(text) + "' is no percentage from 0 to 100");
  }
  return static_cast<uint32_t>(std::lround(value * 1e4));
}

std::string Table::Text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Width(row[i]), ' ');
      const bool left = i < left_.size() && left_[i];
      line += (i > 0 ? "  " : "") + (left ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string PolicyText(const pb::Policy& policy) {
  std::string text = "policy " + policy.name() + "\n", others;
  for (const std::string& name : policy.available()) {
    if (name != policy.name()) others += (others.empty() ? "" : ", ") + name;
  }
  if (!others.empty()) text += "others " + others + ", or a plugin's file\n";
  if (policy.has_last_ejection()) {
    const pb::Ejection& last = policy.last_ejection();
    text += "policy " + last.policy() + " was ejected: " + last.reason() + "\n";
  }
  return text;
}

std::string TenantsText(const pb::ListTenantsResponse& tenants) {
  Table table({"TENANT", "WEIGHT", "PRIORITY", "MIN SHARE", "MAX SHARE", "SLO", "SESSIONS", "MEMORY/SESSION",
               "MEMORY NOW", "FROM"},
              {true, false, false, false, false, false, false, false, false, true});
  for (const pb::Tenant& tenant : tenants.tenants()) {
    const pb::TenantSettings& settings = tenant.settings();
    const std::string from = tenant.changed() ? "changed" : tenant.configured() ? "configuration" : "defaults";
    table.Add({tenant.name(), std::to_string(settings.weight()), std::to_string(settings.priority()),
               settings.min_share_ppm() != 0 ? PercentText(settings.min_share_ppm()) : kUnknown,
               settings.max_share_ppm() != 0 ? PercentText(settings.max_share_ppm()) : kUnknown,
               settings.slo_ns() != 0 ? DurationText(settings.slo_ns()) : kUnknown,
               std::to_string(tenant.sessions()) + "/" + std::to_string(settings.max_sessions()),
               LimitText(settings.session_device_memory_bytes()), BytesText(tenant.device_memory_bytes()), from});
  }
  return table.Text();
}

std::string SessionsText(const pb::ListSessionsResponse& sessions) {
  Table table({"SESSION", "TENANT", "PROGRAM", "PID", "API", "VIA", "STATE", "AGE", "COMMANDS", "KERNELS", "UP", "DOWN",
               "MEMORY", "FROM"},
              {false, true, true, false, true, true, true, false, false, false, false, false, false, true});
  for (const pb::Session& session : sessions.sessions()) {
    table.Add({std::to_string(session.id()), session.tenant(), session.program(), std::to_string(session.guest_pid()),
               session.api(), session.transport(), StateText(session.state()), DurationText(session.age_ns()),
               std::to_string(session.commands()), std::to_string(session.kernels()), BytesText(session.bytes_up()),
               BytesText(session.bytes_down()), BytesText(session.device_memory_bytes()), session.peer()});
  }
  return table.Text();
}

std::string TopText(const pb::Snapshot& now, const pb::Snapshot* before, const std::string& where, size_t rows,
                    size_t columns) {
  const Change change(now, before);
  const std::string devices = TopDevices(now, before, change);
  const std::string all = Heading(now, where) + "\n" +
                          (now.tenants_size() != 0 ? TopTenants(now, before, change) : "no tenants yet\n") + "\n" +
                          devices + (devices.empty() ? "" : "\n") +
                          (now.sessions_size() != 0 ? TopSessions(now, before, change) : "no sessions\n");
  std::string text;
  size_t line = 0;
  for (size_t at = 0; at < all.size() && (rows == 0 || line < rows); ++line) {
    const size_t end = all.find('\n', at);
    text += Cut(std::string_view(all).substr(at, end - at), columns) + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace hawser::tools
