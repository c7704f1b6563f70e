// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/device.h"

#include <cstring>

#include "interposer/cudart/errors.h"

namespace hawser::cudart {

cudaError_t Device::Primary(CUcontext* context) {
  *context = held();
  if (*context != nullptr) return cudaSuccess;
  const std::lock_guard lock(mutex_);
  *context = held();
  if (*context != nullptr) return cudaSuccess;
  const CUresult result = driver_.cuDevicePrimaryCtxRetain(context, handle_);
  if (result == CUDA_SUCCESS) held_.store(*context, std::memory_order_release);
  return FromDriver(result);
}

cudaError_t Device::Reset() {
  const std::lock_guard lock(mutex_);
  const CUresult result = driver_.cuDevicePrimaryCtxReset(handle_);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  // The reset does not give back what this runtime retained.
  if (held_.exchange(nullptr, std::memory_order_acq_rel) != nullptr) driver_.cuDevicePrimaryCtxRelease(handle_);
  return FromDriver(result);
}

cudaError_t Device::SetFlags(unsigned flags) { return FromDriver(driver_.cuDevicePrimaryCtxSetFlags(handle_, flags)); }

cudaError_t Device::GetFlags(unsigned* flags) {
  int active = 0;
  return FromDriver(driver_.cuDevicePrimaryCtxGetState(handle_, flags, &active));
}

cudaError_t Device::Attribute(CUdevice_attribute attribute, int* value) {
  const auto index = static_cast<size_t>(attribute);
  if (index == 0 || index >= kAttributes) return cudaErrorInvalidValue;
  std::atomic<int64_t>& cached = attributes_[index].value;
  int64_t known = cached.load(std::memory_order_relaxed);
  if (known == kUnknown) {
    int answer = 0;
    const cudaError_t error = FromDriver(driver_.cuDeviceGetAttribute(&answer, attribute, handle_));
    if (error != cudaSuccess && error != cudaErrorInvalidValue) return error;
    // Outside the range of int: a refusal.
    known = error == cudaSuccess ? int64_t{answer} : (int64_t{1} << 40) + error;
    cached.store(known, std::memory_order_relaxed);
  }
  if (known > INT32_MAX) return static_cast<cudaError_t>(known - (int64_t{1} << 40));
  *value = static_cast<int>(known);
  return cudaSuccess;
}

cudaError_t Device::Properties(cudaDeviceProp* properties) {
  const std::lock_guard lock(mutex_);
  if (!properties_known_) {
    const cudaError_t error = ReadProperties();
    if (error != cudaSuccess) return error;
    properties_known_ = true;
  }
  *properties = properties_;
  return cudaSuccess;
}

cudaError_t Device::ReadProperties() {
  cudaDeviceProp p;
  std::memset(&p, 0, sizeof(p));
  CUresult result = driver_.cuDeviceGetName(p.name, sizeof(p.name), handle_);
  if (result != CUDA_SUCCESS) return FromDriver(result);
  static_assert(sizeof(p.uuid) == sizeof(CUuuid));
  result = driver_.cuDeviceGetUuid(reinterpret_cast<CUuuid*>(&p.uuid), handle_);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED) return FromDriver(result);
  // Only Windows has LUIDs: elsewhere those fields stay zero.
  result = driver_.cuDeviceTotalMem(&p.totalGlobalMem, handle_);
  if (result != CUDA_SUCCESS) return FromDriver(result);

  // What the driver does not know is zero.
  const auto get = [this](CUdevice_attribute attribute) {
    int value = 0;
    return Attribute(attribute, &value) == cudaSuccess ? value : 0;
  };
  const auto get_size = [&get](CUdevice_attribute attribute) {
    return static_cast<size_t>(static_cast<unsigned>(get(attribute)));
  };
#define A(name) CU_DEVICE_ATTRIBUTE_##name
  p.sharedMemPerBlock = get_size(A(MAX_SHARED_MEMORY_PER_BLOCK));
  p.regsPerBlock = get(A(MAX_REGISTERS_PER_BLOCK));
  p.warpSize = get(A(WARP_SIZE));
  p.memPitch = get_size(A(MAX_PITCH));
  p.maxThreadsPerBlock = get(A(MAX_THREADS_PER_BLOCK));
  p.maxThreadsDim[0] = get(A(MAX_BLOCK_DIM_X));
  p.maxThreadsDim[1] = get(A(MAX_BLOCK_DIM_Y));
  p.maxThreadsDim[2] = get(A(MAX_BLOCK_DIM_Z));
  p.maxGridSize[0] = get(A(MAX_GRID_DIM_X));
  p.maxGridSize[1] = get(A(MAX_GRID_DIM_Y));
  p.maxGridSize[2] = get(A(MAX_GRID_DIM_Z));
  p.totalConstMem = get_size(A(TOTAL_CONSTANT_MEMORY));
  p.major = get(A(COMPUTE_CAPABILITY_MAJOR));
  p.minor = get(A(COMPUTE_CAPABILITY_MINOR));
  p.textureAlignment = get_size(A(TEXTURE_ALIGNMENT));
  p.texturePitchAlignment = get_size(A(TEXTURE_PITCH_ALIGNMENT));
  p.multiProcessorCount = get(A(MULTIPROCESSOR_COUNT));
  p.integrated = get(A(INTEGRATED));
  p.canMapHostMemory = get(A(CAN_MAP_HOST_MEMORY));
  p.maxTexture1D = get(A(MAXIMUM_TEXTURE1D_WIDTH));
  p.maxTexture1DMipmap = get(A(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH));
  p.maxTexture2D[0] = get(A(MAXIMUM_TEXTURE2D_WIDTH));
  p.maxTexture2D[1] = get(A(MAXIMUM_TEXTURE2D_HEIGHT));
  p.maxTexture2DMipmap[0] = get(A(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH));
  p.maxTexture2DMipmap[1] = get(A(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT));
  p.maxTexture2DLinear[0] = get(A(MAXIMUM_TEXTURE2D_LINEAR_WIDTH));
  p.maxTexture2DLinear[1] = get(A(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT));
  p.maxTexture2DLinear[2] = get(A(MAXIMUM_TEXTURE2D_LINEAR_PITCH));
  p.maxTexture2DGather[0] = get(A(MAXIMUM_TEXTURE2D_GATHER_WIDTH));
  p.maxTexture2DGather[1] = get(A(MAXIMUM_TEXTURE2D_GATHER_HEIGHT));
  p.maxTexture3D[0] = get(A(MAXIMUM_TEXTURE3D_WIDTH));
  p.maxTexture3D[1] = get(A(MAXIMUM_TEXTURE3D_HEIGHT));
  p.maxTexture3D[2] = get(A(MAXIMUM_TEXTURE3D_DEPTH));
  p.maxTexture3DAlt[0] = get(A(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE));
  p.maxTexture3DAlt[1] = get(A(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE));
  p.maxTexture3DAlt[2] = get(A(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE));
  p.maxTextureCubemap = get(A(MAXIMUM_TEXTURECUBEMAP_WIDTH));
  p.maxTexture1DLayered[0] = get(A(MAXIMUM_TEXTURE1D_LAYERED_WIDTH));
  p.maxTexture1DLayered[1] = get(A(MAXIMUM_TEXTURE1D_LAYERED_LAYERS));
  p.maxTexture2DLayered[0] = get(A(MAXIMUM_TEXTURE2D_LAYERED_WIDTH));
  p.maxTexture2DLayered[1] = get(A(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT));
  p.maxTexture2DLayered[2] = get(A(MAXIMUM_TEXTURE2D_LAYERED_LAYERS));
  p.maxTextureCubemapLayered[0] = get(A(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH));
  p.maxTextureCubemapLayered[1] = get(A(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS));
  p.maxSurface1D = get(A(MAXIMUM_SURFACE1D_WIDTH));
  p.maxSurface2D[0] = get(A(MAXIMUM_SURFACE2D_WIDTH));
  p.maxSurface2D[1] = get(A(MAXIMUM_SURFACE2D_HEIGHT));
  p.maxSurface3D[0] = get(A(MAXIMUM_SURFACE3D_WIDTH));
  p.maxSurface3D[1] = get(A(MAXIMUM_SURFACE3D_HEIGHT));
  p.maxSurface3D[2] = get(A(MAXIMUM_SURFACE3D_DEPTH));
  p.maxSurface1DLayered[0] = get(A(MAXIMUM_SURFACE1D_LAYERED_WIDTH));
  p.maxSurface1DLayered[1] = get(A(MAXIMUM_SURFACE1D_LAYERED_LAYERS));
  p.maxSurface2DLayered[0] = get(A(MAXIMUM_SURFACE2D_LAYERED_WIDTH));
  p.maxSurface2DLayered[1] = get(A(MAXIMUM_SURFACE2D_LAYERED_HEIGHT));
  p.maxSurface2DLayered[2] = get(A(MAXIMUM_SURFACE2D_LAYERED_LAYERS));
  p.maxSurfaceCubemap = get(A(MAXIMUM_SURFACECUBEMAP_WIDTH));
  p.maxSurfaceCubemapLayered[0] = get(A(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH));
  p.maxSurfaceCubemapLayered[1] = get(A(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS));
  p.surfaceAlignment = get_size(A(SURFACE_ALIGNMENT));
  p.concurrentKernels = get(A(CONCURRENT_KERNELS));
  p.ECCEnabled = get(A(ECC_ENABLED));
  p.pciBusID = get(A(PCI_BUS_ID));
  p.pciDeviceID = get(A(PCI_DEVICE_ID));
  p.pciDomainID = get(A(PCI_DOMAIN_ID));
  p.tccDriver = get(A(TCC_DRIVER));
  p.asyncEngineCount = get(A(ASYNC_ENGINE_COUNT));
  p.unifiedAddressing = get(A(UNIFIED_ADDRESSING));
  p.memoryBusWidth = get(A(GLOBAL_MEMORY_BUS_WIDTH));
  p.l2CacheSize = get(A(L2_CACHE_SIZE));
  p.persistingL2CacheMaxSize = get(A(MAX_PERSISTING_L2_CACHE_SIZE));
  p.maxThreadsPerMultiProcessor = get(A(MAX_THREADS_PER_MULTIPROCESSOR));
  p.streamPrioritiesSupported = get(A(STREAM_PRIORITIES_SUPPORTED));
  p.globalL1CacheSupported = get(A(GLOBAL_L1_CACHE_SUPPORTED));
  p.localL1CacheSupported = get(A(LOCAL_L1_CACHE_SUPPORTED));
  p.sharedMemPerMultiprocessor = get_size(A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  p.regsPerMultiprocessor = get(A(MAX_REGISTERS_PER_MULTIPROCESSOR));
  p.managedMemory = get(A(MANAGED_MEMORY));
  p.isMultiGpuBoard = get(A(MULTI_GPU_BOARD));
  p.multiGpuBoardGroupID = get(A(MULTI_GPU_BOARD_GROUP_ID));
  p.hostNativeAtomicSupported = get(A(HOST_NATIVE_ATOMIC_SUPPORTED));
  p.pageableMemoryAccess = get(A(PAGEABLE_MEMORY_ACCESS));
  p.concurrentManagedAccess = get(A(CONCURRENT_MANAGED_ACCESS));
  p.computePreemptionSupported = get(A(COMPUTE_PREEMPTION_SUPPORTED));
  p.canUseHostPointerForRegisteredMem = get(A(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM));
  p.cooperativeLaunch = get(A(COOPERATIVE_LAUNCH));
  p.sharedMemPerBlockOptin = get_size(A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  p.pageableMemoryAccessUsesHostPageTables = get(A(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES));
  p.directManagedMemAccessFromHost = get(A(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST));
  p.maxBlocksPerMultiProcessor = get(A(MAX_BLOCKS_PER_MULTIPROCESSOR));
  p.accessPolicyMaxWindowSize = get(A(MAX_ACCESS_POLICY_WINDOW_SIZE));
  p.reservedSharedMemPerBlock = get_size(A(RESERVED_SHARED_MEMORY_PER_BLOCK));
  p.hostRegisterSupported = get(A(HOST_REGISTER_SUPPORTED));
  p.sparseCudaArraySupported = get(A(SPARSE_CUDA_ARRAY_SUPPORTED));
  p.hostRegisterReadOnlySupported = get(A(READ_ONLY_HOST_REGISTER_SUPPORTED));
  p.timelineSemaphoreInteropSupported = get(A(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED));
  p.memoryPoolsSupported = get(A(MEMORY_POOLS_SUPPORTED));
  p.gpuDirectRDMASupported = get(A(GPU_DIRECT_RDMA_SUPPORTED));
  p.gpuDirectRDMAFlushWritesOptions = static_cast<unsigned>(get(A(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)));
  p.gpuDirectRDMAWritesOrdering = get(A(GPU_DIRECT_RDMA_WRITES_ORDERING));
  p.memoryPoolSupportedHandleTypes = static_cast<unsigned>(get(A(MEMPOOL_SUPPORTED_HANDLE_TYPES)));
  p.deferredMappingCudaArraySupported = get(A(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED));
  p.ipcEventSupported = get(A(IPC_EVENT_SUPPORTED));
  p.clusterLaunch = get(A(CLUSTER_LAUNCH));
  p.unifiedFunctionPointers = get(A(UNIFIED_FUNCTION_POINTERS));
  p.deviceNumaConfig = get(A(NUMA_CONFIG));
  p.deviceNumaId = get(A(NUMA_ID));
  p.mpsEnabled = get(A(MPS_ENABLED));
  p.hostNumaId = get(A(HOST_NUMA_ID));
  p.gpuPciDeviceID = static_cast<unsigned>(get(A(GPU_PCI_DEVICE_ID)));
  p.gpuPciSubsystemID = static_cast<unsigned>(get(A(GPU_PCI_SUBSYSTEM_ID)));
  p.hostNumaMultinodeIpcSupported = get(A(HOST_NUMA_MULTINODE_IPC_SUPPORTED));
#undef A
  properties_ = p;
  return cudaSuccess;
}

}  // namespace hawser::cudart
