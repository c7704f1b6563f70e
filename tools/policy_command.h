// SPDX-License-Identifier: Apache-2.0
// hawser policy list; hawser policy test NAME|FILE.so [--isolated]. And hawser policy show | set, which hawser-admin
// does.
#ifndef HAWSER_TOOLS_POLICY_COMMAND_H_
#define HAWSER_TOOLS_POLICY_COMMAND_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tools/command.h"

namespace hawser::tools {

class PolicyCommand : public Command {
 public:
  /// `admin`: hawser-admin; empty: it is missing.
  explicit PolicyCommand(std::string admin) : admin_(std::move(admin)) {}

  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  int List() const;
  int Test() const;

  const std::string admin_;
  CLI::App* parser_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* set_ = nullptr;
  CLI::App* list_ = nullptr;
  CLI::App* test_ = nullptr;
  std::string policy_;
  uint64_t seeds_ = 50, first_seed_ = 1;
  bool json_ = false, verbose_ = false, isolated_ = false;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_POLICY_COMMAND_H_
