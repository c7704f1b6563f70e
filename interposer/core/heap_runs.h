// SPDX-License-Identifier: Apache-2.0
// Small pieces of the session's heap: slots of a power of two, carved from runs of 1 MiB.
#ifndef HAWSER_INTERPOSER_CORE_HEAP_RUNS_H_
#define HAWSER_INTERPOSER_CORE_HEAP_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "interposer/core/heap_extents.h"

namespace hawser::guest {

/// A run's free slots are bits; runs with a free slot are linked per size class. An empty run goes back to the
/// extents unless it is the last of its class.
///
/// Threading: none; the caller holds its own lock.
class HeapRuns {
 public:
  static constexpr uint64_t kSmallest = 128;
  static constexpr uint64_t kLargest = 64u << 10;
  static constexpr uint64_t kRun = 1u << 20;

  explicit HeapRuns(HeapExtents* extents) : extents_(extents) {}

  /// `size` is at most kLargest. HeapExtents::kNone when there is no room for a run.
  uint64_t Allocate(uint64_t size);
  /// Whether this offset lies in a run.
  bool Owns(uint64_t offset) const;
  /// False when it is no slot in use.
  bool Free(uint64_t offset);

 private:
  static constexpr size_t kClasses = 10;  ///< 128 bytes to 64 KiB.
  struct Run {
    uint64_t offset;
    uint32_t size_class;
    uint32_t slots;
    uint32_t free;
    uint32_t hint = 0;  ///< No word of `bits` before this one has a free slot.
    Run* previous = nullptr;
    Run* next = nullptr;
    std::vector<uint64_t> bits;  ///< 1: free.
  };

  Run* NewRun(uint32_t size_class);
  void Link(Run* run);
  void Unlink(Run* run);

  HeapExtents* const extents_;
  std::array<Run*, kClasses> open_{};       ///< Runs with a free slot.
  std::vector<std::unique_ptr<Run>> runs_;  ///< By offset / kRun.
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_HEAP_RUNS_H_
