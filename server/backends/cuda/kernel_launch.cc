// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/kernel_launch.h"

#include <algorithm>
#include <cstring>

namespace hawser::server::cuda_backend {
namespace {

// The same on every device. Of the grid's second and third axis, and of a block.
constexpr unsigned kMostOfAxis = 65535, kMostThreads = 1024;

}  // namespace

bool KernelLaunch::IsPossible() const {
  const auto is_thread_count = [](unsigned each) { return each <= kMostThreads; };
  if (grid[0] > kMostPartBlocks || grid[1] > kMostOfAxis || grid[2] > kMostOfAxis || blocks() == 0) return false;
  return std::all_of(block.begin(), block.end(), is_thread_count) && block_threads() != 0 &&
         block_threads() <= kMostThreads;
}

CUresult KernelLaunch::RunWith(const DriverTable& driver, CUstream stream, CUfunction what,
                               const std::array<unsigned, 3>& blocks, const std::byte* data, size_t size) const {
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER,
                   const_cast<std::byte*>(data),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  void** const given = size == 0 ? nullptr : extra;
  if (!extended) {
    return driver.cuLaunchKernel(what, blocks[0], blocks[1], blocks[2], block[0], block[1], block[2], shared, stream,
                                 nullptr, given);
  }
  if (driver.cuLaunchKernelEx == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<CUlaunchAttribute> own = attributes;
  CUlaunchConfig config{};
  config.gridDimX = blocks[0];
  config.gridDimY = blocks[1];
  config.gridDimZ = blocks[2];
  config.blockDimX = block[0];
  config.blockDimY = block[1];
  config.blockDimZ = block[2];
  config.sharedMemBytes = shared;
  config.hStream = stream;
  config.attrs = own.data();
  config.numAttrs = static_cast<unsigned>(own.size());
  return driver.cuLaunchKernelEx(&config, what, nullptr, given);
}

CUresult KernelLaunch::Run(const DriverTable& driver, CUstream stream) const {
  if (graph != nullptr) return driver.cuGraphLaunch(graph, stream);
  return RunWith(driver, stream, function, grid, parameters.data(), parameters.size());
}

CUresult KernelLaunch::RunPart(const DriverTable& driver, CUstream stream, const SlicedKernel& sliced, uint64_t low,
                               uint64_t high) const {
  if (shared > sliced.shared.load(std::memory_order_relaxed)) {
    const CUresult result = driver.cuFuncSetAttribute(sliced.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                      static_cast<int>(shared));
    if (result != CUDA_SUCCESS) return result;
    sliced.shared.store(shared, std::memory_order_relaxed);
  }
  std::vector<std::byte> all(sliced.layout.total_bytes);
  std::copy_n(parameters.begin(), std::min<size_t>(parameters.size(), sliced.layout.own_bytes), all.begin());
  std::byte* const added = all.data() + sliced.layout.added_offset;
  if (sliced.way == cuda_slicing::Way::kGuard) {
    const std::array<uint64_t, 2> bounds{low, high};
    std::memcpy(added, bounds.data(), sizeof(bounds));
    return RunWith(driver, stream, sliced.function, grid, all.data(), all.size());
  }
  const std::array<uint32_t, 4> place{static_cast<uint32_t>(low), grid[0], grid[1], grid[2]};
  std::memcpy(added, place.data(), sizeof(place));
  return RunWith(driver, stream, sliced.function, {static_cast<unsigned>(high - low), 1, 1}, all.data(), all.size());
}

bool KernelLaunch::AttributesAllowParts() const {
  return std::all_of(attributes.begin(), attributes.end(), [](const CUlaunchAttribute& attribute) {
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        return attribute.value.cooperative == 0;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        return attribute.value.programmaticStreamSerializationAllowed == 0;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return attribute.value.clusterDim.x == 1 && attribute.value.clusterDim.y == 1 &&
               attribute.value.clusterDim.z == 1;
      default:
        return false;
    }
  });
}

}  // namespace hawser::server::cuda_backend
