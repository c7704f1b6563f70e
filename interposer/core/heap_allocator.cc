// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/heap_allocator.h"

#include <sys/mman.h>

#include "interposer/core/log.h"

namespace hawser::guest {
namespace {

uint64_t WholePages(uint64_t size) { return (size + HeapExtents::kPage - 1) & ~(HeapExtents::kPage - 1); }

}  // namespace

uint64_t HeapAllocator::Allocate(uint64_t size) {
  if (size == 0 || size > UINT64_MAX - HeapExtents::kPage) return HeapExtents::kNone;
  std::lock_guard lock(mutex_);
  if (size <= HeapRuns::kLargest) {
    if (const uint64_t offset = runs_.Allocate(size); offset != HeapExtents::kNone) return offset;
    // No room for another run; a few pages may be left.
  }
  return extents_.Allocate(WholePages(size));
}

void HeapAllocator::Free(uint64_t offset, uint64_t size) {
  const uint64_t pages = WholePages(size);
  // Before the range can be handed out again.
  if (base_ != nullptr && pages >= kPunch && ::madvise(base_ + offset, pages, MADV_REMOVE) != 0) {
    Log(LogLevel::kDebug, "cannot give %llu bytes of the heap back", static_cast<unsigned long long>(pages));
  }
  bool freed;
  {
    std::lock_guard lock(mutex_);
    freed = size <= HeapRuns::kLargest && runs_.Owns(offset) ? runs_.Free(offset) : extents_.Free(offset, pages);
  }
  if (!freed) {
    Log(LogLevel::kError, "the heap range %llu+%llu was freed but not in use", static_cast<unsigned long long>(offset),
        static_cast<unsigned long long>(size));
  }
}

uint64_t HeapAllocator::free_bytes() {
  std::lock_guard lock(mutex_);
  return extents_.free_bytes();
}

}  // namespace hawser::guest
