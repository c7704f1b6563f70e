// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/copy_builder.h"

#include "softcuda/driver/driver.h"

namespace hawser::soft {
namespace {

/// a * b + c; false when it does not fit into 64 bits.
bool MultiplyAdd(uint64_t a, uint64_t b, uint64_t c, uint64_t* result) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, result);
}

/// One side of a copy, as the caller gives it.
struct End {
  CUmemorytype type;
  uint64_t address;
  size_t x, y, z;
  size_t pitch, height;
};

/// First byte and number of bytes from there to the last one that is touched.
bool Extent(const End& end, const CUDA_MEMCPY3D& copy, uint64_t* first, uint64_t* bytes) {
  uint64_t slice = 0;
  uint64_t start = 0;
  uint64_t last = 0;
  return MultiplyAdd(end.pitch, end.height, 0, &slice) && MultiplyAdd(end.y, end.pitch, end.x, &start) &&
         MultiplyAdd(end.z, slice, start, &start) && !__builtin_add_overflow(end.address, start, first) &&
         MultiplyAdd(copy.Height - 1, end.pitch, copy.WidthInBytes, &last) &&
         MultiplyAdd(copy.Depth - 1, slice, last, bytes);
}

/// Fills in what may be left out, checks the rest.
CUresult CheckLinear(const CUDA_MEMCPY3D& copy, bool destination, End* end, bool* pageable) {
  const uint64_t row = copy.WidthInBytes + end->x;
  if (row < end->x) return CUDA_ERROR_INVALID_VALUE;
  if (end->pitch == 0 && copy.Height == 1 && end->y == 0) end->pitch = row;
  if (end->height == 0 && copy.Depth == 1 && end->z == 0) end->height = copy.Height + end->y;
  if ((copy.Height > 1 || copy.Depth > 1) && end->pitch < row) return CUDA_ERROR_INVALID_VALUE;
  if (copy.Depth > 1 && end->height < copy.Height + end->y) return CUDA_ERROR_INVALID_VALUE;
  uint64_t first = 0;
  uint64_t bytes = 0;
  if (!Extent(*end, copy, &first, &bytes) || first + bytes < first || end->address == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Driver& driver = *GetDriver();
  if (destination ? driver.memory.CoversForWriting(first, bytes) : driver.memory.Covers(first, bytes)) {
    *pageable = false;
    return CUDA_SUCCESS;
  }
  // Memory of the program itself, which nobody here knows; but never a piece of the devices' range.
  const bool ours = driver.addresses.Contains(first) || driver.addresses.Contains(first + bytes - 1);
  if (end->type == CU_MEMORYTYPE_DEVICE || ours) return CUDA_ERROR_INVALID_VALUE;
  *pageable = true;
  return CUDA_SUCCESS;
}

CUresult CheckArray(const CUDA_MEMCPY3D& copy, const End& end, CUarray handle, ArrayPtr* to) {
  *to = GetDriver()->arrays.Find(handle);
  if (*to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Array& array = **to;
  const auto fits = [](size_t at, size_t size, size_t all) { return at <= all && size <= all - at; };
  if (!fits(end.x, copy.WidthInBytes, array.row_pitch) || !fits(end.y, copy.Height, array.height()) ||
      !fits(end.z, copy.Depth, array.depth())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult BuildCopy(const CUDA_MEMCPY3D& copy, CopyWork* work) {
  work->copy = copy;
  CUDA_MEMCPY3D& c = work->copy;
  if (c.WidthInBytes == 0 || c.Height == 0 || c.Depth == 0) {  // Nothing to do, which is fine.
    c.WidthInBytes = c.Height = c.Depth = 0;
    return CUDA_SUCCESS;
  }
  if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  End from{c.srcMemoryType, c.srcDevice, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight};
  End to{c.dstMemoryType, c.dstDevice, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight};
  if (from.type == CU_MEMORYTYPE_HOST) from.address = reinterpret_cast<uint64_t>(c.srcHost);
  if (to.type == CU_MEMORYTYPE_HOST) to.address = reinterpret_cast<uint64_t>(c.dstHost);
  CUresult result = CUDA_SUCCESS;
  if (from.type == CU_MEMORYTYPE_ARRAY) {
    result = CheckArray(c, from, c.srcArray, &work->source);
  } else {
    result = from.type < CU_MEMORYTYPE_HOST || from.type > CU_MEMORYTYPE_UNIFIED
                 ? CUDA_ERROR_INVALID_VALUE
                 : CheckLinear(c, false, &from, &work->pageable_source);
    work->known_source = !work->pageable_source;
    c.srcPitch = from.pitch;
    c.srcHeight = from.height;
  }
  if (result != CUDA_SUCCESS) return result;
  if (to.type == CU_MEMORYTYPE_ARRAY) {
    result = CheckArray(c, to, c.dstArray, &work->target);
  } else {
    result = to.type < CU_MEMORYTYPE_HOST || to.type > CU_MEMORYTYPE_UNIFIED
                 ? CUDA_ERROR_INVALID_VALUE
                 : CheckLinear(c, true, &to, &work->pageable_target);
    work->known_target = !work->pageable_target;
    c.dstPitch = to.pitch;
    c.dstHeight = to.height;
  }
  return result;
}

CUresult BuildLinearCopy(CUdeviceptr to, CUmemorytype to_type, CUdeviceptr from, CUmemorytype from_type, size_t bytes,
                         CopyWork* work) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from_type;
  copy.srcHost = reinterpret_cast<const void*>(from);
  copy.srcDevice = from;
  copy.dstMemoryType = to_type;
  copy.dstHost = reinterpret_cast<void*>(to);
  copy.dstDevice = to;
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return BuildCopy(copy, work);
}

CUresult BuildMemset(const CUDA_MEMSET_NODE_PARAMS& set, MemsetWork* work) {
  work->set = set;
  CUDA_MEMSET_NODE_PARAMS& s = work->set;
  if (s.elementSize != 1 && s.elementSize != 2 && s.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (s.dst % s.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  if (s.width == 0 || s.height == 0) {
    s.width = s.height = 0;
    return CUDA_SUCCESS;
  }
  uint64_t row = 0;
  uint64_t bytes = 0;
  if (!MultiplyAdd(s.width, s.elementSize, 0, &row)) return CUDA_ERROR_INVALID_VALUE;
  if (s.height > 1 && (s.pitch < row || s.pitch % s.elementSize != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (!MultiplyAdd(s.height - 1, s.pitch, row, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  return GetDriver()->memory.CoversForWriting(s.dst, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_MEMCPY3D Widen(const CUDA_MEMCPY2D& copy) {
  CUDA_MEMCPY3D wide{};
  wide.srcXInBytes = copy.srcXInBytes;
  wide.srcY = copy.srcY;
  wide.srcMemoryType = copy.srcMemoryType;
  wide.srcHost = copy.srcHost;
  wide.srcDevice = copy.srcDevice;
  wide.srcArray = copy.srcArray;
  wide.srcPitch = copy.srcPitch;
  wide.dstXInBytes = copy.dstXInBytes;
  wide.dstY = copy.dstY;
  wide.dstMemoryType = copy.dstMemoryType;
  wide.dstHost = copy.dstHost;
  wide.dstDevice = copy.dstDevice;
  wide.dstArray = copy.dstArray;
  wide.dstPitch = copy.dstPitch;
  wide.WidthInBytes = copy.WidthInBytes;
  wide.Height = copy.Height;
  wide.Depth = 1;
  return wide;
}

CUDA_MEMCPY3D WithoutPeers(const CUDA_MEMCPY3D_PEER& copy) {
  CUDA_MEMCPY3D plain{};
  plain.srcXInBytes = copy.srcXInBytes;
  plain.srcY = copy.srcY;
  plain.srcZ = copy.srcZ;
  plain.srcLOD = copy.srcLOD;
  plain.srcMemoryType = copy.srcMemoryType;
  plain.srcHost = copy.srcHost;
  plain.srcDevice = copy.srcDevice;
  plain.srcArray = copy.srcArray;
  plain.srcPitch = copy.srcPitch;
  plain.srcHeight = copy.srcHeight;
  plain.dstXInBytes = copy.dstXInBytes;
  plain.dstY = copy.dstY;
  plain.dstZ = copy.dstZ;
  plain.dstLOD = copy.dstLOD;
  plain.dstMemoryType = copy.dstMemoryType;
  plain.dstHost = copy.dstHost;
  plain.dstDevice = copy.dstDevice;
  plain.dstArray = copy.dstArray;
  plain.dstPitch = copy.dstPitch;
  plain.dstHeight = copy.dstHeight;
  plain.WidthInBytes = copy.WidthInBytes;
  plain.Height = copy.Height;
  plain.Depth = copy.Depth;
  return plain;
}

}  // namespace hawser::soft
