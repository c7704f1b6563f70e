// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/occupancy.h"

#include <algorithm>

#include "softcuda/driver/function_info.h"

namespace hawser::soft {
namespace {

constexpr int kRegisterUnit = 256;  ///< Registers are given to warps in such pieces.
constexpr int kSchedulers = 4;      ///< Each has its part of the registers, and its warps.
constexpr int kWarp = 32;
constexpr uint32_t kPortableCluster = 8;  ///< Blocks that every device with clusters takes,
constexpr uint32_t kLargestCluster = 16;  ///< and those that a function may ask this one for.
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

uint32_t LargestCluster(const Device& device, const Function& function) {
  if (device.Attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) return 1;
  const uint32_t most = function.settings.non_portable_cluster != 0 ? kLargestCluster : kPortableCluster;
  const uint32_t wish = function.info().max_cluster;
  return wish == 0 ? most : std::min(wish, most);
}

CUresult FindCluster(const Device& device, const Function& function, std::array<uint32_t, 3> wanted,
                     std::array<uint32_t, 3>* cluster, bool* known) {
  std::array<uint32_t, 3> required{};
  for (size_t i = 0; i < 3; ++i) required[i] = static_cast<uint32_t>(RequiredCluster(function, i));
  constexpr std::array<uint32_t, 3> kFree{};
  *known = wanted != kFree || required != kFree;
  *cluster = {1, 1, 1};
  if (!*known) return function.info().explicit_cluster ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
  if (wanted != kFree && required != kFree && wanted != required) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *cluster = wanted != kFree ? wanted : required;
  uint64_t blocks = 1;
  for (const uint32_t each : *cluster) {
    if (each == 0 || each > kLargestCluster) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    blocks *= each;
  }
  if (blocks > 1 && function.info().blocks_are_clusters) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return blocks <= LargestCluster(device, function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult ChooseCluster(const Device& device, const std::array<uint32_t, 3>& wanted, KernelWork* work) {
  std::array<uint32_t, 3> cluster{};
  bool known = false;
  if (const CUresult result = FindCluster(device, *work->function, wanted, &cluster, &known); result != CUDA_SUCCESS) {
    return result;
  }
  for (size_t i = 0; i < 3; ++i) {
    if (work->grid[i] % cluster[i] != 0) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  work->cluster = cluster;
  work->explicit_cluster = known;
  return CUDA_SUCCESS;
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
