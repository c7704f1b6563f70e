// SPDX-License-Identifier: Apache-2.0
// A policy that is not trusted, in a process of its own.
//
// The process, hawser-policy-host, has no files, no network, no other processes, no threads, no new privileges and
// little memory, and dies with its parent. It answers the scheduler over shared memory. One that crashes, ends, does
// not answer in time, or answers nonsense is killed and ejected like any other bad policy: `fair` takes over.
#ifndef HAWSER_SCHEDULER_ISOLATED_ISOLATION_H_
#define HAWSER_SCHEDULER_ISOLATED_ISOLATION_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "scheduler/core/policy_library.h"
#include "wire/status.h"

namespace hawser::scheduler {

struct IsolationOptions {
  /// hawser-policy-host's path; empty: of this installation or build tree.
  std::string program;
  /// A callback that has not returned by then will not. The longest that a policy can stop the scheduler's thread.
  std::chrono::milliseconds callback_deadline{100};
  /// For starting the process and loading the plugin, which Open() does.
  std::chrono::milliseconds load_deadline{10'000};
  /// Of the process, bytes; 0: no limit.
  uint64_t address_space = uint64_t{512} << 20;
  /// How long the scheduler's thread asks the processor rather than the kernel whether the answer has come.
  std::chrono::nanoseconds spin{20'000};
  bool syscall_filter = true;
  bool keep_stderr = false;  ///< For who tries out a policy: what it prints is seen.
};

/// Starts the process and lets it load the policy: a plugin's path or a built-in policy's name, as in
/// PolicyLibrary::Find(). What comes back is used like any other library, and each use of it runs in a process of its
/// own; the first use takes the process that is already there, so that it does not have to wait for one. Takes
/// milliseconds: not for the scheduler's thread. kInvalid, kRefused: with the reason. kSystem: the process cannot be
/// started.
wire::Result<PolicyLibrary> OpenIsolated(const std::string& name_or_path, const IsolationOptions& options = {});

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_ISOLATION_H_
