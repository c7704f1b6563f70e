// SPDX-License-Identifier: Apache-2.0
// Loops of PTX functions that may wait for another block. See scan.h for what counts.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_WAIT_SCAN_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_WAIT_SCAN_H_

#include <functional>
#include <string_view>

#include "softcuda/ptx/module.h"

namespace hawser::server::cuda_slicing {

/// True when a loop of the function may wait. `polls`: whether a function of this name may be how a loop that calls it
/// learns of other blocks.
bool MayWait(const ptx::Module& module, const ptx::Function& function,
             const std::function<bool(std::string_view name)>& polls);

/// True when the function itself, loop or no loop, looks at what other blocks may write meanwhile.
bool LooksAtOthers(const ptx::Function& function);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_WAIT_SCAN_H_
