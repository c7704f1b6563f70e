// SPDX-License-Identifier: Apache-2.0
// Launching a kernel: the checks that the runtime makes before the driver sees the launch.
#ifndef HAWSER_INTERPOSER_CUDART_LAUNCH_H_
#define HAWSER_INTERPOSER_CUDART_LAUNCH_H_

#include "interposer/cudart/driver.h"
#include "interposer/cudart/thread_state.h"

namespace hawser::cudart {

/// True when the current device can run such a grid; else the runtime says cudaErrorInvalidConfiguration.
bool IsLaunchable(const dim3& grid, const dim3& block);

/// Needs a current context.
cudaError_t Launch(const Driver& driver, CUfunction function, const dim3& grid, const dim3& block, void** arguments,
                   size_t shared_bytes, CUstream stream);

/// cudaErrorInvalidValue for what cannot be a configuration.
cudaError_t ToDriverConfig(const cudaLaunchConfig_t* config, CUlaunchConfig* driver_config);

/// Programs compiled by CUDA 13 keep the null handle of a kernel that could not be found: this is why.
void RememberFailedKernel(cudaError_t error);
cudaError_t FailedKernel();

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_LAUNCH_H_
