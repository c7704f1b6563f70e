// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/occupancy.h"

#include <algorithm>

#include "softcuda/driver/function_info.h"

namespace hawser::soft {
namespace {

constexpr int kRegisterUnit = 256;  ///< Registers are given to warps in such pieces.
constexpr int kSchedulers = 4;      ///< Each has its part of the registers, and its warps.
constexpr int kWarp = 32;
constexpr size_t kSharedUnit = 128;       ///< Shared memory is given to blocks in such pieces,
constexpr size_t kSharedReserved = 1024;  ///< and so much of each block's is the system's.

template <typename Number>
Number RoundUp(Number value, Number unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

int MaxDynamicShared(const Device& device, const Function& function) {
  const int chosen = function.settings.max_dynamic_shared;
  if (chosen >= 0) return chosen;
  const int all = device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  return std::max(0, all - static_cast<int>(function.info().static_shared_bytes));
}

int BlocksPerMultiprocessor(const Device& device, const Function& function, int threads, size_t dynamic_shared) {
  const exec::KernelInfo& info = function.info();
  const int most_threads =
      std::min(device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), static_cast<int>(info.max_threads));
  if (threads <= 0 || threads > most_threads) return 0;
  const int rounded = RoundUp(threads, kWarp);
  int blocks = std::min(device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                        device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / rounded);
  const size_t shared = info.static_shared_bytes + dynamic_shared;
  if (shared > static_cast<size_t>(device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))) return 0;
  const size_t all = static_cast<size_t>(device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  blocks = std::min(blocks, static_cast<int>(all / (RoundUp(shared, kSharedUnit) + kSharedReserved)));
  const int per_warp = RoundUp(std::max(1, static_cast<int>(info.registers)) * kWarp, kRegisterUnit);
  const int registers = device.Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  const int warps = registers / kSchedulers / per_warp * kSchedulers;
  // The estimate of registers never makes a launch impossible: the interpreter has as many as it wants.
  return std::max(1, std::min(blocks, warps / (rounded / kWarp)));
}

CUresult CheckCluster(const Function& function, bool given, bool* known) {
  int set = 0;
  bool large = false;
  for (size_t i = 0; i < 3; ++i) {
    const int blocks = RequiredCluster(function, i);
    set += blocks != 0 ? 1 : 0;
    large = large || blocks > 1;
  }
  *known = given || set != 0;
  const bool half = set != 0 && set != 3;
  const bool missing = function.info().explicit_cluster && !*known;
  return large || half || missing ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

CUresult CheckLaunch(const Device& device, const KernelWork& work) {
  const auto limit = [&device](CUdevice_attribute attribute) {
    return static_cast<uint64_t>(device.Attribute(attribute));
  };
  constexpr CUdevice_attribute kGrid[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                          CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  constexpr CUdevice_attribute kBlock[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                           CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  const exec::KernelInfo& info = work.function->info();
  uint64_t threads = 1;
  uint64_t blocks = 1;
  bool required = false;
  for (size_t i = 0; i < 3; ++i) {
    if (work.grid[i] == 0 || work.grid[i] > limit(kGrid[i])) return CUDA_ERROR_INVALID_VALUE;
    if (work.block[i] == 0 || work.block[i] > limit(kBlock[i])) return CUDA_ERROR_INVALID_VALUE;
    threads *= work.block[i];
    blocks *= work.grid[i];
    required = required || info.required_threads[i] != 0;
  }
  if (threads > limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) return CUDA_ERROR_INVALID_VALUE;
  if (required && work.block != info.required_threads) return CUDA_ERROR_INVALID_VALUE;
  if (threads > info.max_threads) return CUDA_ERROR_INVALID_VALUE;
  if (work.shared_bytes > static_cast<uint64_t>(MaxDynamicShared(device, *work.function))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (work.cooperative) {
    const int each = BlocksPerMultiprocessor(device, *work.function, static_cast<int>(threads), work.shared_bytes);
    if (blocks > static_cast<uint64_t>(each) * limit(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) {
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
