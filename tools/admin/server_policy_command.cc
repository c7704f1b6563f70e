// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/server_policy_command.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "tools/admin/json.h"
#include "tools/admin/text.h"
#include "tools/operator_commands.h"

namespace hawser::tools {

using wire::Result;
using wire::Status;

namespace {

constexpr const char* kFooter = R"(
Examples:
  hawser policy show
  hawser policy set drr
  hawser policy set /opt/policies/mine.so --json -)";

}  // namespace

void ServerPolicyCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("policy", "The policy by which a running server shares its devices");
  parser_->require_subcommand(1);
  CLI::App* show = parser_->add_subcommand(kPolicyShowWord.name, kPolicyShowWord.description);
  set_ = parser_->add_subcommand(kPolicySetWord.name, kPolicySetWord.description);
  for (CLI::App* one : {show, set_}) {
    one->footer(kFooter);
    options_.Register(one, true);
  }
  set_->add_option("NAME", name_, "A built-in policy's name (`hawser policy list`), or a plugin's file on the server")
      ->required();
}

bool ServerPolicyCommand::Chosen() const { return parser_->parsed(); }

Status ServerPolicyCommand::Do() {
  const auto client = options_.Connect();
  if (!client.ok()) return client.status();
  pb::Policy policy;
  if (set_->parsed()) {
    const Result<pb::Policy> now = client.value()->SetPolicy(name_);
    if (!now.ok()) return now.status();
    policy = now.value();
  } else {
    const Result<pb::ServerStatus> status = client.value()->GetStatus();
    if (!status.ok()) return status.status();
    policy = status.value().policy();
  }
  if (!options_.json_file.empty()) return options_.WriteJson(ToJson(policy));
  std::cout << PolicyText(policy);
  return {};
}

int ServerPolicyCommand::Run() {
  const Status status = Do();
  if (status.ok()) return 0;
  Complain("policy: " + status.text());
  return 1;
}

}  // namespace hawser::tools
