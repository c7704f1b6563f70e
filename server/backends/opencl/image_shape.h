// SPDX-License-Identifier: Apache-2.0
// Sizes of images and of regions in buffers and images, computed so that hostile numbers cannot overflow.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_IMAGE_SHAPE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_IMAGE_SHAPE_H_

#include <array>
#include <cstdint>

namespace hawser::server::ocl {

using Triple = std::array<uint64_t, 3>;

/// False when the result does not fit.
bool Multiply(uint64_t a, uint64_t b, uint64_t* product);
bool Add(uint64_t a, uint64_t b, uint64_t* sum);
/// region[0] * region[1] * region[2] * scale; false on overflow or when a part of the region is 0.
bool RegionBytes(const Triple& region, uint64_t scale, uint64_t* bytes);

/// [offset, offset + size) lies in [0, total).
bool InRange(uint64_t offset, uint64_t size, uint64_t total);

/// A rectangle in a buffer of `total` bytes, as in clEnqueueReadBufferRect; pitches of 0 are tight.
bool RectInBuffer(const Triple& origin, const Triple& region, uint64_t row_pitch, uint64_t slice_pitch, uint64_t total);

/// What must be known of an image to check regions.
struct ImageShape {
  uint32_t element_size = 0;
  Triple extent{};  ///< In elements; array layers count as the next dimension; unused dimensions are 1.

  /// From the numbers of clCreateImage. False for an unknown type of image, a zero dimension or an overflow.
  static bool FromDescription(uint32_t image_type, uint64_t width, uint64_t height, uint64_t depth, uint64_t array_size,
                              uint32_t element_size, ImageShape* shape);
  /// Bytes of all elements, tightly packed; false on overflow.
  bool Bytes(uint64_t* bytes) const { return RegionBytes(extent, element_size, bytes); }
  bool Contains(const Triple& origin, const Triple& region) const;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_IMAGE_SHAPE_H_
