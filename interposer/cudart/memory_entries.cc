// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Memory Management": allocating, and what is known about addresses.
#include <cstring>

#include "interposer/cudart/entry.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

// The widest access that a pitch must suit (CUDA C++ programming guide: 4, 8 or 16 bytes).
constexpr unsigned kPitchElement = 16;

cudaError_t AllocatePitch(const Driver& driver, void** pointer, size_t* pitch, size_t width, size_t height) {
  *pointer = nullptr;
  *pitch = 0;
  if (width == 0 || height == 0) return cudaSuccess;
  CUdeviceptr address = 0;
  const CUresult result = driver.cuMemAllocPitch(&address, pitch, width, height, kPitchElement);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return FromDriver(result);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pointer = nullptr;
    if (size == 0) return CUDA_SUCCESS;
    CUdeviceptr address = 0;
    const CUresult result = driver.cuMemAlloc(&address, size);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
    return AllocatePitch(driver, pointer, pitch, width, height);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  return InContext([&](const Driver& driver) {
    if (pitched == nullptr) return cudaErrorInvalidValue;
    size_t rows = 0;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return AllocatePitch(driver, &pitched->ptr, &pitched->pitch, extent.width, rows);
  });
}

cudaError_t cudaFree(void* pointer) {
  // Programs write cudaFree(0) to have the context made.
  return InContext(
      [&](const Driver& driver) { return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFree(Address(pointer)); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned flags) {
  return InContext([&](const Driver& driver) {
    constexpr unsigned kFlags = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (pointer == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    *pointer = nullptr;
    return size == 0 ? CUDA_SUCCESS : driver.cuMemHostAlloc(pointer, size, flags);
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) { return cudaHostAlloc(pointer, size, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* pointer) {
  return InContext(
      [&](const Driver& driver) { return pointer == nullptr ? CUDA_SUCCESS : driver.cuMemFreeHost(pointer); });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemHostRegister(pointer, size, flags);
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return InContext([&](const Driver& driver) {
    return pointer == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuMemHostUnregister(pointer);
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (device == nullptr || host == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr address = 0;
    const CUresult result = driver.cuMemHostGetDevicePointer(&address, host, 0);
    *device = result == CUDA_SUCCESS ? reinterpret_cast<void*>(address) : nullptr;
    return result;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return InContext([&](const Driver& driver) {
    return flags == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuMemHostGetFlags(flags, host);
  });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr || size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    CUdeviceptr address = 0;
    const CUresult result = driver.cuMemAllocManaged(&address, size, flags);
    if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return InContext([&](const Driver& driver) {
    if (free_bytes == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuMemGetInfo(free_bytes, total);
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return InContext([&](const Driver& driver) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    unsigned type = 0;
    int ordinal = -2;
    unsigned managed = 0;
    CUdeviceptr device = 0;
    void* host = nullptr;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* answers[] = {&type, &ordinal, &managed, &device, &host};
    const CUresult result = driver.cuPointerGetAttributes(5, wanted, answers, Address(pointer));
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE) return FromDriver(result);
    std::memset(attributes, 0, sizeof(*attributes));
    if (result == CUDA_ERROR_INVALID_VALUE || (type == 0 && managed == 0)) {
      // Ordinary host memory: no error since CUDA 11.
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = -2;
      attributes->hostPointer = const_cast<void*>(pointer);
      return cudaSuccess;
    }
    attributes->device = ordinal;
    attributes->devicePointer = reinterpret_cast<void*>(device);
    attributes->hostPointer = host;
    if (managed != 0) {
      attributes->type = cudaMemoryTypeManaged;
      attributes->devicePointer = const_cast<void*>(pointer);
      attributes->hostPointer = const_cast<void*>(pointer);
    } else {
      attributes->type = type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
      if (type == CU_MEMORYTYPE_DEVICE) attributes->hostPointer = nullptr;
    }
    return cudaSuccess;
  });
}

}  // extern "C"
