// SPDX-License-Identifier: Apache-2.0
// hawser policy show | set NAME: a running server's policy. What needs no server is in tools/policy_command.h.
#ifndef HAWSER_TOOLS_ADMIN_SERVER_POLICY_COMMAND_H_
#define HAWSER_TOOLS_ADMIN_SERVER_POLICY_COMMAND_H_

#include <string>

#include "tools/admin/options.h"
#include "tools/command.h"

namespace hawser::tools {

class ServerPolicyCommand : public Command {
 public:
  void Register(CLI::App& app) override;
  bool Chosen() const override;
  int Run() override;

 private:
  wire::Status Do();

  CLI::App* parser_ = nullptr;
  CLI::App* set_ = nullptr;
  AdminOptions options_;
  std::string name_;
};

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_SERVER_POLICY_COMMAND_H_
