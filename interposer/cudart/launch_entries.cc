// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Execution Control": launches.
#include "interposer/cudart/entry.h"
#include "interposer/cudart/kernel_handles.h"
#include "interposer/cudart/launch.h"

namespace hawser::cudart {
namespace {

// Both interfaces number and lay out launch attributes alike.
static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cudaAccessPolicyWindow) == sizeof(CUaccessPolicyWindow));
static_assert(int{cudaLaunchAttributeCooperative} == int{CU_LAUNCH_ATTRIBUTE_COOPERATIVE});
static_assert(int{cudaLaunchAttributeProgrammaticEvent} == int{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT});
static_assert(int{cudaLaunchAttributeNvlinkUtilCentricScheduling} ==
              int{CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING});

}  // namespace

cudaError_t ToDriverConfig(const cudaLaunchConfig_t* config, CUlaunchConfig* driver_config) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return cudaErrorInvalidValue;
  if (config->dynamicSmemBytes > UINT32_MAX) return cudaErrorInvalidValue;
  *driver_config = {};
  driver_config->gridDimX = config->gridDim.x;
  driver_config->gridDimY = config->gridDim.y;
  driver_config->gridDimZ = config->gridDim.z;
  driver_config->blockDimX = config->blockDim.x;
  driver_config->blockDimY = config->blockDim.y;
  driver_config->blockDimZ = config->blockDim.z;
  driver_config->sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  driver_config->hStream = Resolve(config->stream);
  driver_config->attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  driver_config->numAttrs = config->numAttrs;
  return cudaSuccess;
}

}  // namespace hawser::cudart

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    return Launch(driver, function, grid, block, arguments, shared_bytes, Resolve(stream));
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host, void** arguments) {
  return InContext([&](const Driver& driver) {
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    CUlaunchConfig driver_config;
    if (const cudaError_t error = ToDriverConfig(config, &driver_config); error != cudaSuccess) return error;
    if (!IsLaunchable(config->gridDim, config->blockDim)) return cudaErrorInvalidConfiguration;
    return FromDriver(driver.cuLaunchKernelEx(&driver_config, function, arguments, nullptr));
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  return InContext([&](const Driver& driver) {
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    if (!IsLaunchable(grid, block)) return cudaErrorInvalidConfiguration;
    if (shared_bytes > UINT32_MAX) return cudaErrorInvalidValue;
    return FromDriver(driver.cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                       static_cast<unsigned>(shared_bytes), Resolve(stream),
                                                       arguments));
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  return InContext([&](const Driver& driver) {
    if (function == nullptr) return cudaErrorInvalidValue;
    return FromDriver(driver.cuLaunchHostFunc(Resolve(stream), function, user_data));
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* host) {
  return InContext([&](const Driver& driver) {
    if (function == nullptr) return cudaErrorInvalidValue;
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    return FromDriver(driver.cuKernelGetFunction(function, kernel));
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return InContext([&](const Driver&) {
    if (kernel == nullptr) return cudaErrorInvalidValue;
    const cudaError_t error = ResolveKernel(host, kernel);
    if (error == cudaSuccess) KernelHandles::Get().Add(*kernel);
    return error;
  });
}

}  // extern "C"
