// SPDX-License-Identifier: Apache-2.0
// Entry points: attributes and parameters of functions, occupancy.
#include <algorithm>
#include <array>
#include <climits>

#include "softcuda/driver/entry.h"
#include "softcuda/driver/function_info.h"
#include "softcuda/driver/occupancy.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

CUresult FindFunction(CUfunction handle, FunctionPtr* function) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return ResolveFunction(handle, function);
}

CUresult DeviceOf(const Function& function, Device** device) {
  const ContextPtr context = function.context.lock();
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *device = context->device();
  return CUDA_SUCCESS;
}

CUresult ActiveBlocks(int* blocks, CUfunction handle, int threads, size_t shared) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = BlocksPerMultiprocessor(*device, *function, threads, shared);
  return CUDA_SUCCESS;
}

/// The threads of a block of this launch, and the size of clusters that it wishes; zeros: none.
CUresult ReadConfig(const CUlaunchConfig* config, int* threads, std::array<uint32_t, 3>* cluster) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t all = uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
  const bool grid = config->gridDimX != 0 && config->gridDimY != 0 && config->gridDimZ != 0;
  if (all == 0 || all > INT_MAX || !grid) return CUDA_ERROR_INVALID_VALUE;
  *threads = static_cast<int>(all);
  *cluster = {};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = config->attrs[i].value.clusterDim;
    *cluster = {size.x, size.y, size.z};
  }
  return CUDA_SUCCESS;
}

CUresult PotentialBlockSize(int* min_grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of, size_t shared,
                            int limit) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  if (min_grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int warp = device->Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  int most = static_cast<int>(function->info().max_threads);
  if (limit > 0) most = std::min(most, limit);
  int best_threads = 0;
  int best_size = 0;
  int best_blocks = 0;
  for (int size = (most + warp - 1) / warp * warp; size > 0; size -= warp) {
    const int threads = std::min(size, most);
    const size_t dynamic = shared_of != nullptr ? shared_of(threads) : shared;
    const int blocks = BlocksPerMultiprocessor(*device, *function, threads, dynamic);
    if (blocks * threads > best_threads) {
      best_threads = blocks * threads;
      best_size = threads;
      best_blocks = blocks;
    }
  }
  *block = best_size;
  *min_grid = best_blocks * device->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  return GetFunctionAttribute(*device, *function, attribute, value);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  return SetFunctionAttribute(*device, function.get(), attribute, value);
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  function->settings.cache_config = config;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  FunctionPtr function;
  return FindFunction(handle, &function);
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* to, CUfunction handle) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  const ModulePtr module = function->module.lock();
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *to = reinterpret_cast<CUmodule>(module->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->info().name.c_str();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  return GetParameter(*function, index, offset, size);
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  FunctionPtr function;
  return FindFunction(handle, &function);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                             size_t shared) {
  return ActiveBlocks(blocks, function, threads, shared);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                                      size_t shared, unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)) != 0) return CUDA_ERROR_INVALID_VALUE;
  return ActiveBlocks(blocks, function, threads, shared);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return PotentialBlockSize(min_grid, block, function, shared_of, shared, limit);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block, CUfunction function,
                                                           CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                           unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)) != 0) return CUDA_ERROR_INVALID_VALUE;
  return PotentialBlockSize(min_grid, block, function, shared_of, shared, limit);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks, int threads) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (BlocksPerMultiprocessor(*device, *function, threads, 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
  const int all =
      device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / blocks / 128 * 128 - 1024;
  const int most = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const int dynamic = std::min(all, most) - static_cast<int>(function->info().static_shared_bytes);
  *bytes = static_cast<size_t>(std::max(0, dynamic));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  int threads = 0;
  std::array<uint32_t, 3> cluster{};
  bool known = false;
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(ReadConfig(config, &threads, &cluster));
  HAWSER_TRY(FindCluster(*device, *function, cluster, &cluster, &known));
  *clusters = BlocksPerMultiprocessor(*device, *function, threads, config->sharedMemBytes) *
              device->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) /
              static_cast<int>(cluster[0] * cluster[1] * cluster[2]);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig* config) {
  FunctionPtr function;
  HAWSER_TRY(FindFunction(handle, &function));
  Device* device = nullptr;
  HAWSER_TRY(DeviceOf(*function, &device));
  int threads = 0;
  std::array<uint32_t, 3> ignored{};
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(ReadConfig(config, &threads, &ignored));
  const int all = BlocksPerMultiprocessor(*device, *function, threads, config->sharedMemBytes) *
                  device->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  *size = std::min(all, static_cast<int>(LargestCluster(*device, *function)));
  return CUDA_SUCCESS;
}

}  // extern "C"
