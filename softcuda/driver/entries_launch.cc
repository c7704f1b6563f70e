// SPDX-License-Identifier: Apache-2.0
// Entry points: launches.
#include "softcuda/driver/entry.h"
#include "softcuda/driver/launch_builder.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

/// What a launch asks for beside its sizes.
struct Wishes {
  bool cooperative = false;
  std::array<uint32_t, 3> cluster{};  ///< Zeros: as the function wishes.
  CUevent after_launch = nullptr;     ///< To be recorded behind the kernel.
};

CUresult ReadAttribute(const CUlaunchAttribute& attribute, Wishes* wishes) {
  const CUlaunchAttributeValue& value = attribute.value;
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      wishes->cooperative = value.cooperative != 0;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      wishes->cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      wishes->after_launch = value.programmaticEvent.event;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      wishes->after_launch = value.launchCompletionEvent.event;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:  // Kernels of a stream follow each other here.
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return CUDA_ERROR_NOT_SUPPORTED;  // Kernels change no graphs here.
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Launch(const CUDA_KERNEL_NODE_PARAMS& params, const Wishes& wishes, CUstream handle) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  KernelWork work;
  HAWSER_TRY(BuildLaunch(params, wishes.cooperative, wishes.cluster, &work));
  // A function and the stream that it runs in are of one context.
  if (work.function->context.lock() != stream->context.lock()) return CUDA_ERROR_INVALID_HANDLE;
  HAWSER_TRY(Enqueue(stream, std::move(work)));
  return wishes.after_launch == nullptr ? CUDA_SUCCESS : cuEventRecord(wishes.after_launch, handle);
}

CUDA_KERNEL_NODE_PARAMS Params(CUfunction function, const unsigned (&grid)[3], const unsigned (&block)[3],
                               unsigned shared, void** params, void** extra) {
  CUDA_KERNEL_NODE_PARAMS all{};
  all.func = function;
  all.gridDimX = grid[0];
  all.gridDimY = grid[1];
  all.gridDimZ = grid[2];
  all.blockDimX = block[0];
  all.blockDimY = block[1];
  all.blockDimZ = block[2];
  all.sharedMemBytes = shared;
  all.kernelParams = params;
  all.extra = extra;
  return all;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                CUstream stream, void** params, void** extra) {
  return Launch(Params(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, params, extra), {},
                stream);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared, CUstream stream, void** params) {
  return Launch(Params(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, params, nullptr),
                {true, {}, nullptr}, stream);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Wishes wishes;
  for (unsigned i = 0; i < config->numAttrs; ++i) HAWSER_TRY(ReadAttribute(config->attrs[i], &wishes));
  return Launch(
      Params(function, {config->gridDimX, config->gridDimY, config->gridDimZ},
             {config->blockDimX, config->blockDimY, config->blockDimZ}, config->sharedMemBytes, params, extra),
      wishes, config->hStream);
}

}  // extern "C"
