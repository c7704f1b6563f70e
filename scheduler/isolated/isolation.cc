// SPDX-License-Identifier: Apache-2.0
#include "scheduler/isolated/isolation.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include "scheduler/isolated/isolated_policy.h"
#include "scheduler/isolated/policy_process.h"

using hawser::wire::Code;
using hawser::wire::Result;
using hawser::wire::Status;

namespace hawser::scheduler {
namespace {

/// hawser-policy-host of the same installation or the same build tree.
Result<std::string> FindProgram() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place :
       {"hawser-policy-host", "../libexec/hawser/hawser-policy-host", "../scheduler/hawser-policy-host"}) {
    const std::filesystem::path program = (folder / place).lexically_normal();
    if (std::filesystem::exists(program, error)) return program.string();
  }
  return Status(Code::kSystem,
                "hawser-policy-host, in which an isolated policy runs, is not where this program was installed (" +
                    folder.string() + "); install Hawser again");
}

class IsolatedPlace final : public PolicyPlace {
 public:
  IsolatedPlace(std::string policy, IsolationOptions options)
      : policy_(std::move(policy)), options_(std::move(options)) {}

  /// Has a process ready for the next Begin().
  Status Prepare() {
    auto process = Launch();
    if (!process.ok()) return process.status();
    const std::lock_guard<std::mutex> lock(mutex_);
    ready_ = std::move(*process);
    return {};
  }

  Result<std::unique_ptr<PolicyRun>> Begin(const hawser_host& host) override {
    std::unique_ptr<PolicyProcess> process;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      process = std::move(ready_);
    }
    if (process == nullptr) {
      auto launched = Launch();
      if (!launched.ok()) return launched.status();
      process = std::move(*launched);
    }
    auto run = std::make_unique<IsolatedPolicy>(std::move(process), host, options_.callback_deadline);
    if (Status status = run->Begin(policy_); !status.ok()) return status;
    return std::unique_ptr<PolicyRun>(std::move(run));
  }

 private:
  Result<std::unique_ptr<PolicyProcess>> Launch() const {
    auto process = PolicyProcess::Start(policy_, options_);
    if (!process.ok()) return process.status();
    if (Status status = LoadIsolated(**process, policy_, options_.load_deadline); !status.ok()) return status;
    return process;
  }

  const std::string policy_;
  const IsolationOptions options_;
  std::mutex mutex_;                      ///< Around ready_.
  std::unique_ptr<PolicyProcess> ready_;  ///< Has loaded the policy, and nobody has used it.
};

}  // namespace

Result<PolicyLibrary> OpenIsolated(const std::string& name_or_path, const IsolationOptions& options) {
  IsolationOptions complete = options;
  if (complete.program.empty()) {
    auto program = FindProgram();
    if (!program.ok()) return program.status();
    complete.program = *program;
  }
  auto place = std::make_shared<IsolatedPlace>(name_or_path, std::move(complete));
  if (Status status = place->Prepare(); !status.ok()) return status;
  return PolicyLibrary::Elsewhere(name_or_path, place);
}

}  // namespace hawser::scheduler
