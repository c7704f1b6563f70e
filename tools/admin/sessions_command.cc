// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/sessions_command.h"

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
  hawser sessions
  hawser sessions --tenant alice --json -
  hawser sessions stop 17 --reason "the machine goes down at noon")";

}  // namespace

void SessionsCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand(kSessionsWord.name, kSessionsWord.description);
  parser_->footer(kFooter);
  parser_->require_subcommand(0, 1);
  options_.Register(parser_, true);
  parser_->add_option("--tenant", tenant_, "Only this tenant's");
  parser_->add_subcommand("list", "Show all sessions (also without a subcommand)")->fallthrough();
  stop_ = parser_->add_subcommand("stop", "End sessions: their programs are told why and lose the device");
  stop_->fallthrough();
  stop_->add_option("ID", ids_, "The sessions' numbers")->required();
  stop_->add_option("--reason", reason_, "For the program and the log")->type_name("TEXT");
}

bool SessionsCommand::Chosen() const { return parser_->parsed(); }

Status SessionsCommand::Do() {
  const auto client = options_.Connect();
  if (!client.ok()) return client.status();
  if (stop_->parsed()) {
    for (const uint64_t id : ids_) {
      if (Status status = client.value()->StopSession(id, reason_); !status.ok()) return status;
    }
    return {};
  }
  const Result<pb::ListSessionsResponse> sessions = client.value()->ListSessions(tenant_);
  if (!sessions.ok()) return sessions.status();
  if (!options_.json_file.empty()) return options_.WriteJson(ToJson(sessions.value()));
  if (sessions.value().sessions_size() == 0) {
    std::cout << "no sessions\n";
  } else {
    std::cout << SessionsText(sessions.value());
  }
  return {};
}

int SessionsCommand::Run() {
  const Status status = Do();
  if (status.ok()) return 0;
  Complain("sessions: " + status.text());
  return 1;
}

}  // namespace hawser::tools
