// SPDX-License-Identifier: Apache-2.0
// Finds loops of a function in intermediate language that may wait for another work-group: what loop_scan.h finds in
// text, and for the same reason.
//
// A loop (a cycle of blocks) looks at what others change when it has in it an atomic whose result is used, a fence or a
// barrier of global memory, a volatile load, or a call of a function that looks. It may wait unless no branch in it
// depends on anything read from memory, so that it is counted; or unless every way round it has a compare-and-exchange
// whose expected and new value depend on memory read in the loop (atomic addition of floats), and all else that looks
// are loads of the same place: there somebody always gets on. What cannot be decided counts as waiting.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_LOOPS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_LOOPS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "server/backends/opencl/slicing/il/il_builtins.h"
#include "server/backends/opencl/slicing/il/il_module.h"

namespace hawser::server::slicing {

/// What is known of ids before any function is looked at. By id; each as long as the module's bound.
struct IlFacts {
  std::vector<bool> used;           ///< As an input of something that is no remark.
  std::vector<bool> is_volatile;    ///< Decorated so.
  std::vector<uint32_t> constants;  ///< The lowest word of an integer constant.
  std::vector<bool> has_constant;
};

/// The instruction looks at memory that other work-groups change, and its result, if it has one, is used. Calls are not
/// counted.
bool IlObserves(const IlInstruction& instruction, const IlFacts& facts);

/// Instructions [begin, end) are one function, with its OpFunction and OpFunctionEnd; `callee_observes(id)` says
/// whether a function looks, itself or in what it calls. `*budget` counts steps down; at 0 the answer is true.
bool IlMayWait(const IlModule& module, size_t begin, size_t end, const IlFacts& facts, const IlBuiltins& builtins,
               const std::function<bool(uint32_t)>& callee_observes, int64_t* budget);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_LOOPS_H_
