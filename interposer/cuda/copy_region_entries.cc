// SPDX-License-Identifier: Apache-2.0
// cuMemcpy2D*, cuMemcpy3D*, and the copies from and to arrays.
#include "interposer/cuda/array.h"
#include "interposer/cuda/copy.h"
#include "interposer/cuda/copy_region.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult Synchronous(const CUDA_MEMCPY3D& copy) {
  StreamCommand command;
  if (const CUresult error = command.Begin(nullptr); error != CUDA_SUCCESS) return error;
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST ||
                         (copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED && IsHostMemory(copy.srcDevice));
  if (!from_host) return Settle(command, CopyRegion(command, copy, CopyMode::kSynchronous));
  SynchronousWrite write(command);
  return write.End(CopyRegion(command, copy, CopyMode::kSynchronous));
}

CUresult Asynchronous(const CUDA_MEMCPY3D& copy, CUstream stream) {
  StreamCommand command;
  const CUresult error = command.Begin(stream);
  return error != CUDA_SUCCESS ? error : CopyRegion(command, copy, CopyMode::kAsynchronous);
}

/// A row of an array: cuMemcpyHtoA and its kin speak of bytes in one row.
CUDA_MEMCPY3D Row(size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D FromArray(CUarray array, size_t offset, size_t bytes) {
  CUDA_MEMCPY3D copy = Row(bytes);
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = offset;
  return copy;
}

CUDA_MEMCPY3D ToArray(CUarray array, size_t offset, size_t bytes) {
  CUDA_MEMCPY3D copy = Row(bytes);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstXInBytes = offset;
  return copy;
}

CUDA_MEMCPY3D Plain(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = peer.srcXInBytes;
  copy.srcY = peer.srcY;
  copy.srcZ = peer.srcZ;
  copy.srcLOD = peer.srcLOD;
  copy.srcMemoryType = peer.srcMemoryType;
  copy.srcHost = peer.srcHost;
  copy.srcDevice = peer.srcDevice;
  copy.srcArray = peer.srcArray;
  copy.srcPitch = peer.srcPitch;
  copy.srcHeight = peer.srcHeight;
  copy.dstXInBytes = peer.dstXInBytes;
  copy.dstY = peer.dstY;
  copy.dstZ = peer.dstZ;
  copy.dstLOD = peer.dstLOD;
  copy.dstMemoryType = peer.dstMemoryType;
  copy.dstHost = peer.dstHost;
  copy.dstDevice = peer.dstDevice;
  copy.dstArray = peer.dstArray;
  copy.dstPitch = peer.dstPitch;
  copy.dstHeight = peer.dstHeight;
  copy.WidthInBytes = peer.WidthInBytes;
  copy.Height = peer.Height;
  copy.Depth = peer.Depth;
  return copy;
}

}  // namespace

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Synchronous(ToVolume(*copy));
}
CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Synchronous(ToVolume(*copy));
}
CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Asynchronous(ToVolume(*copy), stream);
}
CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Synchronous(*copy);
}
CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Asynchronous(*copy, stream);
}
CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Synchronous(Plain(*copy));
}
CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : Asynchronous(Plain(*copy), stream);
}

CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  CUDA_MEMCPY3D copy = ToArray(to, offset, bytes);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  return Synchronous(copy);
}
CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  CUDA_MEMCPY3D copy = FromArray(from, offset, bytes);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  return Synchronous(copy);
}
CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t bytes) {
  CUDA_MEMCPY3D copy = ToArray(to, offset, bytes);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  return Synchronous(copy);
}
CUresult CUDAAPI cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t bytes) {
  CUDA_MEMCPY3D copy = FromArray(from, offset, bytes);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = to;
  return Synchronous(copy);
}
CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  CUDA_MEMCPY3D copy = ToArray(to, offset, bytes);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  return Asynchronous(copy, stream);
}
CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  CUDA_MEMCPY3D copy = FromArray(from, offset, bytes);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = to;
  return Asynchronous(copy, stream);
}
CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  CUDA_MEMCPY3D copy = FromArray(from, from_offset, bytes);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = to;
  copy.dstXInBytes = to_offset;
  return Synchronous(copy);
}
