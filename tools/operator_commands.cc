// SPDX-License-Identifier: Apache-2.0
#include "tools/operator_commands.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

namespace hawser::tools {

CLI::App* AddOperatorWord(CLI::App& app, const OperatorWord& word) {
  CLI::App* parser = app.add_subcommand(word.name, word.description);
  parser->set_help_flag("");
  parser->prefix_command();
  return parser;
}

int BecomeAdmin(const std::string& program, std::vector<std::string> words, const CLI::App& parser) {
  if (program.empty()) {
    Complain("hawser-admin is missing; build everything (./hawser build) or install again");
    return kExitHawser;
  }
  words.insert(words.begin(), program);
  for (const std::string& word : parser.remaining()) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  Complain("cannot run " + program + ": " + std::strerror(errno));
  return kExitHawser;
}

void OperatorCommand::Register(CLI::App& app) { parser_ = AddOperatorWord(app, word_); }

bool OperatorCommand::Chosen() const { return parser_->parsed(); }

int OperatorCommand::Run() { return BecomeAdmin(program_, {word_.name}, *parser_); }

}  // namespace hawser::tools
