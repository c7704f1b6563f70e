// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel fit on a multiprocessor, and whether a launch is one that a device accepts.
//
// Source: CUDA driver API, cuLaunchKernel and "Occupancy"; the limits are those of Device::Attribute.
#ifndef HAWSER_SOFTCUDA_DRIVER_OCCUPANCY_H_
#define HAWSER_SOFTCUDA_DRIVER_OCCUPANCY_H_

#include <cuda.h>

#include <array>

#include "softcuda/driver/device.h"
#include "softcuda/driver/module_store.h"
#include "softcuda/driver/work.h"

namespace hawser::soft {

/// Bytes of dynamic shared memory that the function may be launched with.
int MaxDynamicShared(const Device& device, const Function& function);
/// 0 when a block does not fit.
int BlocksPerMultiprocessor(const Device& device, const Function& function, int threads, size_t dynamic_shared);
/// The result that cuLaunchKernel gives for these sizes.
/// Most blocks of a cluster of the function.
uint32_t LargestCluster(const Device& device, const Function& function);
/// What a cluster is: as `wanted` says, where it is no zeros, or as the function does. CUDA_ERROR_INVALID_CLUSTER_SIZE:
/// both say it and differ, neither says it although somebody must, or it is too large.
CUresult FindCluster(const Device& device, const Function& function, std::array<uint32_t, 3> wanted,
                     std::array<uint32_t, 3>* cluster, bool* known);
/// The same of a launch, whose grid must consist of whole clusters.
CUresult ChooseCluster(const Device& device, const std::array<uint32_t, 3>& wanted, KernelWork* work);
CUresult CheckLaunch(const Device& device, const KernelWork& work);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_OCCUPANCY_H_
