// SPDX-License-Identifier: Apache-2.0
// hawser-policy-host as the scheduler sees it: starts it, talks to it over the shared pages, and ends it.
//
// Threads: all functions belong to one thread, the scheduler's, or whoever opens the policy before the scheduler gets
// it. A second thread of its own starts the process and waits for its end: the kernel then kills the process when that
// thread is gone, so also when this whole process is killed. The two share `ended_` and what was stored before it; no
// lock.
#ifndef HAWSER_SCHEDULER_ISOLATED_POLICY_PROCESS_H_
#define HAWSER_SCHEDULER_ISOLATED_POLICY_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "scheduler/isolated/isolation.h"
#include "scheduler/isolated/link.h"
#include "scheduler/isolated/shared_pages.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::scheduler {

class PolicyProcess final : public PolicyLink {
 public:
  /// Starts it for this plugin, a path or a built-in policy's name. Nothing is loaded before Ask::kLoad.
  static wire::Result<std::unique_ptr<PolicyProcess>> Start(const std::string& policy, const IsolationOptions& options);
  ~PolicyProcess() override;
  PolicyProcess(const PolicyProcess&) = delete;
  PolicyProcess& operator=(const PolicyProcess&) = delete;

  RequestPage& page() override { return pages_->request(); }
  wire::Status Exchange(const wire::Deadline& deadline, Reply* reply) override;
  std::string Text(uint32_t size) override;
  uint64_t CpuNs() override;
  void Kill() override;

  pid_t pid() const { return pid_; }

 private:
  struct Plan;

  PolicyProcess(std::unique_ptr<SharedPages> pages, std::chrono::nanoseconds spin);
  /// The second thread.
  void Mind(const Plan& plan, std::promise<wire::Status> started);
  std::string HowItEnded() const;

  const std::unique_ptr<SharedPages> pages_;
  const std::chrono::nanoseconds spin_;
  uint32_t turn_ = 0;

  // Written by the second thread before it says that the process is started.
  pid_t pid_ = -1;
  wire::Fd pidfd_;
  clockid_t clock_ = -1;
  // Written by it before `ended_`.
  bool known_ = false, killed_ = false;
  int code_ = 0;
  std::atomic<bool> ended_{false};

  std::thread minder_;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_POLICY_PROCESS_H_
