// SPDX-License-Identifier: Apache-2.0
#include "tools/operator_commands.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

namespace hawser::tools {

void OperatorCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand(word_.name, word_.description);
  // Everything behind the name is the other program's, --help too.
  parser_->set_help_flag("");
  parser_->prefix_command();
}

bool OperatorCommand::Chosen() const { return parser_->parsed(); }

int OperatorCommand::Run() {
  if (program_.empty()) {
    Complain("hawser-admin is missing; build everything (./hawser build) or install again");
    return kExitHawser;
  }
  std::vector<std::string> words = parser_->remaining();
  words.insert(words.begin(), {program_, word_.name});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program_.c_str(), arguments.data());
  Complain("cannot run " + program_ + ": " + std::strerror(errno));
  return kExitHawser;
}

}  // namespace hawser::tools
