// SPDX-License-Identifier: Apache-2.0
// A policy in another process, looking like one in this: each callback is a question over the link.
//
// Nothing that comes back is believed: an answer is copied, its fields are bounded, tenants are looked up by their
// place in the table that was sent, texts are cut and cleaned. What then remains is checked by PolicyHost as it checks
// any policy. After the first thing that is wrong the process is killed, and every callback returns at once.
//
// Threading: one thread.
#ifndef HAWSER_SCHEDULER_ISOLATED_ISOLATED_POLICY_H_
#define HAWSER_SCHEDULER_ISOLATED_ISOLATED_POLICY_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hawser/policy.h"
#include "scheduler/core/policy_library.h"
#include "scheduler/isolated/link.h"
#include "scheduler/isolated/log_budget.h"
#include "wire/status.h"

namespace hawser::scheduler {

class IsolatedPolicy final : public PolicyRun {
 public:
  /// `link` has loaded the policy. `host` outlives this.
  IsolatedPolicy(std::unique_ptr<PolicyLink> link, const hawser_host& host, std::chrono::nanoseconds deadline);

  /// Asks it what it is. First of all. `from` is for texts.
  wire::Status Begin(const std::string& from);

  const hawser_policy& offered() const override { return offered_; }
  void* state() override { return this; }
  const std::string& failure() const override { return failure_; }
  uint64_t cpu_ns() const override { return cpu_in_calls_ns_; }

 private:
  struct Arguments {
    const hawser_tenant* tenant = nullptr;
    const hawser_tenant* other = nullptr;
    uint64_t amount = 0;
    uint32_t why = 0;
    const hawser_tenant_cfg* config = nullptr;
  };
  struct Callbacks;  ///< What `offered_` points to.

  /// True: the policy has answered, and `reply_` is its answer.
  bool Call(Ask ask, const Arguments& arguments);
  bool Talk(Ask ask);
  /// Call(), and the tenant that the answer names.
  hawser_tenant* Named(Ask ask, const Arguments& arguments);
  /// Writes who is there. False: too many.
  bool WriteTenants();
  Place PlaceOf(const hawser_tenant* tenant) const;
  /// Null for 0; one that is no tenant's for what is not in the table.
  hawser_tenant* TenantAt(Place place);
  void AnswerSetting();
  void Log();
  void ApplyEffects();
  bool Fail(std::string why);

  const std::unique_ptr<PolicyLink> link_;
  const hawser_host& host_;
  const std::chrono::nanoseconds deadline_;
  hawser_policy offered_{};
  std::string name_, version_;
  std::string failure_;
  Reply reply_;
  std::vector<hawser_tenant*> tenants_;  ///< In the table; only compared and handed back.
  LogBudget log_budget_;
  uint64_t cpu_in_calls_ns_ = 0;
  uint64_t cpu_after_call_ns_ = 0;
  uint64_t cpu_uncalled_ns_ = 0;  ///< That it took although nobody had asked it anything.
};

/// Lets the process behind `link` load what it was started for.
wire::Status LoadIsolated(PolicyLink& link, const std::string& from, std::chrono::nanoseconds deadline);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_ISOLATED_POLICY_H_
