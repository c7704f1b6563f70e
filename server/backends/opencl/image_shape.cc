// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/image_shape.h"

#include "server/backends/opencl/cl.h"

#ifndef CL_UNORM_INT24  // Newer headers have dropped it.
#define CL_UNORM_INT24 0x10DF
#endif

namespace hawser::server::ocl {
namespace {

uint32_t Channels(uint32_t order) {
  switch (order) {
    case CL_R:
    case CL_A:
    case CL_Rx:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH:
      return 1;
    case CL_RG:
    case CL_RA:
    case CL_RGx:
      return 2;
    case CL_RGB:
    case CL_sRGB:
      return 3;
    case CL_RGBx:
    case CL_sRGBx:
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_sRGBA:
    case CL_sBGRA:
      return 4;
    default:
      return 0;
  }
}

// Of one channel; packed types: 0.
uint32_t ChannelSize(uint32_t type) {
  switch (type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
      return 1;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
      return 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
      return 4;
    default:
      return 0;
  }
}

}  // namespace

bool Multiply(uint64_t a, uint64_t b, uint64_t* product) { return !__builtin_mul_overflow(a, b, product); }
bool Add(uint64_t a, uint64_t b, uint64_t* sum) { return !__builtin_add_overflow(a, b, sum); }

bool RegionBytes(const Triple& region, uint64_t scale, uint64_t* bytes) {
  *bytes = 0;
  if (region[0] == 0 || region[1] == 0 || region[2] == 0) return false;
  return Multiply(region[0], region[1], bytes) && Multiply(*bytes, region[2], bytes) && Multiply(*bytes, scale, bytes);
}

bool InRange(uint64_t offset, uint64_t size, uint64_t total) { return offset <= total && size <= total - offset; }

bool RectInBuffer(const Triple& origin, const Triple& region, uint64_t row_pitch, uint64_t slice_pitch,
                  uint64_t total) {
  if (region[0] == 0 || region[1] == 0 || region[2] == 0) return false;
  if (row_pitch == 0) row_pitch = region[0];
  uint64_t tight = 0;
  if (!Multiply(region[1], row_pitch, &tight)) return false;
  if (slice_pitch == 0) slice_pitch = tight;
  if (row_pitch < region[0] || slice_pitch < tight) return false;
  uint64_t end = 0, part = 0, slices = 0, rows = 0, bytes = 0;
  // The last byte of the last row of the last slice.
  return Add(origin[2], region[2] - 1, &slices) && Add(origin[1], region[1] - 1, &rows) &&
         Add(origin[0], region[0], &bytes) && Multiply(slices, slice_pitch, &end) && Multiply(rows, row_pitch, &part) &&
         Add(end, part, &end) && Add(end, bytes, &end) && end <= total;
}

uint32_t ElementSize(uint32_t order, uint32_t type) {
  switch (type) {  // Packed: all channels in one word.
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
      return order == CL_RGB || order == CL_RGBx ? 2 : 0;
    case CL_UNORM_INT_101010:
      return order == CL_RGB || order == CL_RGBx ? 4 : 0;
    case CL_UNORM_INT_101010_2:
      return order == CL_RGBA ? 4 : 0;
    case CL_UNORM_INT24:
      return order == CL_DEPTH ? 4 : 0;
    default:
      return Channels(order) * ChannelSize(type);
  }
}

bool ImageShape::FromDescription(uint32_t image_type, uint64_t width, uint64_t height, uint64_t depth,
                                 uint64_t array_size, uint32_t element_size, ImageShape* shape) {
  shape->element_size = element_size;
  switch (image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      shape->extent = {width, 1, 1};
      break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      shape->extent = {width, array_size, 1};
      break;
    case CL_MEM_OBJECT_IMAGE2D:
      shape->extent = {width, height, 1};
      break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      shape->extent = {width, height, array_size};
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      shape->extent = {width, height, depth};
      break;
    default:
      return false;
  }
  uint64_t bytes = 0;
  return element_size != 0 && shape->Bytes(&bytes);
}

bool ImageShape::Contains(const Triple& origin, const Triple& region) const {
  for (size_t i = 0; i < 3; ++i) {
    if (region[i] == 0 || !InRange(origin[i], region[i], extent[i])) return false;
  }
  return true;
}

}  // namespace hawser::server::ocl
