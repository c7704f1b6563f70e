// SPDX-License-Identifier: Apache-2.0
// Where policies come from: the ones that are built in, and shared objects. Both are reached through the same symbol.
#ifndef HAWSER_SCHEDULER_CORE_POLICY_LIBRARY_H_
#define HAWSER_SCHEDULER_CORE_POLICY_LIBRARY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hawser/policy.h"
#include "wire/status.h"

namespace hawser::scheduler {

using PolicyEntry = const hawser_policy* (*)(const hawser_host*);

struct BuiltinPolicy {
  std::string_view name;
  std::string_view summary;  ///< A line for people.
  PolicyEntry entry;
};

/// The policies that are part of the program. `fair` is the first.
const std::vector<BuiltinPolicy>& BuiltinPolicies();

/// An entry function and what keeps it in memory. Copies share it.
class PolicyLibrary {
 public:
  /// A built-in policy's name, or a path: whatever has a slash or ends with ".so". Loading runs the object's
  /// constructors: only load what you would run. kInvalid says what is wrong with the file or the name.
  static wire::Result<PolicyLibrary> Find(const std::string& name_or_path);
  static wire::Result<PolicyLibrary> Open(const std::string& path);
  static PolicyLibrary Fair();
  /// For tests: a policy that is a function of this program.
  static PolicyLibrary Of(std::string name, PolicyEntry entry);

  const std::string& name() const { return name_; }
  PolicyEntry entry() const { return entry_; }

 private:
  std::string name_;
  PolicyEntry entry_ = nullptr;
  std::shared_ptr<void> handle_;
};

/// Reads a policy's struct as far as it goes. Refuses another major version, a size that cannot be, missing functions.
wire::Result<hawser_policy> ReadPolicy(const hawser_policy* offered, const std::string& from);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_POLICY_LIBRARY_H_
