// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/device_heap.h"

#include <iterator>

namespace hawser::exec {
namespace {
constexpr uint64_t kGrain = 16;
}

DeviceHeap::DeviceHeap(uint64_t base, uint64_t size) {
  size &= ~(kGrain - 1);
  if (size > 0) free_[base] = size;
}

uint64_t DeviceHeap::Allocate(uint64_t size) {
  if (size == 0 || size > UINT64_MAX - kGrain) return 0;
  size = (size + kGrain - 1) & ~(kGrain - 1);
  std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < size) continue;
    const uint64_t begin = it->first;
    const uint64_t rest = it->second - size;
    free_.erase(it);
    if (rest > 0) free_[begin + size] = rest;
    live_[begin] = size;
    used_ += size;
    return begin;
  }
  return 0;
}

bool DeviceHeap::Free(uint64_t address) {
  if (address == 0) return true;
  std::lock_guard lock(mutex_);
  auto live = live_.find(address);
  if (live == live_.end()) return false;
  uint64_t size = live->second;
  used_ -= size;
  live_.erase(live);
  auto after = free_.lower_bound(address);
  if (after != free_.end() && after->first == address + size) {
    size += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += size;
      return true;
    }
  }
  free_[address] = size;
  return true;
}

uint64_t DeviceHeap::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace hawser::exec
