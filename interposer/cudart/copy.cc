// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/copy.h"

#include "interposer/cudart/entry.h"
#include "interposer/cudart/formats.h"

namespace hawser::cudart {
namespace {

CUmemorytype SourceType(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyHostToDevice:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToHost:
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

CUmemorytype DestinationType(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDeviceToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    default:
      return CU_MEMORYTYPE_UNIFIED;
  }
}

// The kind that the driver's description amounts to. An array counts as device memory.
cudaMemcpyKind KindOf(CUmemorytype source, CUmemorytype destination) {
  if (source == CU_MEMORYTYPE_UNIFIED || destination == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  const bool from_host = source == CU_MEMORYTYPE_HOST;
  const bool to_host = destination == CU_MEMORYTYPE_HOST;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

// An element size of zero means linear memory, whose elements are bytes.
size_t Scale(size_t element) { return element == 0 ? 1 : element; }

}  // namespace

CopyOrder CopyOrder::Wait() {
  return PerThreadDefault() ? CopyOrder(false, true, CU_STREAM_PER_THREAD) : CopyOrder(true, true, nullptr);
}

CopyOrder CopyOrder::In(cudaStream_t stream) { return {false, false, Resolve(stream)}; }

CUresult CopyOrder::Finish(const Driver& driver, CUresult result) const {
  if (result != CUDA_SUCCESS || legacy_wait_ || !wait_) return result;
  return driver.cuStreamSynchronize(stream_);
}

bool IsCopyKind(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

cudaError_t Copy(const Driver& driver, void* destination, const void* source, size_t size, cudaMemcpyKind kind,
                 const CopyOrder& order) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (size == 0) return cudaSuccess;
  if (destination == nullptr || source == nullptr) return cudaErrorInvalidValue;
  const CUdeviceptr to = Address(destination);
  const CUdeviceptr from = Address(source);
  const CUstream stream = order.stream();
  CUresult result = CUDA_SUCCESS;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      result = order.legacy_wait() ? driver.cuMemcpyHtoD(to, source, size)
                                   : driver.cuMemcpyHtoDAsync(to, source, size, stream);
      break;
    case cudaMemcpyDeviceToHost:
      result = order.legacy_wait() ? driver.cuMemcpyDtoH(destination, from, size)
                                   : driver.cuMemcpyDtoHAsync(destination, from, size, stream);
      break;
    case cudaMemcpyDeviceToDevice:
      result =
          order.legacy_wait() ? driver.cuMemcpyDtoD(to, from, size) : driver.cuMemcpyDtoDAsync(to, from, size, stream);
      break;
    default:  // The driver knows from the addresses.
      result = order.legacy_wait() ? driver.cuMemcpy(to, from, size) : driver.cuMemcpyAsync(to, from, size, stream);
      break;
  }
  return FromDriver(order.Finish(driver, result));
}

cudaError_t Copy2D(const Driver& driver, const CUDA_MEMCPY2D& copy, const CopyOrder& order) {
  if (copy.WidthInBytes == 0 || copy.Height == 0) return cudaSuccess;
  const CUresult result =
      order.legacy_wait() ? driver.cuMemcpy2DUnaligned(&copy) : driver.cuMemcpy2DAsync(&copy, order.stream());
  return FromDriver(order.Finish(driver, result));
}

cudaError_t Copy3D(const Driver& driver, const CUDA_MEMCPY3D& copy, const CopyOrder& order) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return cudaSuccess;
  const CUresult result =
      order.legacy_wait() ? driver.cuMemcpy3D(&copy) : driver.cuMemcpy3DAsync(&copy, order.stream());
  return FromDriver(order.Finish(driver, result));
}

void SetSource(CUDA_MEMCPY2D& copy, const void* pointer, size_t pitch, cudaMemcpyKind kind) {
  copy.srcMemoryType = SourceType(kind);
  if (copy.srcMemoryType == CU_MEMORYTYPE_HOST) {
    copy.srcHost = pointer;
  } else {
    copy.srcDevice = Address(pointer);
  }
  copy.srcPitch = pitch;
}

void SetDestination(CUDA_MEMCPY2D& copy, void* pointer, size_t pitch, cudaMemcpyKind kind) {
  copy.dstMemoryType = DestinationType(kind);
  if (copy.dstMemoryType == CU_MEMORYTYPE_HOST) {
    copy.dstHost = pointer;
  } else {
    copy.dstDevice = Address(pointer);
  }
  copy.dstPitch = pitch;
}

void SetSource(CUDA_MEMCPY2D& copy, cudaArray_const_t array, size_t x_bytes, size_t y) {
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = Array(array);
  copy.srcXInBytes = x_bytes;
  copy.srcY = y;
}

void SetDestination(CUDA_MEMCPY2D& copy, cudaArray_const_t array, size_t x_bytes, size_t y) {
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = Array(array);
  copy.dstXInBytes = x_bytes;
  copy.dstY = y;
}

cudaError_t ElementSize(const Driver& driver, cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  const CUresult result = driver.cuArray3DGetDescriptor(&descriptor, Array(array));
  if (result == CUDA_SUCCESS) *bytes = BytesPerElement(descriptor.Format, descriptor.NumChannels);
  return FromDriver(result);
}

cudaError_t ToDriverCopy(const Driver& driver, const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to) {
  if (!IsCopyKind(from.kind)) return cudaErrorInvalidMemcpyDirection;
  // Exactly one of array and pointer at each end.
  if ((from.srcArray == nullptr) == (from.srcPtr.ptr == nullptr)) return cudaErrorInvalidValue;
  if ((from.dstArray == nullptr) == (from.dstPtr.ptr == nullptr)) return cudaErrorInvalidValue;
  size_t source_element = 0;
  size_t destination_element = 0;
  if (from.srcArray != nullptr) {
    if (const cudaError_t error = ElementSize(driver, from.srcArray, &source_element); error != cudaSuccess) {
      return error;
    }
  }
  if (from.dstArray != nullptr) {
    if (const cudaError_t error = ElementSize(driver, from.dstArray, &destination_element); error != cudaSuccess) {
      return error;
    }
  }
  if (source_element != 0 && destination_element != 0 && source_element != destination_element) {
    return cudaErrorInvalidValue;
  }
  // The extent counts elements of the array that takes part, else bytes.
  const size_t element = Scale(source_element != 0 ? source_element : destination_element);
  *to = {};
  if (__builtin_mul_overflow(from.extent.width, element, &to->WidthInBytes)) return cudaErrorInvalidValue;
  to->Height = from.extent.height;
  to->Depth = from.extent.depth;
  to->srcXInBytes = from.srcPos.x * Scale(source_element);
  to->srcY = from.srcPos.y;
  to->srcZ = from.srcPos.z;
  if (from.srcArray != nullptr) {
    to->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    to->srcArray = Array(from.srcArray);
  } else {
    if (to->WidthInBytes > from.srcPtr.pitch && (to->Height > 1 || to->Depth > 1)) return cudaErrorInvalidPitchValue;
    to->srcMemoryType = SourceType(from.kind);
    to->srcHost = from.srcPtr.ptr;
    to->srcDevice = Address(from.srcPtr.ptr);
    to->srcPitch = from.srcPtr.pitch;
    to->srcHeight = from.srcPtr.ysize;
  }
  to->dstXInBytes = from.dstPos.x * Scale(destination_element);
  to->dstY = from.dstPos.y;
  to->dstZ = from.dstPos.z;
  if (from.dstArray != nullptr) {
    to->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    to->dstArray = Array(from.dstArray);
  } else {
    if (to->WidthInBytes > from.dstPtr.pitch && (to->Height > 1 || to->Depth > 1)) return cudaErrorInvalidPitchValue;
    to->dstMemoryType = DestinationType(from.kind);
    to->dstHost = from.dstPtr.ptr;
    to->dstDevice = Address(from.dstPtr.ptr);
    to->dstPitch = from.dstPtr.pitch;
    to->dstHeight = from.dstPtr.ysize;
  }
  return cudaSuccess;
}

cudaError_t FromDriverCopy(const Driver& driver, const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* to) {
  *to = {};
  size_t source_element = 0;
  size_t destination_element = 0;
  if (from.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    to->srcArray = reinterpret_cast<cudaArray_t>(from.srcArray);
    if (const cudaError_t error = ElementSize(driver, to->srcArray, &source_element); error != cudaSuccess) {
      return error;
    }
  } else {
    to->srcPtr.ptr = from.srcMemoryType == CU_MEMORYTYPE_HOST ? const_cast<void*>(from.srcHost)
                                                              : reinterpret_cast<void*>(from.srcDevice);
    to->srcPtr.pitch = from.srcPitch;
    to->srcPtr.xsize = from.WidthInBytes;
    to->srcPtr.ysize = from.srcHeight;
  }
  if (from.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    to->dstArray = reinterpret_cast<cudaArray_t>(from.dstArray);
    if (const cudaError_t error = ElementSize(driver, to->dstArray, &destination_element); error != cudaSuccess) {
      return error;
    }
  } else {
    to->dstPtr.ptr = from.dstMemoryType == CU_MEMORYTYPE_HOST ? from.dstHost : reinterpret_cast<void*>(from.dstDevice);
    to->dstPtr.pitch = from.dstPitch;
    to->dstPtr.xsize = from.WidthInBytes;
    to->dstPtr.ysize = from.dstHeight;
  }
  to->srcPos = {from.srcXInBytes / Scale(source_element), from.srcY, from.srcZ};
  to->dstPos = {from.dstXInBytes / Scale(destination_element), from.dstY, from.dstZ};
  const size_t element = Scale(source_element != 0 ? source_element : destination_element);
  to->extent = {from.WidthInBytes / element, from.Height, from.Depth};
  to->kind = KindOf(from.srcMemoryType, from.dstMemoryType);
  return cudaSuccess;
}

cudaError_t ToDriverCopy(void* destination, const void* source, size_t size, cudaMemcpyKind kind, CUDA_MEMCPY3D* to) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (destination == nullptr || source == nullptr) return cudaErrorInvalidValue;
  *to = {};
  to->srcMemoryType = SourceType(kind);
  to->srcHost = source;
  to->srcDevice = Address(source);
  to->srcPitch = size;
  to->srcHeight = 1;
  to->dstMemoryType = DestinationType(kind);
  to->dstHost = destination;
  to->dstDevice = Address(destination);
  to->dstPitch = size;
  to->dstHeight = 1;
  to->WidthInBytes = size;
  to->Height = 1;
  to->Depth = 1;
  return cudaSuccess;
}

}  // namespace hawser::cudart
