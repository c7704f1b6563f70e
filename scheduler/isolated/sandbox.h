// SPDX-License-Identifier: Apache-2.0
// What hawser-policy-host gives up. In two steps: first all that loading a shared object does not need, because loading
// runs the object's constructors; then the opening of files.
#ifndef HAWSER_SCHEDULER_ISOLATED_SANDBOX_H_
#define HAWSER_SCHEDULER_ISOLATED_SANDBOX_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "wire/status.h"

namespace hawser::scheduler {

/// Has the kernel kill this process when the thread that started it ends. kClosed: it has.
wire::Status DieWithScheduler(pid_t parent);

/// No core, no files written, few descriptors, no processes, and a bound on memory (bytes; 0: none).
wire::Status LimitPolicyHost(uint64_t address_space);

/// Of files, only shared libraries and the plugin's folder can be read. False: this kernel cannot do that.
bool HideFiles(const std::string& plugin);

/// Only these system calls: memory, time, waiting, ending, and reading files.
wire::Status AllowLoadingOnly();
/// And no opening of files any more.
wire::Status AllowComputingOnly();

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_ISOLATED_SANDBOX_H_
