// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/launch_builder.h"

#include <cstring>

#include "softcuda/driver/entry.h"
#include "softcuda/driver/occupancy.h"

namespace hawser::soft {
namespace {

/// The buffer and size in `extra`; null when they are not there.
CUresult ReadExtra(void** extra, const void** buffer, size_t* bytes) {
  const size_t* size = nullptr;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (*buffer == nullptr || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = *size;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult PackParameters(const Function& function, void** params, void** extra, std::vector<uint8_t>* packed) {
  const exec::KernelInfo& info = function.info();
  packed->assign(info.parameter_bytes, 0);
  if (info.parameters.empty()) return CUDA_SUCCESS;
  if ((params == nullptr) == (extra == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (params == nullptr) {
    const void* buffer = nullptr;
    size_t bytes = 0;
    HAWSER_TRY(ReadExtra(extra, &buffer, &bytes));
    // The last parameter's end counts; padding after it may be left out.
    const exec::KernelParameter& last = info.parameters.back();
    if (bytes < last.offset + last.size) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(packed->data(), buffer, std::min<size_t>(bytes, packed->size()));
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(packed->data() + info.parameters[i].offset, params[i], info.parameters[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult BuildLaunch(const CUDA_KERNEL_NODE_PARAMS& params, bool cooperative, const std::array<uint32_t, 3>& cluster,
                     KernelWork* work) {
  const CUfunction handle = params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  HAWSER_TRY(ResolveFunction(handle, &work->function));
  const ContextPtr owner = work->function->context.lock();
  if (owner == nullptr || owner->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  work->handle = reinterpret_cast<uint64_t>(handle);
  work->grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  work->block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  work->shared_bytes = params.sharedMemBytes;
  work->cooperative = cooperative;
  HAWSER_TRY(ChooseCluster(*owner->device(), cluster, work));
  HAWSER_TRY(CheckLaunch(*owner->device(), *work));
  return PackParameters(*work->function, params.kernelParams, params.extra, &work->parameters);
}

}  // namespace hawser::soft
