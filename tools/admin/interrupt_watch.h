// SPDX-License-Identifier: Apache-2.0
// Lets a command end properly when its user types ^C.
#ifndef HAWSER_TOOLS_ADMIN_INTERRUPT_WATCH_H_
#define HAWSER_TOOLS_ADMIN_INTERRUPT_WATCH_H_

#include <signal.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

namespace hawser::tools {

/// Make it before any other thread starts: SIGINT and SIGTERM are blocked from then on and taken by a thread of its
/// own, which calls Start()'s function once; a second signal ends the process at once.
class InterruptWatch {
 public:
  InterruptWatch() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// Runs until the process ends, so what the function uses must live as long.
  void Start(std::function<void()> interrupted) {
    std::thread([signals = signals_, interrupted = std::move(interrupted)] {
      int signal = 0;
      ::sigwait(&signals, &signal);
      interrupted();
      ::sigwait(&signals, &signal);
      ::_exit(128 + signal);
    }).detach();
  }

 private:
  sigset_t signals_;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_INTERRUPT_WATCH_H_
