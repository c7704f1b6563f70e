// SPDX-License-Identifier: Apache-2.0
// One subcommand of `hawser`.
#ifndef HAWSER_TOOLS_COMMAND_H_
#define HAWSER_TOOLS_COMMAND_H_

#include <string_view>

namespace CLI {
class App;
}

namespace hawser::tools {

/// Exit codes, as env(1) and docker have them.
inline constexpr int kExitHawser = 125;     ///< Hawser itself failed.
inline constexpr int kExitCannotRun = 126;  ///< The program exists and cannot be run.
inline constexpr int kExitNotFound = 127;   ///< There is no such program.

class Command {
 public:
  virtual ~Command() = default;
  /// Adds itself, with its options, to the command line's parser. Called once.
  virtual void Register(CLI::App& app) = 0;
  /// True when this is the command that was typed.
  virtual bool Chosen() const = 0;
  /// Does it; returns the exit code.
  virtual int Run() = 0;
};

/// Prints "hawser: <text>" on stderr.
void Complain(std::string_view text);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_COMMAND_H_
