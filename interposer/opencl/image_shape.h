// SPDX-License-Identifier: Apache-2.0
// Formats and dimensions of images: how large they are and what of them can be named.
#ifndef HAWSER_INTERPOSER_OPENCL_IMAGE_SHAPE_H_
#define HAWSER_INTERPOSER_OPENCL_IMAGE_SHAPE_H_

#include "interposer/opencl/objects.h"
#include "interposer/opencl/region.h"

namespace hawser::ocl {

/// Width, height, depth as regions count them: the layers of an array are its last dimension.
struct Extent {
  size_t size[3] = {1, 1, 1};
};
/// False: not an image type.
bool ExtentOf(const cl_image_desc& desc, Extent* extent);

/// What the description says about memory: pitches given as 0 filled in, and the size. CL_SUCCESS or
/// CL_INVALID_IMAGE_DESCRIPTOR. `pitches`: the application may give some (host memory or a buffer).
cl_int ResolveImagePitches(const cl_image_desc& desc, size_t element_size, bool pitches, size_t* row_pitch,
                           size_t* slice_pitch, size_t* size);

/// CL_SUCCESS or CL_INVALID_VALUE: the part of an image that a command names.
cl_int CheckImagePart(const cl_image_desc& desc, const size_t* origin, const size_t* region);

/// Where a part lies in memory with the given pitches; for arrays of 1D images each layer is a slice_pitch apart.
/// False: CL_INVALID_VALUE. Pitches given as 0 are tight.
bool HostRegion(const cl_image_desc& desc, size_t element_size, const size_t* region, size_t row_pitch,
                size_t slice_pitch, Region* result);
/// Offset of an element in such memory.
size_t HostOffset(const cl_image_desc& desc, size_t element_size, const size_t* origin, size_t row_pitch,
                  size_t slice_pitch);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_IMAGE_SHAPE_H_
