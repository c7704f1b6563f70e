// SPDX-License-Identifier: Apache-2.0
// The built-in variables of a module (SPIR-V 3.21): which ids they have, and whether all that is done with them is what
// can be done again with values of one's own.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_BUILTINS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_BUILTINS_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "server/backends/opencl/slicing/il/il_module.h"

namespace hawser::server::slicing {

/// One component of a built-in's vector, taken out of the variable before it is loaded.
struct IlComponent {
  uint32_t variable = 0;
  uint32_t index = 0;  ///< Id of the index.
};

class IlBuiltins {
 public:
  /// `module` is looked at here only.
  explicit IlBuiltins(const IlModule& module);

  /// spv::BuiltIn of a variable; -1: it is none.
  int64_t Of(uint32_t id) const;
  /// Variables by their spv::BuiltIn. A module may have several for one.
  const std::multimap<uint32_t, uint32_t>& variables() const { return variables_; }
  /// By the id of the pointer: loads of it are loads of a built-in's component.
  const std::unordered_map<uint32_t, IlComponent>& components() const { return components_; }
  /// Why it is not known what the module does with built-ins; empty: it is.
  const std::string& unclear() const { return unclear_; }
  /// Why other values cannot be given to loads of the built-ins that carry.h names; empty: they can.
  const std::string& problem() const { return problem_; }

  /// It changes under an offset.
  static bool IsAffected(int64_t builtin);
  /// Affected, or it would show the word of carry.h.
  static bool IsCarried(int64_t builtin);
  /// Shows how work-items are grouped.
  static bool ShowsGroups(int64_t builtin);

 private:
  void FindVariables(const IlModule& module);
  void FindComponents(const IlModule& module);
  void LookAtUses(const IlModule& module);

  std::unordered_map<uint32_t, uint32_t> builtins_;
  std::multimap<uint32_t, uint32_t> variables_;
  std::unordered_map<uint32_t, IlComponent> components_;
  std::string unclear_;
  std::string problem_;
};

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_BUILTINS_H_
