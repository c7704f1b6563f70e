// SPDX-License-Identifier: Apache-2.0
#include "memmgr/extent_allocator.h"

#include <algorithm>
#include <iterator>

namespace hawser::memmgr {

ExtentAllocator::ExtentAllocator(uint64_t size, uint64_t unit) : unit_(unit) {
  if (size != 0) AddFree(0, size);
}

uint64_t ExtentAllocator::Rounded(uint64_t size) const {
  size = std::max<uint64_t>(size, 1);
  return size > UINT64_MAX - (unit_ - 1) ? 0 : (size + unit_ - 1) & ~(unit_ - 1);
}

uint64_t ExtentAllocator::SizeAt(uint64_t begin) const {
  const auto found = taken_.find(begin);
  return found == taken_.end() ? 0 : found->second;
}

void ExtentAllocator::AddFree(uint64_t begin, uint64_t size) {
  free_[begin] = size;
  by_size_.emplace(size, begin);
}

std::optional<uint64_t> ExtentAllocator::Allocate(uint64_t size) {
  const uint64_t wanted = Rounded(size);
  if (wanted == 0) return std::nullopt;
  const auto best = by_size_.lower_bound({wanted, 0});
  if (best == by_size_.end()) return std::nullopt;
  const auto [room, begin] = *best;
  by_size_.erase(best);
  free_.erase(begin);
  if (room > wanted) AddFree(begin + wanted, room - wanted);
  taken_[begin] = wanted;
  return begin;
}

bool ExtentAllocator::Free(uint64_t begin) {
  const auto found = taken_.find(begin);
  if (found == taken_.end()) return false;
  uint64_t size = found->second;
  taken_.erase(found);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    by_size_.erase({next->second, next->first});
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  AddFree(begin, size);
  return true;
}

}  // namespace hawser::memmgr
