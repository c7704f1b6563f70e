// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/own_thread.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "interposer/core/log.h"

namespace hawser::guest {
namespace {

struct Start {
  const char* name;
  void (*main)(void*);
  void* context;
};

void* Run(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  delete static_cast<Start*>(argument);
  ::pthread_setname_np(::pthread_self(), start.name);
  start.main(start.context);
  return nullptr;
}

}  // namespace

bool StartThread(const char* name, size_t stack, void (*main)(void*), void* context) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack != kDefaultStack) {
    ::pthread_attr_setstacksize(&attributes, std::max(stack, static_cast<size_t>(PTHREAD_STACK_MIN)));
  }
  auto start = std::make_unique<Start>(Start{name, main, context});
  // A new thread inherits the mask of the one that starts it.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = ::pthread_create(&thread, &attributes, &Run, start.get());
  if (error == EINVAL && stack != kDefaultStack) {
    // Much thread-local storage in the process can make a small stack too small.
    ::pthread_attr_setstacksize(&attributes, 8u << 20);
    error = ::pthread_create(&thread, &attributes, &Run, start.get());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    Log(LogLevel::kError, "cannot start the thread '%s': %s", name, std::strerror(error));
    return false;
  }
  (void)start.release();
  return true;
}

}  // namespace hawser::guest
