// SPDX-License-Identifier: Apache-2.0
// hawser top, tenants, sessions, trace, policy show and policy set, which another program does: gRPC takes 40 ms to
// load, and `hawser run` shall not wait for it.
#ifndef HAWSER_TOOLS_OPERATOR_COMMANDS_H_
#define HAWSER_TOOLS_OPERATOR_COMMANDS_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/command.h"

namespace hawser::tools {

struct OperatorWord {
  const char* name;
  const char* description;
};
inline constexpr OperatorWord kTopWord{"top", "Watch tenants and sessions: shares, queues, memory, rates"};
inline constexpr OperatorWord kTenantsWord{"tenants", "Show who shares a server's devices; change weights and limits"};
inline constexpr OperatorWord kSessionsWord{"sessions", "Show the programs that use a server's devices; stop one"};
inline constexpr OperatorWord kTraceWord{"trace", "Record a timeline of sessions, kernels and commands"};
inline constexpr OperatorWord kOperatorWords[] = {kTopWord, kTenantsWord, kSessionsWord, kTraceWord};

/// Behind `policy`, beside what needs no server.
inline constexpr OperatorWord kPolicyShowWord{"show", "The policy of a running server"};
inline constexpr OperatorWord kPolicySetWord{"set", "Change the policy of a running server; nobody is interrupted"};

/// Becomes hawser-admin, with these words and what stands behind `parser`'s. Only returns when it cannot: kExitHawser.
int BecomeAdmin(const std::string& program, std::vector<std::string> words, const CLI::App& parser);
/// A subcommand for that: everything behind its name is the other program's, --help too.
CLI::App* AddOperatorWord(CLI::App& app, const OperatorWord& word);

/// Becomes hawser-admin, with the same words.
class OperatorCommand : public Command {
 public:
  OperatorCommand(OperatorWord word, std::string program) : word_(word), program_(std::move(program)) {}

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  const OperatorWord word_;
  const std::string program_;  ///< hawser-admin; empty: it is missing.
  CLI::App* parser_ = nullptr;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_OPERATOR_COMMANDS_H_
