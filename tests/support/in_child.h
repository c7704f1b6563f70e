// SPDX-License-Identifier: Apache-2.0
// What cannot be undone (a sandbox, another user) is tried in a process of its own.
#ifndef HAWSER_TESTS_SUPPORT_IN_CHILD_H_
#define HAWSER_TESTS_SUPPORT_IN_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

namespace hawser::test {

/// Runs `body` in a child; its exit status is what it returns, or 1000 + the signal that ended it.
template <typename Body>
int InChild(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace hawser::test

#endif  // HAWSER_TESTS_SUPPORT_IN_CHILD_H_
