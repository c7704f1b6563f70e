// SPDX-License-Identifier: Apache-2.0
// From the arguments of a launch to work that can be submitted.
#ifndef HAWSER_SOFTCUDA_DRIVER_LAUNCH_BUILDER_H_
#define HAWSER_SOFTCUDA_DRIVER_LAUNCH_BUILDER_H_

#include <cuda.h>

#include "softcuda/driver/work.h"

namespace hawser::soft {

/// Copies a kernel's arguments out of `params` (one pointer each) or `extra` (a packed buffer).
/// CUDA_ERROR_INVALID_VALUE: both or neither are given, or the buffer is too short.
CUresult PackParameters(const Function& function, void** params, void** extra, std::vector<uint8_t>* packed);

/// Resolves the function, packs the arguments and checks the sizes against `device`; for a graph node device may be
/// null: the function's. `cluster`: as the launch wishes; zeros: as the function does.
CUresult BuildLaunch(const CUDA_KERNEL_NODE_PARAMS& params, bool cooperative, const std::array<uint32_t, 3>& cluster,
                     KernelWork* work);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_LAUNCH_BUILDER_H_
