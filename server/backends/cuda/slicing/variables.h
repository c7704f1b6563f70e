// SPDX-License-Identifier: Apache-2.0
// The variables of a module in the copy of one of its kernels. The copy is a module of its own, but what other kernels
// and the host see are the module's variables; so the copy has none, and its code finds their addresses in a table that
// is filled once it is loaded (sliced_kernels.h). An address of constant memory is used as one of global memory there:
// what cuModuleGetGlobal gives of such a variable is an address like any other, only slower to read. Texts of messages
// are only read; the copy has its own. So are variables of shared memory, of which every block has its own.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SLICING_VARIABLES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SLICING_VARIABLES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/backends/cuda/slicing/places.h"
#include "server/backends/cuda/slicing/text_edits.h"
#include "softcuda/ptx/module.h"
#include "wire/status.h"

namespace hawser::server::cuda_slicing {

/// A copy's name for its table: 64 bits for each variable, in constant memory.
inline constexpr const char* kVariableTable = "__hawser_variables";

/// True for those that a copy takes from the module: .global and .const, but for texts of messages.
bool IsTheModules(const ptx::Variable& variable);
/// A texture, sampler or surface reference: its address is no address of memory.
bool IsReference(const ptx::Variable& variable);

/// Gathers what must change in the functions of one copy.
class VariableUses {
 public:
  /// More of them than this do not fit into a table.
  static constexpr size_t kMost = 4096;

  /// Both borrowed.
  VariableUses(const ptx::Module& module, TextEdits* edits);

  /// The function's uses of the module's variables go by the table. kInvalid: one of them cannot.
  wire::Status Redirect(const ptx::Function& function);
  /// The declarations go, and the table comes. kInvalid: some of a statement's variables would stay.
  wire::Status Declare(const Places& places);
  /// Whose addresses the table holds, in its order.
  std::vector<std::string> Take() { return std::move(used_); }

 private:
  wire::Status RedirectOne(const ptx::Function& function, const ptx::Instruction& instruction);
  size_t SlotOf(const std::string& name);

  const ptx::Module& module_;
  TextEdits* const edits_;
  std::unordered_map<std::string_view, const ptx::Variable*> variables_;
  bool constants_ = false;  ///< Some are in constant memory.
  std::vector<std::string> used_;
  std::unordered_map<std::string_view, size_t> slots_;
};

}  // namespace hawser::server::cuda_slicing

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SLICING_VARIABLES_H_
