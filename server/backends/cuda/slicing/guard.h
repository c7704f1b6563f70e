// SPDX-License-Identifier: Apache-2.0
// From a PTX module the text of one kernel that runs blocks [low, high) of a launch, in linear order. What it needs to
// know for that are parameters behind the kernel's own. Two ways:
//
// Offset slicing: a part is a row of high - low blocks. The kernel finds out which blocks of the launch they are, and
// names these values where it named %ctaid and %nctaid. Only where nobody else can see those: not in functions that it
// calls, and read by plain moves alone. No block is started in vain. Of a launch that has one row of blocks a part is a
// piece of that row, which needs no division; that is a copy of its own.
//
// Guard slicing: a part has the launch's own grid, and all blocks outside of [low, high) end at once. All special
// registers stay true, and neither the kernel's body nor the functions that it calls are touched. A launch in n parts
// starts (n - 1) times its blocks in vain.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_GUARD_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_GUARD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/ptx/module.h"
#include "wire/status.h"

namespace hawser::server::cuda_slicing {

enum class Way : uint8_t {
  kGuard,
  kOffset,  ///< Of any launch.
  kRow,     ///< An offset, of launches that have one row.
};

/// Where the parameters of a rewritten kernel lie, in bytes from the first one. Behind its own come, guarded: u64 low,
/// u64 high; offset and row: u32 low, u32 each of the launch's three extents.
struct ParameterLayout {
  uint64_t own_bytes = 0;  ///< The kernel's own, from 0.
  uint64_t added_offset = 0;
  uint64_t total_bytes = 0;
};

/// Most bytes of parameters that a kernel of this version and target may have ("PTX ISA", section 4.4.2 on .param).
uint64_t MostParameterBytes(uint32_t version_major, uint32_t version_minor, uint32_t target);

/// The layout, of all ways; kInvalid when the added parameters do not fit.
wire::Result<ParameterLayout> LayoutOf(const ptx::Module& module, const ptx::Function& kernel);

struct Copy {
  std::string text;
  /// What the 64-bit words of the copy's table must hold before it runs (variables.h): addresses of these variables.
  std::vector<std::string> variables;
};

/// A module with this kernel, rewritten, and what it may call. The module's variables are not in it. Whether the kernel
/// may run in parts, or with offsets, is not looked at here (scan.h). kInvalid: it cannot be copied; why, as the rest
/// of "runs whole: ...".
wire::Result<Copy> Rewrite(const ptx::Module& module, std::string_view kernel, Way way);

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_GUARD_H_
