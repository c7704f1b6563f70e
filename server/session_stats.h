// SPDX-License-Identifier: Apache-2.0
// What a worker counts about its session, in a page that hawserd reads at any time; and what hawserd tells a running
// worker (limits, whether to record a trace). What concerns the sharing of device time is not here: that is the
// scheduler's page.
//
// Ownership: hawserd creates the page (a memfd whose size is sealed), gives the descriptor to the worker when it starts
// it and keeps its own mapping until the session is forgotten. Each field has one side that writes it, said beside it.
//
// Threads: counters of the worker are each written by one thread at a time, so that counting is a load and a store
// without a locked instruction; device_memory and the trace ring are the exceptions, because callbacks of drivers
// change them. Everything is relaxed: a reader sees recent values, not values of the same moment.
//
// Trust: a worker that its guest took over can write anything into the page. hawserd therefore uses the values as
// numbers to show, never as sizes or addresses; positions of the ring are checked in TraceReader; text is copied within
// bounds and cleaned before it is shown. The seals keep the page from being cut off under hawserd.
#ifndef HAWSER_SERVER_SESSION_STATS_H_
#define HAWSER_SERVER_SESSION_STATS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/device_findings.h"
#include "server/trace_ring.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Counts upward; one thread at a time writes.
class StatsCounter {
 public:
  void Add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  uint64_t Read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct SessionStatsPage {
  static constexpr uint32_t kMagic = 0x54535748;  // "HWST"
  static constexpr uint32_t kVersion = 2;
  static constexpr size_t kMaxDevices = 8;
  static constexpr size_t kReason = 236;
  static constexpr size_t kDeviceName = 112;

  enum Phase : uint32_t { kStarting = 0, kRunning = 1 };
  enum Cause : uint32_t { kEnded = 0, kLaunchTimeout = 1 };
  struct Device {
    char name[kDeviceName];  ///< Ends with a zero, or at the end of the array.
    uint64_t memory;         ///< Bytes.
    uint64_t reserved;
  };

  // hawserd, before the worker starts.
  alignas(64) uint32_t magic;
  uint32_t version;
  uint32_t size;  ///< Bytes of this struct.

  // hawserd, at any time.
  alignas(64) std::atomic<uint32_t> trace;    ///< TraceRing::Kinds to record; 0: nothing.
  std::atomic<uint64_t> device_memory_limit;  ///< Bytes that the session may hold; 0: no limit.
  std::atomic<uint32_t> stop_cause;           ///< Cause; before SIGTERM.
  char stop_reason[kReason];                  ///< The same in words, ends with a zero; empty: the server stops.

  // The worker's executor.
  alignas(64) StatsCounter commands;  ///< Executed.
  StatsCounter command_bytes;         ///< Of their frames.
  StatsCounter kernels;               ///< Launched.
  std::atomic<uint32_t> phase;        ///< Phase.
  /// Bytes that the device copied from and to memory of the host, for the guest. Not what a guest copies by itself, in
  /// memory that it shares with the device.
  StatsCounter copied_in;
  StatsCounter copied_out;

  // Whoever sends answers, under the lock for sending.
  alignas(64) StatsCounter reply_bytes;
  // The receiver and the sender of bulk data.
  alignas(64) StatsCounter bulk_up_bytes;
  alignas(64) StatsCounter bulk_down_bytes;

  // Any thread of the worker, with locked instructions: both are rare.
  alignas(64) std::atomic<uint64_t> device_memory;  ///< Bytes held now.
  std::atomic<uint64_t> split_alarms;               ///< Kernels that were split and must not be (split_alarm.h).

  // The worker's executor, before phase is kRunning: devices that it opened.
  alignas(64) std::atomic<uint32_t> device_count;
  Device devices[kMaxDevices];

  // hawserd, before the worker starts: what other workers of the tenant found out. Then the worker.
  alignas(64) DeviceFindings findings;

  // Any thread of the worker.
  alignas(64) TraceRing ring;

  uint64_t bytes_up() const { return command_bytes.Read() + bulk_up_bytes.Read(); }
  uint64_t bytes_down() const { return reply_bytes.Read() + bulk_down_bytes.Read(); }

  /// Worker: adds a device that it opened; beyond kMaxDevices nothing happens.
  void AddDevice(std::string_view name, uint64_t memory);
  struct DeviceInfo {
    std::string name;
    uint64_t memory = 0;
  };
  /// hawserd: what AddDevice said; bounded, control characters replaced.
  std::vector<DeviceInfo> Devices() const;
};

/// A mapped page. Movable; unmaps at the end.
class SessionStats {
 public:
  /// hawserd: a fresh page, zero but for its head.
  static wire::Result<SessionStats> Create();
  /// Worker: the page behind this descriptor, which stays the caller's. kInvalid when it is not such a page.
  static wire::Result<SessionStats> Attach(int fd);
  SessionStats() = default;
  SessionStats(SessionStats&& other) noexcept { *this = std::move(other); }
  SessionStats& operator=(SessionStats&& other) noexcept;
  ~SessionStats();

  /// hawserd's descriptor of the page, to give to a worker; -1 after CloseDescriptor() and in a worker.
  int fd() const { return fd_.get(); }
  void CloseDescriptor() { fd_.Reset(); }

  bool valid() const { return page_ != nullptr; }
  SessionStatsPage* page() { return page_; }
  const SessionStatsPage* page() const { return page_; }

 private:
  wire::Fd fd_;
  SessionStatsPage* page_ = nullptr;
};

/// Where a part of the worker counts when nobody gave it a page (tests, tools). Never read.
SessionStatsPage* UncountedSession();

}  // namespace hawser::server

#endif  // HAWSER_SERVER_SESSION_STATS_H_
