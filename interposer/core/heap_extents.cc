// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/heap_extents.h"

#include <iterator>

namespace hawser::guest {

HeapExtents::HeapExtents(uint64_t size) : size_(size & ~(kPage - 1)) {
  if (size_ != 0) Insert(0, size_);
}

uint64_t HeapExtents::Allocate(uint64_t size, uint64_t alignment) {
  for (auto fit = by_size_.lower_bound({size, 0}); fit != by_size_.end(); ++fit) {
    const auto [have, begin] = *fit;
    const uint64_t offset = (begin + alignment - 1) & ~(alignment - 1);
    if (offset - begin > have - size) continue;
    Erase(begin, have);
    if (offset != begin) Insert(begin, offset - begin);
    if (const uint64_t rest = begin + have - (offset + size); rest != 0) Insert(offset + size, rest);
    return offset;
  }
  return kNone;
}

bool HeapExtents::IsUsed(uint64_t offset, uint64_t size) const {
  if (size == 0 || offset > size_ || size > size_ - offset) return false;
  const auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && next->first < offset + size) return false;
  return next == by_offset_.begin() || std::prev(next)->first + std::prev(next)->second <= offset;
}

bool HeapExtents::Free(uint64_t offset, uint64_t size) {
  if (!IsUsed(offset, size)) return false;
  const auto next = by_offset_.lower_bound(offset);
  uint64_t begin = offset;
  uint64_t end = offset + size;
  // Copies: erasing invalidates what the iterators point to.
  std::pair<uint64_t, uint64_t> before{0, 0};
  std::pair<uint64_t, uint64_t> after{0, 0};
  if (next != by_offset_.begin()) {
    const auto& [at, length] = *std::prev(next);
    if (at + length == offset) before = {at, length};
  }
  if (next != by_offset_.end() && next->first == end) after = *next;
  if (before.second != 0) {
    begin = before.first;
    Erase(before.first, before.second);
  }
  if (after.second != 0) {
    end += after.second;
    Erase(after.first, after.second);
  }
  Insert(begin, end - begin);
  return true;
}

void HeapExtents::Insert(uint64_t offset, uint64_t size) {
  by_offset_.emplace(offset, size);
  by_size_.emplace(size, offset);
  free_bytes_ += size;
}

void HeapExtents::Erase(uint64_t offset, uint64_t size) {
  by_offset_.erase(offset);
  by_size_.erase({size, offset});
  free_bytes_ -= size;
}

}  // namespace hawser::guest
