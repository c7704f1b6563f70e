// SPDX-License-Identifier: Apache-2.0
// Runs sessions of a hostile guest, each in a process of its own, as workers are.
#ifndef HAWSER_TESTS_HOSTILE_SESSIONS_H_
#define HAWSER_TESTS_HOSTILE_SESSIONS_H_

#include <cstdint>
#include <functional>

namespace hawser::hostile {

/// What one session is made of.
struct Plan {
  uint64_t seed = 0;
  int commands = 0;
  bool tells = false;  ///< Says each command before it runs.
};

/// `main` of a program: [--seed FIRST] [--count SESSIONS] [--commands EACH] [--tell]. `session` runs one, in a child;
/// what it returns is the child's exit status. Exit status: 0: all sessions ended so; 1: one was killed by a signal,
/// gave something else, or took longer than two minutes. The text says which seed that was.
int RunSessions(int argc, char** argv, const std::function<int(const Plan& plan)>& session);

}  // namespace hawser::hostile

#endif  // HAWSER_TESTS_HOSTILE_SESSIONS_H_
