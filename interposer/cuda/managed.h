// SPDX-License-Identifier: Apache-2.0
// Ranges of managed memory that calls give hints about.
#ifndef HAWSER_INTERPOSER_CUDA_MANAGED_H_
#define HAWSER_INTERPOSER_CUDA_MANAGED_H_

#include "interposer/cuda/entry.h"

namespace hawser::cu {

/// Managed memory of this process lies in the heap or is mirrored: hints about it change nothing, but are remembered.
struct HintedRange {
  cuda_api::RangeHints::Range range;
  bool hints = false;  ///< Whether there are any, as there are not for host memory.
};

/// CUDA_ERROR_INVALID_VALUE: not managed and not host memory, or not all of it.
CUresult FindManaged(CUdeviceptr address, size_t size, HintedRange* found);
/// CUDA_ERROR_INVALID_DEVICE: there is no such device.
CUresult CheckPlace(const CUmemLocation& location);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_MANAGED_H_
