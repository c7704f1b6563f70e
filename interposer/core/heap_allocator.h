// SPDX-License-Identifier: Apache-2.0
// Room for buffers in the session's heap, which the server shares.
#ifndef HAWSER_INTERPOSER_CORE_HEAP_ALLOCATOR_H_
#define HAWSER_INTERPOSER_CORE_HEAP_ALLOCATOR_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "interposer/core/heap_extents.h"
#include "interposer/core/heap_runs.h"

namespace hawser::guest {

/// Thread-safe. Up to 64 KiB: slots of a power of two, aligned to min(slot, 4096). Above: whole pages, best fit.
/// The book-keeping is in private memory, so the server cannot confuse it.
///
/// To give pages back to the system takes about 0.2 ms for each MiB, so Free() does not: large ranges become stale, and
/// GiveBack() takes them in steps. Until then a range of the same size takes them as they are, with pages and all; so
/// does every other when there is no room left.
class HeapAllocator {
 public:
  /// One step of GiveBack().
  static constexpr uint64_t kStep = 4u << 20;

  /// `base` may be null (tests): then pages are not given back.
  HeapAllocator(std::byte* base, uint64_t size) : base_(base), extents_(size), runs_(&extents_) {}

  /// HeapExtents::kNone when there is no room. Waits at most for one step of GiveBack().
  uint64_t Allocate(uint64_t size);
  /// `size` as allocated. True: the range is stale now (from kStep on).
  bool Free(uint64_t offset, uint64_t size);
  /// Gives up to kStep bytes of what was freed longest ago back to the system. False when nothing is stale. One thread
  /// at a time.
  bool GiveBack();

  uint64_t free_bytes();

  /// The heap lies elsewhere now. Before the first allocation.
  void Rebase(std::byte* base) { base_ = base; }

 private:
  struct Range {
    uint64_t offset, size;
  };
  uint64_t Place(uint64_t size);
  bool IsStale(uint64_t offset, uint64_t size) const;
  uint64_t FreeBytes() const;

  std::byte* base_;
  std::mutex mutex_;
  HeapExtents extents_;
  HeapRuns runs_;
  std::deque<Range> stale_;     ///< In use as extents_ sees it. The oldest first.
  Range giving_back_ = {0, 0};  ///< The same, in the hands of GiveBack().
  std::condition_variable given_back_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_HEAP_ALLOCATOR_H_
