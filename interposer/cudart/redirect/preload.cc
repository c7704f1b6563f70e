// SPDX-License-Identifier: Apache-2.0
// libhawser_preload.so: loaded by LD_PRELOAD and initialised before everything else in the process (-z initfirst), so
// that embedded CUDA runtimes are redirected before any constructor registers device code with them. A process without
// one pays for looking at the headers of its objects.
#include <unistd.h>

#include "interposer/core/log.h"
#include "interposer/cudart/redirect/objects.h"

namespace {

__attribute__((constructor)) void Start(int /*argc*/, char** /*argv*/, char** environment) {
  // This runs before libc has looked at the environment.
  if (environ == nullptr) environ = environment;
  // Never destroyed: the loader reports to it until the process is gone.
  auto* objects = new hawser::redirect::Objects;
  objects->Scan();
  if (!objects->Follow()) {
    hawser::guest::Log(hawser::guest::LogLevel::kInfo,
                       "this dynamic loader cannot be followed: CUDA code that is loaded later is not redirected");
  }
}

}  // namespace
