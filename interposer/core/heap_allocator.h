// SPDX-License-Identifier: Apache-2.0
// Room for buffers in the session's heap, which the server shares.
#ifndef HAWSER_INTERPOSER_CORE_HEAP_ALLOCATOR_H_
#define HAWSER_INTERPOSER_CORE_HEAP_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "interposer/core/heap_extents.h"
#include "interposer/core/heap_runs.h"

namespace hawser::guest {

/// Thread-safe. Up to 64 KiB: slots of a power of two, aligned to min(slot, 4096). Above: whole pages, best fit.
/// The book-keeping is in private memory, so the server cannot confuse it.
class HeapAllocator {
 public:
  /// `base` may be null (tests): then pages are not given back.
  HeapAllocator(std::byte* base, uint64_t size) : base_(base), extents_(size), runs_(&extents_) {}

  /// HeapExtents::kNone when there is no room.
  uint64_t Allocate(uint64_t size);
  /// `size` as allocated. Pages of ranges from kPunch on go back to the system.
  void Free(uint64_t offset, uint64_t size);

  uint64_t free_bytes();

  /// The heap lies elsewhere now. Before the first allocation.
  void Rebase(std::byte* base) { base_ = base; }

 private:
  static constexpr uint64_t kPunch = 4u << 20;

  std::byte* base_;
  std::mutex mutex_;
  HeapExtents extents_;
  HeapRuns runs_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_HEAP_ALLOCATOR_H_
