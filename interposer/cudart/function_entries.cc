// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Execution Control" and "Occupancy": what is known about kernels.
#include <cstring>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/launch.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

CUdevice CurrentHandle() {
  Runtime& runtime = Runtime::Get();
  return runtime.device(runtime.CurrentDevice(CurrentThread()))->handle();
}

bool IsSettable(cudaFuncAttribute attribute) {
  return attribute >= cudaFuncAttributeMaxDynamicSharedMemorySize && attribute < cudaFuncAttributeMax;
}

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
  return InContext([&](const Driver& driver) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    CUresult result = CUDA_SUCCESS;
    const CUdevice device = CurrentHandle();
    // Attributes that an older driver does not know are zero.
    const auto get = [&](CUfunction_attribute attribute) {
      int value = 0;
      const CUresult answer = driver.cuKernelGetAttribute(&value, attribute, kernel, device);
      if (answer != CUDA_SUCCESS && answer != CUDA_ERROR_INVALID_VALUE) result = answer;
      return answer == CUDA_SUCCESS ? value : 0;
    };
    std::memset(attributes, 0, sizeof(*attributes));
    attributes->sharedSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    attributes->constSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes->localSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    attributes->clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    attributes->requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    attributes->requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    attributes->requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    attributes->clusterSchedulingPolicyPreference = get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    attributes->nonPortableClusterSizeAllowed = get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    return FromDriver(result);
  });
}

cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute, int value) {
  return InContext([&](const Driver& driver) {
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    if (!IsSettable(attribute)) return cudaErrorInvalidValue;
    return FromDriver(
        driver.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, CurrentHandle()));
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int ordinal) {
  return WithDevice(ordinal, [&](Device& device) {
    if (kernel == nullptr || !IsSettable(attribute)) return cudaErrorInvalidValue;
    return FromDriver(Runtime::Get().driver().cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value,
                                                                   kernel, device.handle()));
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* host, cudaFuncCache config) {
  return InContext([&](const Driver& driver) {
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    if (config < cudaFuncCachePreferNone || config > cudaFuncCachePreferEqual) return cudaErrorInvalidValue;
    return FromDriver(driver.cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(config), CurrentHandle()));
  });
}

// The banks of shared memory have had one fixed width since compute capability 5.0: there is nothing to set.
cudaError_t cudaFuncSetSharedMemConfig(const void* host, cudaSharedMemConfig config) {
  return InContext([&](const Driver&) {
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    const bool known = config >= cudaSharedMemBankSizeDefault && config <= cudaSharedMemBankSizeEightByte;
    return known ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* host) {
  return InContext([&](const Driver& driver) {
    if (name == nullptr) return cudaErrorInvalidValue;
    if (Function* function = Runtime::Get().registry().FindFunction(host, CurrentThread().functions);
        function != nullptr) {
      *name = function->name.c_str();
      return cudaSuccess;
    }
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    return FromDriver(driver.cuKernelGetName(name, kernel));
  });
}

cudaError_t cudaFuncGetParamInfo(const void* host, size_t index, size_t* offset, size_t* size) {
  return InContext([&](const Driver& driver) {
    if (offset == nullptr) return cudaErrorInvalidValue;
    CUkernel kernel = nullptr;
    if (const cudaError_t error = ResolveKernel(host, &kernel); error != cudaSuccess) return error;
    return FromDriver(driver.cuKernelGetParamInfo(kernel, index, offset, size));
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int block_size,
                                                                   size_t shared_bytes, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (blocks == nullptr) return cudaErrorInvalidValue;
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    return FromDriver(
        driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, flags));
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int block_size,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, block_size, shared_bytes,
                                                                cudaOccupancyDefault);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared_bytes, const void* host, int blocks,
                                                      int block_size) {
  return InContext([&](const Driver& driver) {
    if (shared_bytes == nullptr) return cudaErrorInvalidValue;
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    return FromDriver(driver.cuOccupancyAvailableDynamicSMemPerBlock(shared_bytes, function, blocks, block_size));
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* host, const cudaLaunchConfig_t* config) {
  return InContext([&](const Driver& driver) {
    if (size == nullptr) return cudaErrorInvalidValue;
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    CUlaunchConfig driver_config;
    if (const cudaError_t error = ToDriverConfig(config, &driver_config); error != cudaSuccess) return error;
    return FromDriver(driver.cuOccupancyMaxPotentialClusterSize(size, function, &driver_config));
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* host, const cudaLaunchConfig_t* config) {
  return InContext([&](const Driver& driver) {
    if (count == nullptr) return cudaErrorInvalidValue;
    CUfunction function = nullptr;
    if (const cudaError_t error = ResolveFunction(host, &function); error != cudaSuccess) return error;
    CUlaunchConfig driver_config;
    if (const cudaError_t error = ToDriverConfig(config, &driver_config); error != cudaSuccess) return error;
    return FromDriver(driver.cuOccupancyMaxActiveClusters(count, function, &driver_config));
  });
}

}  // extern "C"
