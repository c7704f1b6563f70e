// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel fit on a multiprocessor, and whether a launch is one that a device accepts.
//
// Source: CUDA driver API, cuLaunchKernel and "Occupancy"; the limits are those of Device::Attribute.
#ifndef HAWSER_SOFTCUDA_DRIVER_OCCUPANCY_H_
#define HAWSER_SOFTCUDA_DRIVER_OCCUPANCY_H_

#include <cuda.h>

#include "softcuda/driver/device.h"
#include "softcuda/driver/module_store.h"
#include "softcuda/driver/work.h"

namespace hawser::soft {

/// Bytes of dynamic shared memory that the function may be launched with.
int MaxDynamicShared(const Device& device, const Function& function);
/// 0 when a block does not fit.
int BlocksPerMultiprocessor(const Device& device, const Function& function, int threads, size_t dynamic_shared);
/// The result that cuLaunchKernel gives for these sizes.
/// Clusters of more than one block do not run here. CUDA_ERROR_INVALID_CLUSTER_SIZE where the function needs them, or
/// needs to be told a size and neither `given` (the launch does) nor an attribute says one. `known`: somebody says it.
CUresult CheckCluster(const Function& function, bool given, bool* known);
CUresult CheckLaunch(const Device& device, const KernelWork& work);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_OCCUPANCY_H_
