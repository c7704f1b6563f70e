// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/image_shape.h"

#include "server/backends/opencl/cl.h"

namespace hawser::server::ocl {
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
