// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory pools, and pinned host memory. Memory that a pool hands out comes from the device and goes back
// to it at once, so nothing is kept in reserve: what is reserved is what is used.
#ifndef HAWSER_SOFTCUDA_DRIVER_POOL_H_
#define HAWSER_SOFTCUDA_DRIVER_POOL_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "softcuda/driver/device.h"
#include "softcuda/driver/memory_map.h"

namespace hawser::soft {

struct Pool {
  uint64_t handle = 0;
  Device* device = nullptr;
  bool is_default = false;
  uint64_t max_size = 0;  ///< 0: no limit but the device's.
  std::atomic<uint64_t> used{0};
  std::atomic<uint64_t> used_high{0};
  std::atomic<uint64_t> reserved_high{0};
  std::atomic<uint64_t> release_threshold{0};
  std::atomic<int> reuse_follow_event{1};
  std::atomic<int> reuse_opportunistic{1};
  std::atomic<int> reuse_internal{1};
  std::mutex mutex;
  std::map<int, CUmemAccess_flags> access;  ///< Of other devices. Guarded.
};

using PoolPtr = std::shared_ptr<Pool>;

/// Pinned host memory; entered in the map.
CUresult AllocateHost(uint64_t size, unsigned flags, uint64_t context, AllocationPtr* allocation);
/// Unmaps what AllocateHost() made; it is out of the map already.
void FreeHost(const AllocationPtr& allocation);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_POOL_H_
