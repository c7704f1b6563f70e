// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/sessions.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace hawser::hostile {
namespace {

constexpr std::chrono::seconds kPatience{120};

/// The child's status as waitpid() gives it; kills one that takes too long.
int Await(pid_t child) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    if (std::chrono::steady_clock::now() > end) {
      std::printf("a session hangs\n");
      (void)::kill(child, SIGABRT);
      (void)::waitpid(child, &status, 0);
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

int RunSessions(int argc, char** argv, const std::function<int(const Plan& plan)>& session) {
  Plan plan;
  plan.commands = 400;
  uint64_t count = 1;
  for (int i = 1; i < argc; ++i) {
    const bool valued = i + 1 < argc;
    if (valued && std::strcmp(argv[i], "--seed") == 0) {
      plan.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (valued && std::strcmp(argv[i], "--count") == 0) {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (valued && std::strcmp(argv[i], "--commands") == 0) {
      plan.commands = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--tell") == 0) {
      plan.tells = true;
    } else {
      std::printf("usage: %s [--seed FIRST] [--count SESSIONS] [--commands EACH] [--tell]\n", argv[0]);
      return 2;
    }
  }
  int failed = 0;
  for (const uint64_t end = plan.seed + count; plan.seed < end; ++plan.seed) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      const int status = session(plan);
      std::fflush(nullptr);
      ::_exit(status);  // As a worker ends.
    }
    const int status = child > 0 ? Await(child) : -1;
    if (status == 0) continue;
    ++failed;
    std::printf("session %llu: %s %d; again: %s --seed %llu --commands %d --tell\n",
                static_cast<unsigned long long>(plan.seed), WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), argv[0],
                static_cast<unsigned long long>(plan.seed), plan.commands);
  }
  std::printf("%llu sessions of %d commands, %d failed\n", static_cast<unsigned long long>(count), plan.commands,
              failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace hawser::hostile
