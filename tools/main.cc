// SPDX-License-Identifier: Apache-2.0
// The `hawser` command: picks the subcommand that was typed and runs it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench_command.h"
#include "tools/command.h"
#include "tools/devices_command.h"
#include "tools/doctor_command.h"
#include "tools/install_layout.h"
#include "tools/operator_commands.h"
#include "tools/policy_command.h"
#include "tools/run_command.h"
#include "tools/sim_command.h"

int main(int argc, char** argv) {
  using namespace hawser::tools;
  CLI::App app("Hawser: unmodified programs run on a device that another machine owns.", "hawser");
  app.set_version_flag("--version", "hawser " HAWSER_VERSION);
  app.require_subcommand(1);

  const InstallLayout layout = FindInstallLayout();
  auto run = std::make_unique<RunCommand>(layout);
  std::vector<std::string> words = run->TakeProgram({argv + 1, argv + argc});
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::move(run));
  commands.push_back(std::make_unique<DevicesCommand>(layout));
  commands.push_back(std::make_unique<DoctorCommand>(layout));
  commands.push_back(std::make_unique<BenchCommand>(layout));
  commands.push_back(std::make_unique<SimCommand>());
  commands.push_back(std::make_unique<PolicyCommand>(layout.admin));
  for (const OperatorWord& word : kOperatorWords) {
    commands.push_back(std::make_unique<OperatorCommand>(word, layout.admin));
  }
  for (const auto& command : commands) command->Register(app);
  try {
    std::reverse(words.begin(), words.end());  // the order in which this parser takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    // Help and version are successes; a wrong command line of `run` must not look like the program's code.
    return app.exit(error) == 0 ? 0 : kExitHawser;
  }
  for (const auto& command : commands) {
    if (command->Chosen()) return command->Run();
  }
  return kExitHawser;
}
