// SPDX-License-Identifier: Apache-2.0
// Copies between host and device in pieces. An engine that copies takes one copy after the other, of whatever tenant: a
// long one keeps everybody else's away until it is done. In pieces, theirs come in between.
//
// Not for copies within the device: they are a hundred times as fast.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_COPY_PIECES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_COPY_PIECES_H_

#include <cuda.h>

#include <algorithm>
#include <cstdint>

namespace hawser::server::cuda_backend {

/// Bytes of a piece, where others share the device.
inline constexpr uint64_t kCopyPiece = uint64_t{4} << 20;

/// Calls copy(offset, bytes) for all of `size`, `piece` bytes at a time, in order, until one fails; its result.
template <typename Copy>
CUresult InPieces(uint64_t size, uint64_t piece, Copy&& copy) {
  CUresult result = CUDA_SUCCESS;
  for (uint64_t offset = 0; offset < size && result == CUDA_SUCCESS; offset += piece) {
    result = copy(offset, std::min(piece, size - offset));
    if (size - offset <= piece) break;  // Also keeps the sum from overflowing.
  }
  return result;
}

/// The same for a region: calls copy(const CUDA_MEMCPY3D&) for as many whole planes as fit into a piece, or rows of one
/// plane; at least one row.
template <typename Copy>
CUresult InPieces(const CUDA_MEMCPY3D& whole, uint64_t piece, Copy&& copy) {
  const uint64_t rows = std::max<uint64_t>(1, piece / std::max<uint64_t>(1, whole.WidthInBytes));
  const uint64_t planes = rows / std::max<uint64_t>(1, whole.Height);
  CUDA_MEMCPY3D part = whole;
  for (size_t z = 0; z < whole.Depth; z += part.Depth) {
    part.Depth = std::clamp<size_t>(planes, 1, whole.Depth - z);
    part.srcZ = whole.srcZ + z;
    part.dstZ = whole.dstZ + z;
    // More than one plane: all rows of each.
    for (size_t y = 0; y < whole.Height; y += part.Height) {
      part.Height = std::min<size_t>(planes != 0 ? whole.Height : rows, whole.Height - y);
      part.srcY = whole.srcY + y;
      part.dstY = whole.dstY + y;
      if (const CUresult result = copy(part); result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_COPY_PIECES_H_
