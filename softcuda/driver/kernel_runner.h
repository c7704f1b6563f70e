// SPDX-License-Identifier: Apache-2.0
// Runs a kernel, and what it launches.
#ifndef HAWSER_SOFTCUDA_DRIVER_KERNEL_RUNNER_H_
#define HAWSER_SOFTCUDA_DRIVER_KERNEL_RUNNER_H_

#include "softcuda/driver/work.h"

namespace hawser::soft {

/// Runs the kernel to its end on the calling thread and the engine's, and then the kernels that it has launched, and
/// theirs: a grid is over when those that it launched are. A fault is the context's error, and ends it. `conditions`
/// may be null.
void RunKernel(const KernelWork& work, Context* context, exec::ConditionSink* conditions);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_KERNEL_RUNNER_H_
