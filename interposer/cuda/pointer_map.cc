// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/pointer_map.h"

#include <algorithm>
#include <mutex>

namespace hawser::cu {
namespace {

bool Holds(const PointerRange& range, uint64_t address) {
  return address >= range.begin && address - range.begin < std::max<uint64_t>(range.size, 1);
}

}  // namespace

void PointerMap::Add(PointerRange range) {
  std::unique_lock lock(mutex_);
  range.id = next_id_++;
  if (range.kind == PointerKind::kReserved) largest_nested_ = std::max(largest_nested_, range.size);
  if (range.kind == PointerKind::kHost && range.device_alias != range.begin) {
    // Bounds that grow: who sees one of them alone sees an address too few, of memory that nobody has been given yet.
    elsewhere_begin_.store(std::min(elsewhere_begin_.load(std::memory_order_relaxed), range.begin),
                           std::memory_order_relaxed);
    elsewhere_end_.store(std::max(elsewhere_end_.load(std::memory_order_relaxed), range.begin + range.size),
                         std::memory_order_relaxed);
  }
  ranges_.emplace(range.begin, range);
}

std::optional<PointerRange> PointerMap::Find(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto at = ranges_.upper_bound(address);
  while (at != ranges_.begin()) {
    --at;
    if (Holds(at->second, address)) return at->second;
    // Only reserved ranges have others inside; further back than the largest of them nothing can hold the address.
    if (at->first < address && address - at->first >= largest_nested_) break;
  }
  return std::nullopt;
}

std::optional<PointerRange> PointerMap::Remove(uint64_t begin, std::initializer_list<PointerKind> kinds) {
  std::unique_lock lock(mutex_);
  const auto [first, last] = ranges_.equal_range(begin);
  for (auto at = first; at != last; ++at) {
    if (std::find(kinds.begin(), kinds.end(), at->second.kind) == kinds.end()) continue;
    const PointerRange range = at->second;
    ranges_.erase(at);
    return range;
  }
  return std::nullopt;
}

void PointerMap::Open(PointerRange range) {
  {
    std::unique_lock lock(mutex_);
    const auto [first, last] = ranges_.equal_range(range.begin);
    for (auto at = first; at != last; ++at) {
      if (at->second.kind != PointerKind::kImported) continue;
      ++at->second.opened;
      return;
    }
  }
  range.kind = PointerKind::kImported;
  Add(range);
}

bool PointerMap::Close(uint64_t begin) {
  std::unique_lock lock(mutex_);
  const auto [first, last] = ranges_.equal_range(begin);
  for (auto at = first; at != last; ++at) {
    if (at->second.kind != PointerKind::kImported) continue;
    if (--at->second.opened == 0) ranges_.erase(at);
    return true;
  }
  return false;
}

void PointerMap::SetDeviceAlias(uint64_t begin, uint64_t alias) {
  std::unique_lock lock(mutex_);
  const auto [first, last] = ranges_.equal_range(begin);
  for (auto at = first; at != last; ++at) {
    if (at->second.is_host()) at->second.device_alias = alias;
  }
}

void PointerMap::LeaveHeap(uint64_t begin) {
  std::unique_lock lock(mutex_);
  const auto [first, last] = ranges_.equal_range(begin);
  for (auto at = first; at != last; ++at) at->second.in_heap = false;
}

bool PointerMap::UsesHeap(uint64_t context) const {
  std::shared_lock lock(mutex_);
  return std::any_of(ranges_.begin(), ranges_.end(), [context](const auto& entry) {
    return entry.second.context == context && entry.second.has_heap_pages();
  });
}

std::vector<PointerRange> PointerMap::RemoveContext(uint64_t context) {
  std::vector<PointerRange> removed;
  std::unique_lock lock(mutex_);
  for (auto at = ranges_.begin(); at != ranges_.end();) {
    if (at->second.context == context && context != 0) {
      removed.push_back(at->second);
      at = ranges_.erase(at);
    } else {
      ++at;
    }
  }
  return removed;
}

bool PointerMap::Overlaps(uint64_t address, uint64_t size) const {
  if (Find(address)) return true;
  std::shared_lock lock(mutex_);
  const auto at = ranges_.lower_bound(address);
  return at != ranges_.end() && at->first - address < size;
}

}  // namespace hawser::cu
