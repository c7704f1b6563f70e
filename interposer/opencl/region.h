// SPDX-License-Identifier: Apache-2.0
// Rectangles in memory: rows and slices with pitches on one side, tightly packed bytes (as they cross the wire) on
// the other.
#ifndef HAWSER_INTERPOSER_OPENCL_REGION_H_
#define HAWSER_INTERPOSER_OPENCL_REGION_H_

#include <cstddef>
#include <cstdint>

namespace hawser::ocl {

/// A block of `width` bytes by `rows` by `slices`. Pitches are the distances of rows and slices in bytes.
struct Region {
  size_t width = 0, rows = 1, slices = 1;
  size_t row_pitch = 0, slice_pitch = 0;

  static Region Flat(size_t bytes) { return {bytes, 1, 1, bytes, bytes}; }
  size_t bytes() const { return width * rows * slices; }
  /// From its first byte to behind its last one.
  size_t extent() const { return bytes() == 0 ? 0 : (slices - 1) * slice_pitch + (rows - 1) * row_pitch + width; }
  bool contiguous() const { return (rows <= 1 || row_pitch == width) && (slices <= 1 || slice_pitch == width * rows); }
};

/// Copies bytes [offset, offset + size) of the packed form from `strided` to `packed` (where byte `offset` goes first).
void Gather(const std::byte* strided, const Region& region, uint64_t offset, size_t size, std::byte* packed);
/// The other direction.
void Scatter(std::byte* strided, const Region& region, uint64_t offset, size_t size, const std::byte* packed);
/// Between two blocks of the same extent.
void CopyRegion(std::byte* to, const Region& to_region, const std::byte* from, const Region& from_region);

/// Checks a rectangle of a buffer as the specification does and fills in pitches given as 0.
/// False: CL_INVALID_VALUE.
bool ResolvePitches(const size_t* region, size_t* row_pitch, size_t* slice_pitch);
/// Whether the rectangle ends within `size` bytes; safe against overflow. Pitches resolved, region not empty.
bool RectFits(size_t size, const size_t* origin, const size_t* region, size_t row_pitch, size_t slice_pitch);
/// Whether two rectangles of one buffer with the same pitches share a byte.
bool RectsOverlap(const size_t* a, const size_t* b, const size_t* region, size_t row_pitch, size_t slice_pitch);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_REGION_H_
