// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "interposer/cudart/abi12.h"

namespace hawser::cudart {

cudaError_t ToProperties12(Device& device, const cudaDeviceProp& from, DeviceProperties12* to) {
  std::memset(to, 0, sizeof(*to));
  static_assert(sizeof(to->name) == sizeof(from.name));
  std::memcpy(to->name, from.name, sizeof(to->name));
  to->uuid = from.uuid;
  static_assert(sizeof(to->luid) == sizeof(from.luid));
  std::memcpy(to->luid, from.luid, sizeof(to->luid));
  to->luidDeviceNodeMask = from.luidDeviceNodeMask;
  to->totalGlobalMem = from.totalGlobalMem;
  to->sharedMemPerBlock = from.sharedMemPerBlock;
  to->regsPerBlock = from.regsPerBlock;
  to->warpSize = from.warpSize;
  to->memPitch = from.memPitch;
  to->maxThreadsPerBlock = from.maxThreadsPerBlock;
  static_assert(sizeof(to->maxThreadsDim) == sizeof(from.maxThreadsDim));
  std::memcpy(to->maxThreadsDim, from.maxThreadsDim, sizeof(to->maxThreadsDim));
  static_assert(sizeof(to->maxGridSize) == sizeof(from.maxGridSize));
  std::memcpy(to->maxGridSize, from.maxGridSize, sizeof(to->maxGridSize));
  to->totalConstMem = from.totalConstMem;
  to->major = from.major;
  to->minor = from.minor;
  to->textureAlignment = from.textureAlignment;
  to->texturePitchAlignment = from.texturePitchAlignment;
  to->multiProcessorCount = from.multiProcessorCount;
  to->integrated = from.integrated;
  to->canMapHostMemory = from.canMapHostMemory;
  to->maxTexture1D = from.maxTexture1D;
  to->maxTexture1DMipmap = from.maxTexture1DMipmap;
  static_assert(sizeof(to->maxTexture2D) == sizeof(from.maxTexture2D));
  std::memcpy(to->maxTexture2D, from.maxTexture2D, sizeof(to->maxTexture2D));
  static_assert(sizeof(to->maxTexture2DMipmap) == sizeof(from.maxTexture2DMipmap));
  std::memcpy(to->maxTexture2DMipmap, from.maxTexture2DMipmap, sizeof(to->maxTexture2DMipmap));
  static_assert(sizeof(to->maxTexture2DLinear) == sizeof(from.maxTexture2DLinear));
  std::memcpy(to->maxTexture2DLinear, from.maxTexture2DLinear, sizeof(to->maxTexture2DLinear));
  static_assert(sizeof(to->maxTexture2DGather) == sizeof(from.maxTexture2DGather));
  std::memcpy(to->maxTexture2DGather, from.maxTexture2DGather, sizeof(to->maxTexture2DGather));
  static_assert(sizeof(to->maxTexture3D) == sizeof(from.maxTexture3D));
  std::memcpy(to->maxTexture3D, from.maxTexture3D, sizeof(to->maxTexture3D));
  static_assert(sizeof(to->maxTexture3DAlt) == sizeof(from.maxTexture3DAlt));
  std::memcpy(to->maxTexture3DAlt, from.maxTexture3DAlt, sizeof(to->maxTexture3DAlt));
  to->maxTextureCubemap = from.maxTextureCubemap;
  static_assert(sizeof(to->maxTexture1DLayered) == sizeof(from.maxTexture1DLayered));
  std::memcpy(to->maxTexture1DLayered, from.maxTexture1DLayered, sizeof(to->maxTexture1DLayered));
  static_assert(sizeof(to->maxTexture2DLayered) == sizeof(from.maxTexture2DLayered));
  std::memcpy(to->maxTexture2DLayered, from.maxTexture2DLayered, sizeof(to->maxTexture2DLayered));
  static_assert(sizeof(to->maxTextureCubemapLayered) == sizeof(from.maxTextureCubemapLayered));
  std::memcpy(to->maxTextureCubemapLayered, from.maxTextureCubemapLayered, sizeof(to->maxTextureCubemapLayered));
  to->maxSurface1D = from.maxSurface1D;
  static_assert(sizeof(to->maxSurface2D) == sizeof(from.maxSurface2D));
  std::memcpy(to->maxSurface2D, from.maxSurface2D, sizeof(to->maxSurface2D));
  static_assert(sizeof(to->maxSurface3D) == sizeof(from.maxSurface3D));
  std::memcpy(to->maxSurface3D, from.maxSurface3D, sizeof(to->maxSurface3D));
  static_assert(sizeof(to->maxSurface1DLayered) == sizeof(from.maxSurface1DLayered));
  std::memcpy(to->maxSurface1DLayered, from.maxSurface1DLayered, sizeof(to->maxSurface1DLayered));
  static_assert(sizeof(to->maxSurface2DLayered) == sizeof(from.maxSurface2DLayered));
  std::memcpy(to->maxSurface2DLayered, from.maxSurface2DLayered, sizeof(to->maxSurface2DLayered));
  to->maxSurfaceCubemap = from.maxSurfaceCubemap;
  static_assert(sizeof(to->maxSurfaceCubemapLayered) == sizeof(from.maxSurfaceCubemapLayered));
  std::memcpy(to->maxSurfaceCubemapLayered, from.maxSurfaceCubemapLayered, sizeof(to->maxSurfaceCubemapLayered));
  to->surfaceAlignment = from.surfaceAlignment;
  to->concurrentKernels = from.concurrentKernels;
  to->ECCEnabled = from.ECCEnabled;
  to->pciBusID = from.pciBusID;
  to->pciDeviceID = from.pciDeviceID;
  to->pciDomainID = from.pciDomainID;
  to->tccDriver = from.tccDriver;
  to->asyncEngineCount = from.asyncEngineCount;
  to->unifiedAddressing = from.unifiedAddressing;
  to->memoryBusWidth = from.memoryBusWidth;
  to->l2CacheSize = from.l2CacheSize;
  to->persistingL2CacheMaxSize = from.persistingL2CacheMaxSize;
  to->maxThreadsPerMultiProcessor = from.maxThreadsPerMultiProcessor;
  to->streamPrioritiesSupported = from.streamPrioritiesSupported;
  to->globalL1CacheSupported = from.globalL1CacheSupported;
  to->localL1CacheSupported = from.localL1CacheSupported;
  to->sharedMemPerMultiprocessor = from.sharedMemPerMultiprocessor;
  to->regsPerMultiprocessor = from.regsPerMultiprocessor;
  to->managedMemory = from.managedMemory;
  to->isMultiGpuBoard = from.isMultiGpuBoard;
  to->multiGpuBoardGroupID = from.multiGpuBoardGroupID;
  to->hostNativeAtomicSupported = from.hostNativeAtomicSupported;
  to->pageableMemoryAccess = from.pageableMemoryAccess;
  to->concurrentManagedAccess = from.concurrentManagedAccess;
  to->computePreemptionSupported = from.computePreemptionSupported;
  to->canUseHostPointerForRegisteredMem = from.canUseHostPointerForRegisteredMem;
  to->cooperativeLaunch = from.cooperativeLaunch;
  to->sharedMemPerBlockOptin = from.sharedMemPerBlockOptin;
  to->pageableMemoryAccessUsesHostPageTables = from.pageableMemoryAccessUsesHostPageTables;
  to->directManagedMemAccessFromHost = from.directManagedMemAccessFromHost;
  to->maxBlocksPerMultiProcessor = from.maxBlocksPerMultiProcessor;
  to->accessPolicyMaxWindowSize = from.accessPolicyMaxWindowSize;
  to->reservedSharedMemPerBlock = from.reservedSharedMemPerBlock;
  to->hostRegisterSupported = from.hostRegisterSupported;
  to->sparseCudaArraySupported = from.sparseCudaArraySupported;
  to->hostRegisterReadOnlySupported = from.hostRegisterReadOnlySupported;
  to->timelineSemaphoreInteropSupported = from.timelineSemaphoreInteropSupported;
  to->memoryPoolsSupported = from.memoryPoolsSupported;
  to->gpuDirectRDMASupported = from.gpuDirectRDMASupported;
  to->gpuDirectRDMAFlushWritesOptions = from.gpuDirectRDMAFlushWritesOptions;
  to->gpuDirectRDMAWritesOrdering = from.gpuDirectRDMAWritesOrdering;
  to->memoryPoolSupportedHandleTypes = from.memoryPoolSupportedHandleTypes;
  to->deferredMappingCudaArraySupported = from.deferredMappingCudaArraySupported;
  to->ipcEventSupported = from.ipcEventSupported;
  to->clusterLaunch = from.clusterLaunch;
  to->unifiedFunctionPointers = from.unifiedFunctionPointers;
  const auto get = [&device](CUdevice_attribute attribute) {
    int value = 0;
    return device.Attribute(attribute, &value) == cudaSuccess ? value : 0;
  };
  to->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  to->deviceOverlap = get(CU_DEVICE_ATTRIBUTE_GPU_OVERLAP);
  to->kernelExecTimeoutEnabled = get(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
  to->computeMode = get(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  to->maxTexture1DLinear = get(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
  to->memoryClockRate = get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  to->singleToDoublePrecisionPerfRatio = get(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
  to->cooperativeMultiDeviceLaunch = get(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH);
  return cudaSuccess;
}

}  // namespace hawser::cudart
