// SPDX-License-Identifier: Apache-2.0
// Where policies come from: the ones that are built in, and shared objects. Both are reached through the same symbol.
#ifndef HAWSER_SCHEDULER_CORE_POLICY_LIBRARY_H_
#define HAWSER_SCHEDULER_CORE_POLICY_LIBRARY_H_

#include <cstdint>
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

/// A policy that somebody runs for us, elsewhere than in this process. Its functions, called with what init() made of
/// state(), return at once when it has failed. One thread.
class PolicyRun {
 public:
  virtual ~PolicyRun() = default;
  /// As a plugin offers it; valid as long as this object.
  virtual const hawser_policy& offered() const = 0;
  /// What init() finds in *state.
  virtual void* state() = 0;
  /// Why it can go on no longer; empty: it can.
  virtual const std::string& failure() const = 0;
  /// Processor time that its callbacks took, where it runs.
  virtual uint64_t cpu_ns() const = 0;
};

/// Begins runs of one policy.
class PolicyPlace {
 public:
  virtual ~PolicyPlace() = default;
  /// `host` stays valid until the run is destroyed.
  virtual wire::Result<std::unique_ptr<PolicyRun>> Begin(const hawser_host& host) = 0;
};

/// A policy that has said what it is; init() is next.
struct BegunPolicy {
  hawser_policy policy{};  ///< Read and checked.
  void* state = nullptr;
  std::shared_ptr<PolicyRun> run;  ///< Null: it runs in this process.
};

/// An entry function and what keeps it in memory. Copies share it.
class PolicyLibrary {
 public:
  /// A built-in policy's name, or a path: whatever has a slash or ends with ".so". Loading runs the object's
  /// constructors: only load what you would run. kInvalid says what is wrong with the file or the name.
  static wire::Result<PolicyLibrary> Find(const std::string& name_or_path);
  static wire::Result<PolicyLibrary> Open(const std::string& path);
  /// Whether Find() takes it for a path.
  static bool IsPath(const std::string& name);
  static PolicyLibrary Fair();
  /// For tests: a policy that is a function of this program.
  static PolicyLibrary Of(std::string name, PolicyEntry entry);

  /// A policy that does not run in this process.
  static PolicyLibrary Elsewhere(std::string name, std::shared_ptr<PolicyPlace> place);

  const std::string& name() const { return name_; }
  bool is_fair() const { return place_ == nullptr && entry_ == Fair().entry_; }
  /// Asks the policy what it is. kInvalid, kRefused: it cannot run here, with the reason.
  wire::Result<BegunPolicy> Begin(const hawser_host& host) const;

 private:
  std::string name_;
  std::shared_ptr<PolicyPlace> place_;
  PolicyEntry entry_ = nullptr;
  std::shared_ptr<void> handle_;
};

/// Reads a policy's struct as far as it goes. Refuses another major version, a size that cannot be, missing functions.
wire::Result<hawser_policy> ReadPolicy(const hawser_policy* offered, const std::string& from);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_POLICY_LIBRARY_H_
