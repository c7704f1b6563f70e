// SPDX-License-Identifier: Apache-2.0
// Which kernels of a PTX module may run in parts, some blocks now and the others later.
//
// Not those that know of blocks that run at the same time, or could: clusters, dependent launches, loops that wait for
// what another block does; nor those that measure time or ask where they run; nor those whose module's variables would
// not be the same in a copy of the kernel. When in doubt: not.
//
// A loop waits for others when what decides about its branches comes from memory that other blocks write meanwhile: an
// atomic's result, a volatile, acquiring or relaxed load. A compare-and-exchange that tries again with what it has just
// seen (the addition of floats) is no waiting: one of those who try always gets on. Blocks that hold a lock are
// running, so they give it back; but such a loop looks like one that waits for a flag, so it counts as waiting.
//
// What launches say themselves (cooperative, clusters, dependent launches) is the caller's to look at.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_SCAN_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_SCAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "softcuda/ptx/module.h"

namespace hawser::server::cuda_slicing {

/// Empty: the kernel may run in parts. Otherwise why not, as the rest of "runs whole: ...".
std::string WhyWhole(const ptx::Module& module, std::string_view kernel);

/// True when parts of it may be launched with an offset (guard.h): nobody but the kernel itself asks where a block is
/// in the launch, and that by moves alone. Of kernels that may run in parts.
bool MayOffset(const ptx::Module& module, std::string_view kernel);

/// The kernel, and the functions of the module whose names it may meet, directly or by others'. Empty: no such kernel.
std::vector<const ptx::Function*> ReachedFrom(const ptx::Module& module, std::string_view kernel);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_SCAN_H_
