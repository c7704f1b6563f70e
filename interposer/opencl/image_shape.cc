// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/image_shape.h"

namespace hawser::ocl {
namespace {

bool IsArray1D(const cl_image_desc& desc) { return desc.image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY; }

}  // namespace

bool ExtentOf(const cl_image_desc& desc, Extent* extent) {
  extent->size[0] = desc.image_width;
  extent->size[1] = extent->size[2] = 1;
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      return true;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      extent->size[1] = desc.image_array_size;
      return true;
    case CL_MEM_OBJECT_IMAGE2D:
      extent->size[1] = desc.image_height;
      return true;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      extent->size[1] = desc.image_height;
      extent->size[2] = desc.image_array_size;
      return true;
    case CL_MEM_OBJECT_IMAGE3D:
      extent->size[1] = desc.image_height;
      extent->size[2] = desc.image_depth;
      return true;
    default:
      return false;
  }
}

cl_int ResolveImagePitches(const cl_image_desc& desc, size_t element_size, bool pitches, size_t* row_pitch,
                           size_t* slice_pitch, size_t* size) {
  Extent extent;
  if (!ExtentOf(desc, &extent)) return CL_INVALID_IMAGE_DESCRIPTOR;
  for (const size_t length : extent.size) {
    if (length == 0) return CL_INVALID_IMAGE_DESCRIPTOR;
  }
  const bool layered =
      IsArray1D(desc) || desc.image_type == CL_MEM_OBJECT_IMAGE2D_ARRAY || desc.image_type == CL_MEM_OBJECT_IMAGE3D;
  if (!pitches && (desc.image_row_pitch != 0 || desc.image_slice_pitch != 0)) return CL_INVALID_IMAGE_DESCRIPTOR;
  size_t width = 0;
  if (__builtin_mul_overflow(extent.size[0], element_size, &width)) return CL_INVALID_IMAGE_SIZE;
  *row_pitch = desc.image_row_pitch == 0 ? width : desc.image_row_pitch;
  if (*row_pitch < width || *row_pitch % element_size != 0) return CL_INVALID_IMAGE_DESCRIPTOR;
  size_t plane = *row_pitch;
  if (!IsArray1D(desc) && __builtin_mul_overflow(*row_pitch, extent.size[1], &plane)) return CL_INVALID_IMAGE_SIZE;
  *slice_pitch = layered ? plane : 0;
  if (layered && desc.image_slice_pitch != 0) {
    if (desc.image_slice_pitch < plane || desc.image_slice_pitch % *row_pitch != 0) return CL_INVALID_IMAGE_DESCRIPTOR;
    *slice_pitch = desc.image_slice_pitch;
  }
  if (!layered) {
    *size = plane;
    return CL_SUCCESS;
  }
  const size_t layers = IsArray1D(desc) ? extent.size[1] : extent.size[2];
  return __builtin_mul_overflow(*slice_pitch, layers, size) ? CL_INVALID_IMAGE_SIZE : CL_SUCCESS;
}

cl_int CheckImagePart(const cl_image_desc& desc, const size_t* origin, const size_t* region) {
  Extent extent;
  if (origin == nullptr || region == nullptr || !ExtentOf(desc, &extent)) return CL_INVALID_VALUE;
  for (int i = 0; i < 3; ++i) {
    if (region[i] == 0 || origin[i] > extent.size[i] || region[i] > extent.size[i] - origin[i]) return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

bool HostRegion(const cl_image_desc& desc, size_t element_size, const size_t* region, size_t row_pitch,
                size_t slice_pitch, Region* result) {
  const size_t width = region[0] * element_size;
  if (row_pitch == 0) row_pitch = width;
  if (row_pitch < width) return false;
  if (IsArray1D(desc)) {
    if (slice_pitch == 0) slice_pitch = row_pitch;
    if (slice_pitch < width) return false;
    *result = {width, region[1], 1, slice_pitch, slice_pitch * region[1]};
    return true;
  }
  size_t plane = 0;
  if (__builtin_mul_overflow(row_pitch, region[1], &plane)) return false;
  if (slice_pitch == 0 || region[2] == 1) slice_pitch = plane;
  if (slice_pitch < plane) return false;
  *result = {width, region[1], region[2], row_pitch, slice_pitch};
  return true;
}

size_t HostOffset(const cl_image_desc& desc, size_t element_size, const size_t* origin, size_t row_pitch,
                  size_t slice_pitch) {
  if (IsArray1D(desc)) return origin[0] * element_size + origin[1] * slice_pitch;
  return origin[0] * element_size + origin[1] * row_pitch + origin[2] * slice_pitch;
}

}  // namespace hawser::ocl
