// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/heap_allocator.h"

#include <sys/mman.h>

#include <algorithm>

#include "interposer/core/log.h"

namespace hawser::guest {
namespace {

uint64_t WholePages(uint64_t size) { return (size + HeapExtents::kPage - 1) & ~(HeapExtents::kPage - 1); }

}  // namespace

uint64_t HeapAllocator::Allocate(uint64_t size) {
  if (size == 0 || size > UINT64_MAX - HeapExtents::kPage) return HeapExtents::kNone;
  const uint64_t pages = WholePages(size);
  std::unique_lock lock(mutex_);
  // Programs that allocate and release the same sizes again and again: neither side has to fault the pages in.
  for (auto range = stale_.begin(); range != stale_.end(); ++range) {
    if (range->size != pages) continue;
    const uint64_t offset = range->offset;
    stale_.erase(range);
    return offset;
  }
  uint64_t offset = Place(size);
  if (offset != HeapExtents::kNone || (stale_.empty() && giving_back_.size == 0)) return offset;
  // Ranges that are given up here keep their pages until somebody has used them: not for nothing.
  if (pages > FreeBytes()) return HeapExtents::kNone;
  for (const Range& range : stale_) (void)extents_.Free(range.offset, range.size);
  stale_.clear();
  given_back_.wait(lock, [this] { return giving_back_.size == 0; });
  return Place(size);
}

uint64_t HeapAllocator::Place(uint64_t size) {
  if (size <= HeapRuns::kLargest) {
    if (const uint64_t offset = runs_.Allocate(size); offset != HeapExtents::kNone) return offset;
    // No room for another run; a few pages may be left.
  }
  return extents_.Allocate(WholePages(size));
}

bool HeapAllocator::IsStale(uint64_t offset, uint64_t size) const {
  const auto meets = [&](const Range& range) {
    return offset < range.offset + range.size && range.offset < offset + size;
  };
  return meets(giving_back_) || std::any_of(stale_.begin(), stale_.end(), meets);
}

bool HeapAllocator::Free(uint64_t offset, uint64_t size) {
  const uint64_t pages = WholePages(size);
  bool freed;
  {
    std::lock_guard lock(mutex_);
    if (size <= HeapRuns::kLargest && runs_.Owns(offset)) {
      freed = runs_.Free(offset);
    } else if (IsStale(offset, pages)) {
      freed = false;
    } else if (base_ != nullptr && pages >= kStep && extents_.IsUsed(offset, pages)) {
      stale_.push_back({offset, pages});
      return true;
    } else {
      freed = extents_.Free(offset, pages);
    }
  }
  if (!freed) {
    Log(LogLevel::kError, "the heap range %llu+%llu was freed but not in use", static_cast<unsigned long long>(offset),
        static_cast<unsigned long long>(size));
  }
  return false;
}

bool HeapAllocator::GiveBack() {
  {
    std::lock_guard lock(mutex_);
    if (stale_.empty()) return false;
    Range& oldest = stale_.front();
    giving_back_ = {oldest.offset, std::min(oldest.size, kStep)};
    oldest.offset += giving_back_.size;
    oldest.size -= giving_back_.size;
    if (oldest.size == 0) stale_.pop_front();
  }
  if (::madvise(base_ + giving_back_.offset, giving_back_.size, MADV_REMOVE) != 0) {
    Log(LogLevel::kDebug, "cannot give %llu bytes of the heap back",
        static_cast<unsigned long long>(giving_back_.size));
  }
  {
    std::lock_guard lock(mutex_);
    (void)extents_.Free(giving_back_.offset, giving_back_.size);
    giving_back_ = {0, 0};
  }
  given_back_.notify_all();
  return true;
}

uint64_t HeapAllocator::free_bytes() {
  std::lock_guard lock(mutex_);
  return FreeBytes();
}

uint64_t HeapAllocator::FreeBytes() const {
  uint64_t bytes = extents_.free_bytes() + giving_back_.size;
  for (const Range& range : stale_) bytes += range.size;
  return bytes;
}

}  // namespace hawser::guest
