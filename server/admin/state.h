// SPDX-License-Identifier: Apache-2.0
// What hawserd tells and takes over its control plane, as plain values: the event loop fills them, the gRPC service
// turns them into messages (convert.h). proto/hawser/admin.proto says what each field means.
#ifndef HAWSER_SERVER_ADMIN_STATE_H_
#define HAWSER_SERVER_ADMIN_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/tenant_share.h"

namespace hawser::server::admin {

struct ListenerState {
  std::string uri;
  std::string transport;
};

struct DeviceState {
  std::string name;
  std::string api;
  uint64_t memory_bytes = 0;
  uint32_t sessions = 0;
};

struct EjectionState {
  std::string policy;
  std::string reason;
  uint64_t unix_ns = 0;
  std::string dump;
};

struct PolicyState {
  std::string name;
  std::vector<std::string> available;
  uint64_t ejections = 0;
  std::optional<EjectionState> last_ejection;
};

struct ServerState {
  std::string version;
  uint32_t pid = 0;
  uint64_t uptime_ns = 0;
  uint64_t started_unix_ns = 0;
  std::vector<ListenerState> listeners;
  std::vector<DeviceState> devices;
  PolicyState policy;
  uint32_t sessions = 0;
  uint32_t max_sessions = 0;
  uint64_t sessions_started = 0;
  uint32_t connections_pending = 0;
};

/// Device time, when there is a scheduler that measures it. Nanoseconds.
struct DeviceTime {
  uint64_t used_ns = 0;
  uint64_t pending_ns = 0;
  uint64_t inflight_ns = 0;
};

/// The same on one device; its name as in server/device_key.h.
using DeviceTimes = std::map<std::string, DeviceTime>;

/// What a tenant may have.
struct TenantSettings {
  TenantShare share;
  uint32_t max_sessions = 0;
  uint64_t session_device_memory = 0;  ///< Bytes; 0: as the device.
};

struct TenantState {
  std::string name;
  bool configured = false;
  bool changed = false;
  TenantSettings settings;
  uint32_t sessions = 0;
  uint64_t device_memory = 0;
  uint64_t commands = 0;
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  uint64_t copied_in = 0;  ///< By the device, from memory of the host.
  uint64_t copied_out = 0;
  std::optional<DeviceTime> device_time;
  DeviceTimes device_times;
};

enum class SessionPhase : uint8_t { kStarting, kRunning, kEnding };

struct SessionState {
  uint64_t id = 0;
  std::string tenant;
  std::string program;
  uint32_t guest_pid = 0;
  uint32_t worker_pid = 0;
  std::string api;
  std::string transport;
  std::string peer;
  uint64_t started_unix_ns = 0;
  uint64_t age_ns = 0;
  SessionPhase phase = SessionPhase::kStarting;
  uint64_t commands = 0;
  uint64_t bytes_up = 0;
  uint64_t bytes_down = 0;
  uint64_t device_memory = 0;
  uint64_t kernels = 0;
  uint64_t copied_in = 0;
  uint64_t copied_out = 0;
  uint64_t split_alarms = 0;
  std::optional<DeviceTime> device_time;
  DeviceTimes device_times;
};

/// Device time that no tenant is charged with, where there is a scheduler.
struct SystemState {
  uint64_t gap_ns = 0;
  uint64_t switches = 0;
  uint64_t waited_ns = 0;
};

struct Snapshot {
  uint64_t unix_ns = 0;
  uint64_t monotonic_ns = 0;
  ServerState server;
  std::vector<TenantState> tenants;    ///< By name.
  std::vector<SessionState> sessions;  ///< By id.
  std::optional<SystemState> system;
};

/// What SetTenant changes; what is absent stays.
struct TenantChange {
  bool reset = false;  ///< First forget what was changed before.
  std::optional<uint32_t> weight;
  std::optional<int32_t> priority;
  std::optional<uint32_t> min_share_ppm;
  std::optional<uint32_t> max_share_ppm;
  std::optional<uint64_t> slo_ns;
  std::optional<uint32_t> max_sessions;
  std::optional<uint64_t> session_device_memory;

  bool empty() const {
    return !reset && !weight && !priority && !min_share_ppm && !max_share_ppm && !slo_ns && !max_sessions &&
           !session_device_memory;
  }
};

enum class TraceKind : uint8_t { kSessionBegin = 1, kSessionEnd, kKernel, kCommand, kGrant, kCopy };

struct TraceEvent {
  TraceKind kind = TraceKind::kSessionBegin;
  uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC.
  uint64_t end_ns = 0;    ///< 0: no length.
  uint64_t session = 0;
  std::string tenant;
  std::string name;
  uint32_t track = 0;
  std::string device;  ///< Of a grant.
};

struct TraceBatch {
  std::vector<TraceEvent> events;
  uint64_t lost = 0;
  int64_t unix_minus_monotonic_ns = 0;
};

}  // namespace hawser::server::admin

#endif  // HAWSER_SERVER_ADMIN_STATE_H_
