// SPDX-License-Identifier: Apache-2.0
// Guard slicing: from a PTX module the text of one kernel whose blocks end at once unless their linear index lies in
// [low, high). Both bounds are parameters behind the kernel's own. A part of a launch has the launch's own grid, so all
// special registers stay true, and neither the kernel's body nor the functions that it calls are touched.
//
// Cost: a launch in n parts starts (n - 1) times its blocks in vain.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_GUARD_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_GUARD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/ptx/module.h"
#include "wire/status.h"

namespace hawser::server::cuda_slicing {

/// Where the parameters of a guarded kernel lie, in bytes from the first one.
struct ParameterLayout {
  uint64_t own_bytes = 0;    ///< The kernel's own, from 0.
  uint64_t low_offset = 0;   ///< u64: the first block that runs.
  uint64_t high_offset = 0;  ///< u64: the first block that does not run any more.
  uint64_t total_bytes = 0;
};

/// Most bytes of parameters that a kernel of this version and target may have ("PTX ISA", section 4.4.2 on .param).
uint64_t MostParameterBytes(uint32_t version_major, uint32_t version_minor, uint32_t target);

/// The layout; kInvalid when the guard's parameters do not fit.
wire::Result<ParameterLayout> LayoutOf(const ptx::Module& module, const ptx::Function& kernel);

/// Where a kernel stands in its module's text: byte offsets.
struct KernelPlace {
  std::string_view name;
  size_t begin = 0;  ///< With .visible and the like before .entry.
  size_t end = 0;    ///< Behind the closing brace, or behind ';'.
  size_t name_end = 0;
  size_t parameters_begin = 0;  ///< Behind '('; 0: there is no list.
  size_t parameters_end = 0;    ///< At its ')'.
  size_t body = 0;              ///< Behind '{'; 0: declared only.
};

/// All kernels of a text that ptx::Parse() has taken. kInvalid when they cannot be told apart.
wire::Result<std::vector<KernelPlace>> FindKernels(std::string_view text);

/// A module with this kernel, guarded, and no other; everything else of the module is in it. It has variables of its
/// own: whether the kernel can do with those is not looked at here (scan.h).
wire::Result<std::string> GuardKernel(const ptx::Module& module, std::string_view kernel);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_GUARD_H_
