// SPDX-License-Identifier: Apache-2.0
// hawser-admin: the commands for operators. Started by `hawser`, see tools/operator_commands.h.
#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "tools/admin/server_policy_command.h"
#include "tools/admin/sessions_command.h"
#include "tools/admin/tenants_command.h"
#include "tools/admin/top_command.h"
#include "tools/admin/trace_command.h"

int main(int argc, char** argv) {
  using namespace hawser::tools;
  CLI::App app("The commands for operators of a Hawser server.", "hawser");
  app.require_subcommand(1);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<TopCommand>());
  commands.push_back(std::make_unique<TenantsCommand>());
  commands.push_back(std::make_unique<SessionsCommand>());
  commands.push_back(std::make_unique<TraceCommand>());
  commands.push_back(std::make_unique<ServerPolicyCommand>());
  for (const auto& command : commands) command->Register(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitHawser;
  }
  for (const auto& command : commands) {
    if (command->Chosen()) return command->Run();
  }
  return kExitHawser;
}
