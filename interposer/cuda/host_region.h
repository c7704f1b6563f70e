// SPDX-License-Identifier: Apache-2.0
// A 1D, 2D or 3D piece of the application's memory, which travels tightly packed.
#ifndef HAWSER_INTERPOSER_CUDA_HOST_REGION_H_
#define HAWSER_INTERPOSER_CUDA_HOST_REGION_H_

#include <cstddef>
#include <cstdint>

namespace hawser::cu {

/// Borrowed memory; all sizes in bytes. The caller has checked that the product of the sizes does not overflow.
struct HostRegion {
  std::byte* base = nullptr;
  uint64_t width = 0;  ///< Of a row.
  uint64_t height = 1;
  uint64_t depth = 1;
  uint64_t pitch = 0;  ///< From row to row.
  uint64_t slice = 0;  ///< From slice to slice.

  static HostRegion Linear(void* data, uint64_t size) {
    return {static_cast<std::byte*>(data), size, 1, 1, size, size};
  }

  uint64_t bytes() const { return width * height * depth; }
  /// From its first byte to behind its last one.
  uint64_t extent() const { return bytes() == 0 ? 0 : (depth - 1) * slice + (height - 1) * pitch + width; }
  bool contiguous() const { return (height == 1 || pitch == width) && (depth == 1 || slice == width * height); }
  /// Bytes [offset, offset + size) of the packed form, copied out of or into the region.
  void Gather(uint64_t offset, uint64_t size, std::byte* to) const;
  void Scatter(uint64_t offset, uint64_t size, const std::byte* from) const;

 private:
  template <typename Visit>
  void ForRows(uint64_t offset, uint64_t size, Visit visit) const;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_HOST_REGION_H_
