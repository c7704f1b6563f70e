// SPDX-License-Identifier: Apache-2.0
// Entry points: copies and fills, at once and in streams.
#include "softcuda/driver/copy_builder.h"
#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

constexpr CUmemorytype kHost = CU_MEMORYTYPE_HOST;
constexpr CUmemorytype kDevice = CU_MEMORYTYPE_DEVICE;
constexpr CUmemorytype kUnified = CU_MEMORYTYPE_UNIFIED;

CUdeviceptr Address(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

/// Submits a copy; `stream` 0 with Wait::kDone is what the calls without a stream do.
CUresult Submit(const CUDA_MEMCPY3D& copy, CUstream handle, Wait wait) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  CopyWork work;
  HAWSER_TRY(BuildCopy(copy, &work));
  return Enqueue(stream, std::move(work), wait);
}

CUresult Linear(CUdeviceptr to, CUmemorytype to_type, CUdeviceptr from, CUmemorytype from_type, size_t bytes,
                CUstream handle, Wait wait) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  CopyWork work;
  HAWSER_TRY(BuildLinearCopy(to, to_type, from, from_type, bytes, &work));
  if (bytes == 0 && !IsCapturing(*stream)) return CUDA_SUCCESS;
  return Enqueue(stream, std::move(work), wait);
}

/// A part of an array as one side of a row copy.
struct ArrayPart {
  CUarray array;
  size_t offset;
};

CUresult WithArray(ArrayPart to, ArrayPart from, CUmemorytype linear_type, CUdeviceptr linear, size_t bytes,
                   CUstream stream, Wait wait) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from.array != nullptr ? CU_MEMORYTYPE_ARRAY : linear_type;
  copy.dstMemoryType = to.array != nullptr ? CU_MEMORYTYPE_ARRAY : linear_type;
  copy.srcArray = from.array;
  copy.dstArray = to.array;
  copy.srcXInBytes = from.offset;
  copy.dstXInBytes = to.offset;
  if (from.array == nullptr) {
    copy.srcHost = reinterpret_cast<const void*>(linear);
    copy.srcDevice = linear;
  }
  if (to.array == nullptr) {
    copy.dstHost = reinterpret_cast<void*>(linear);
    copy.dstDevice = linear;
  }
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return Submit(copy, stream, wait);
}

CUresult Fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
              CUstream handle, Wait wait) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  StreamPtr stream;
  HAWSER_TRY(GetStream(handle, &stream));
  MemsetWork work;
  HAWSER_TRY(BuildMemset({to, pitch, value, element, width, height}, &work));
  return Enqueue(stream, work, wait);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Linear(to, kUnified, from, kUnified, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Linear(to, kUnified, from, kUnified, bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return Linear(to, kDevice, Address(from), kHost, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return Linear(Address(to), kHost, from, kDevice, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Linear(to, kDevice, from, kDevice, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Linear(to, kDevice, Address(from), kHost, bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Linear(Address(to), kHost, from, kDevice, bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Linear(to, kDevice, from, kDevice, bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return Linear(to, kDevice, from, kDevice, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                                   CUstream stream) {
  return Linear(to, kDevice, from, kDevice, bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return WithArray({to, offset}, {nullptr, 0}, kDevice, from, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return WithArray({nullptr, 0}, {from, offset}, kDevice, to, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) {
  return WithArray({to, offset}, {nullptr, 0}, kHost, Address(from), bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) {
  return WithArray({nullptr, 0}, {from, offset}, kHost, Address(to), bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  return WithArray({to, to_offset}, {from, from_offset}, kDevice, 0, bytes, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  return WithArray({to, offset}, {nullptr, 0}, kHost, Address(from), bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  return WithArray({nullptr, 0}, {from, offset}, kHost, Address(to), bytes, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Submit(Widen(*copy), nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return cuMemcpy2D_v2(copy); }

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Submit(Widen(*copy), stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Submit(*copy, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Submit(*copy, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Submit(WithoutPeers(*copy), nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Submit(WithoutPeers(*copy), stream, Wait::kNo);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return Fill(to, 0, value, 1, count, 1, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return Fill(to, 0, value, 2, count, 1, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return Fill(to, 0, value, 4, count, 1, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return Fill(to, pitch, value, 1, width, height, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return Fill(to, pitch, value, 2, width, height, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
  return Fill(to, pitch, value, 4, width, height, nullptr, Wait::kDone);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return Fill(to, 0, value, 1, count, 1, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return Fill(to, 0, value, 2, count, 1, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return Fill(to, 0, value, 4, count, 1, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
  return Fill(to, pitch, value, 1, width, height, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                    CUstream stream) {
  return Fill(to, pitch, value, 2, width, height, stream, Wait::kNo);
}

CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                    CUstream stream) {
  return Fill(to, pitch, value, 4, width, height, stream, Wait::kNo);
}

}  // extern "C"
