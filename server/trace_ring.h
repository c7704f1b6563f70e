// SPDX-License-Identifier: Apache-2.0
// The latest events of a session, from its worker to hawserd, in shared memory.
//
// Threads: any thread of the worker writes, without a lock: it takes a number, fills that slot and marks it with the
// number. One thread of hawserd reads, and never makes a writer wait: what it does not fetch in time is written over
// and counted as lost. Every word is atomic, so that a slot that changes while it is read is noticed and is no data
// race.
//
// Cost: while nothing is recorded one relaxed load (Wants), nothing else; an event about 50 ns.
#ifndef HAWSER_SERVER_TRACE_RING_H_
#define HAWSER_SERVER_TRACE_RING_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace hawser::server {

enum class TraceRingKind : uint32_t { kKernel = 1, kCommand = 2, kCopy = 3 };

/// One event, out of the ring.
struct TraceRingEvent {
  TraceRingKind kind = TraceRingKind::kKernel;
  uint32_t track = 0;     ///< Queue or stream within the session.
  uint64_t begin_ns = 0;  ///< CLOCK_MONOTONIC.
  uint64_t end_ns = 0;
  std::string name;  ///< Printable; cut at kNameBytes.
};

/// All zero is an empty ring.
class TraceRing {
 public:
  static constexpr uint64_t kSlots = 2048;
  static constexpr size_t kNameWords = 12;
  static constexpr size_t kNameBytes = kNameWords * 8;

  /// The bit for this kind in SessionStatsPage::trace.
  static constexpr uint32_t Bit(TraceRingKind kind) { return 1u << static_cast<uint32_t>(kind); }
  static bool Wants(const std::atomic<uint32_t>& kinds, TraceRingKind kind) {
    return (kinds.load(std::memory_order_relaxed) & Bit(kind)) != 0;
  }

  void Record(TraceRingKind kind, uint32_t track, uint64_t begin_ns, uint64_t end_ns, std::string_view name);

  /// This process's CLOCK_MONOTONIC.
  static uint64_t Now();

 private:
  friend class TraceReader;
  friend struct TraceRingTestAccess;
  static constexpr uint64_t kBusy = UINT64_MAX;
  struct Slot {
    std::atomic<uint64_t> mark;  ///< Number + 1 once it is complete; kBusy while it is written.
    std::atomic<uint64_t> begin_ns;
    std::atomic<uint64_t> end_ns;
    std::atomic<uint64_t> kind_track;
    std::array<std::atomic<uint64_t>, kNameWords> name;
  };

  alignas(64) std::atomic<uint64_t> next_;
  alignas(64) std::array<Slot, kSlots> slots_;
};

/// hawserd's end. Does not trust what it reads: at most kSlots events for each call, whatever the ring says.
class TraceReader {
 public:
  /// Forgets what is there: events from now on.
  void SkipTo(const TraceRing& ring);
  /// Calls take(TraceRingEvent&&) for each event since the last call. Returns how many were lost.
  template <typename Take>
  uint64_t Drain(const TraceRing& ring, Take&& take) {
    TraceRingEvent event;
    uint64_t lost = Prepare(ring);
    while (next_ != end_) {
      if (Read(ring, next_++, &event)) {
        take(std::move(event));
        event = {};
      } else {
        ++lost;
      }
    }
    return lost;
  }

 private:
  uint64_t Prepare(const TraceRing& ring);
  static bool Read(const TraceRing& ring, uint64_t number, TraceRingEvent* event);

  uint64_t next_ = 0;
  uint64_t end_ = 0;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_TRACE_RING_H_
