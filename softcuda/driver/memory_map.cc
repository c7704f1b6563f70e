// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/memory_map.h"

#include <iterator>
#include <mutex>

namespace hawser::soft {

bool MemoryMap::Touches(uint64_t address, uint64_t size) const {
  const std::shared_lock lock(mutex_);
  return TouchesLocked(address, size);
}

bool MemoryMap::TouchesLocked(uint64_t address, uint64_t size) const {
  auto next = by_begin_.lower_bound(address);
  if (next != by_begin_.end() && next->first - address < size) return true;
  return next != by_begin_.begin() && std::prev(next)->second->end() > address;
}

bool MemoryMap::Add(const AllocationPtr& allocation) {
  const std::unique_lock lock(mutex_);
  if (allocation->size == 0 || TouchesLocked(allocation->begin, allocation->size)) return false;
  access_.Insert({allocation->begin, allocation->end(), allocation->writable});
  allocation->id = next_id_++;
  by_begin_[allocation->begin] = allocation;
  return true;
}

AllocationPtr MemoryMap::Remove(uint64_t address) {
  const std::unique_lock lock(mutex_);
  const auto found = by_begin_.find(address);
  if (found == by_begin_.end()) return nullptr;
  AllocationPtr allocation = found->second;
  access_.Remove(address);
  by_begin_.erase(found);
  return allocation;
}

AllocationPtr MemoryMap::Find(uint64_t address) const {
  const std::shared_lock lock(mutex_);
  auto next = by_begin_.upper_bound(address);
  if (next == by_begin_.begin()) return nullptr;
  const AllocationPtr& before = std::prev(next)->second;
  return address < before->end() ? before : nullptr;
}

bool MemoryMap::Covers(uint64_t address, uint64_t size, bool writing) const {
  const std::shared_lock lock(mutex_);
  while (size != 0) {
    auto next = by_begin_.upper_bound(address);
    if (next == by_begin_.begin()) return false;
    const Allocation& allocation = *std::prev(next)->second;
    const uint64_t end = allocation.end();
    if (address >= end || (writing && !allocation.writable)) return false;
    if (size <= end - address) return true;
    size -= end - address;
    address = end;
  }
  return true;
}

std::vector<AllocationPtr> MemoryMap::Select(const std::function<bool(const Allocation&)>& predicate) const {
  const std::shared_lock lock(mutex_);
  std::vector<AllocationPtr> selected;
  for (const auto& [begin, allocation] : by_begin_) {
    if (predicate(*allocation)) selected.push_back(allocation);
  }
  return selected;
}

}  // namespace hawser::soft
