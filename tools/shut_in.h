// SPDX-License-Identifier: Apache-2.0
// A policy in a process of its own, for somebody who tries it out.
#ifndef HAWSER_TOOLS_SHUT_IN_H_
#define HAWSER_TOOLS_SHUT_IN_H_

#include <string>

#include "scheduler/isolated/isolation.h"

namespace hawser::tools {

/// As in a server but for two things: what the policy prints is seen, and a callback has two seconds, since nobody's
/// device waits and a debugger may.
inline wire::Result<scheduler::PolicyLibrary> OpenShutIn(const std::string& name_or_path) {
  scheduler::IsolationOptions options;
  options.callback_deadline = std::chrono::seconds(2);
  options.keep_stderr = true;
  return scheduler::OpenIsolated(name_or_path, options);
}

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_SHUT_IN_H_
