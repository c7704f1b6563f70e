// SPDX-License-Identifier: Apache-2.0
// 2D and 3D copies between host memory, device memory and arrays.
#ifndef HAWSER_INTERPOSER_CUDA_COPY_REGION_H_
#define HAWSER_INTERPOSER_CUDA_COPY_REGION_H_

#include "interposer/cuda/copy.h"

namespace hawser::cu {

/// Checks what can be known here, and carries the copy out.
CUresult CopyRegion(StreamCommand& command, const CUDA_MEMCPY3D& copy, CopyMode mode);
/// A 2D copy as a 3D one of depth 1.
CUDA_MEMCPY3D ToVolume(const CUDA_MEMCPY2D& copy);

/// One side of a copy, taken apart. Used for graph nodes too.
struct RegionSide {
  bool host = false;
  HostRegion memory;    ///< Of host memory.
  cuda::CopySide wire;  ///< Of everything else, and of host memory that lies in the session's heap.
  bool in_heap = false;
  bool mirrored = false;  ///< Host memory that is copied as the device's (mirror.h).
};
/// CUDA_ERROR_INVALID_VALUE for nonsense.
CUresult Destination(const CUDA_MEMCPY3D& copy, RegionSide* side);
CUresult Source(const CUDA_MEMCPY3D& copy, RegionSide* side);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_COPY_REGION_H_
