// SPDX-License-Identifier: Apache-2.0
// Checks of copies and fills before they are submitted: sizes that overflow, memory that is not there, boxes that leave
// an array.
#ifndef HAWSER_SOFTCUDA_DRIVER_COPY_BUILDER_H_
#define HAWSER_SOFTCUDA_DRIVER_COPY_BUILDER_H_

#include <cuda.h>

#include "softcuda/driver/work.h"

namespace hawser::soft {

/// CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_INVALID_HANDLE for an array that is not alive.
CUresult BuildCopy(const CUDA_MEMCPY3D& copy, CopyWork* work);
/// One row of `bytes`. The memory types say how the addresses are meant.
CUresult BuildLinearCopy(CUdeviceptr to, CUmemorytype to_type, CUdeviceptr from, CUmemorytype from_type, size_t bytes,
                         CopyWork* work);
CUresult BuildMemset(const CUDA_MEMSET_NODE_PARAMS& set, MemsetWork* work);

/// The 3D form of a 2D copy.
CUDA_MEMCPY3D Widen(const CUDA_MEMCPY2D& copy);
CUDA_MEMCPY3D WithoutPeers(const CUDA_MEMCPY3D_PEER& copy);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_COPY_BUILDER_H_
