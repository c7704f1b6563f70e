// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/tenants_command.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>

#include "server/size.h"
#include "tools/admin/json.h"
#include "tools/admin/text.h"
#include "tools/operator_commands.h"

namespace hawser::tools {

using wire::Code;
using wire::Result;
using wire::Status;

namespace {

constexpr const char* kFooter = R"(
Examples:
  hawser tenants
  hawser tenants set alice --weight 300
  hawser tenants set uid-1000 --sessions 4 --memory 2GiB --max-share 50%
  hawser tenants reset alice
  hawser tenants list --json -

Changes hold at once, for running sessions too, and until hawserd ends; what shall last belongs into its
configuration. Fewer sessions than there are: those that run go on. A tenant with 0 sessions is locked out.)";

}  // namespace

Result<pb::SetTenantRequest> ToRequest(const TenantWords& words) {
  pb::SetTenantRequest request;
  request.set_name(words.name);
  request.set_reset(words.reset);
  if (words.weight) request.set_weight(*words.weight);
  if (words.priority) request.set_priority(*words.priority);
  if (words.sessions) request.set_max_sessions(*words.sessions);
  if (!words.memory.empty()) {
    const auto size = words.memory == "device" ? std::optional<uint64_t>(0) : server::ParseSize(words.memory);
    if (!size)
      return Status(Code::kInvalid, "--memory: '" + words.memory + "' is no size such as 512MiB, 4GiB or device");
    request.set_session_device_memory_bytes(*size);
  }
  const auto percent = [](const char* option, const std::string& text, auto take) {
    if (text.empty()) return Status();
    const Result<uint32_t> ppm = ParsePercent(text);
    if (!ppm.ok()) return Status(Code::kInvalid, std::string(option) + ": " + ppm.status().text());
    take(ppm.value());
    return Status();
  };
  Status status = percent("--min-share", words.min_share, [&](uint32_t ppm) { request.set_min_share_ppm(ppm); });
  if (!status.ok()) return status;
  status = percent("--max-share", words.max_share, [&](uint32_t ppm) { request.set_max_share_ppm(ppm); });
  if (!status.ok()) return status;
  if (words.slo_ms) {
    if (!(*words.slo_ms >= 0 && *words.slo_ms <= 3'600'000)) {
      return Status(Code::kInvalid, "--slo-ms: a time in milliseconds, an hour at most");
    }
    request.set_slo_ns(static_cast<uint64_t>(std::llround(*words.slo_ms * 1e6)));
  }
  return request;
}

void TenantsCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand(kTenantsWord.name, kTenantsWord.description);
  parser_->footer(kFooter);
  parser_->require_subcommand(0, 1);
  options_.Register(parser_, true);
  CLI::App* list = parser_->add_subcommand("list", "Show all tenants (also without a subcommand)");
  set_ = parser_->add_subcommand("set", "Change a tenant while the server runs");
  reset_ = parser_->add_subcommand("reset", "Forget what was changed: the configuration holds again");
  // The options may stand behind the subcommand too.
  for (CLI::App* one : {list, set_, reset_}) one->fallthrough();
  for (CLI::App* one : {set_, reset_}) {
    one->add_option("NAME", words_.name,
                    "The tenant, as `hawser tenants` shows it; users that no tenant lists are uid-NUMBER")
        ->required();
  }
  set_->footer(kFooter);
  set_->add_option("--weight", words_.weight, "1 to 10000; device time is given in proportion");
  set_->add_option("--priority", words_.priority, "-1000 to 1000; greater is more urgent");
  set_->add_option("--sessions", words_.sessions, "Sessions at a time");
  set_->add_option("--memory", words_.memory, "Device memory of each session: 512MiB, 4GiB, or device for all it has")
      ->type_name("SIZE");
  set_->add_option("--min-share", words_.min_share, "Reserved part of the device's time: 25%")->type_name("PERCENT");
  set_->add_option("--max-share", words_.max_share, "Limit of its part of the device's time; 0: none")
      ->type_name("PERCENT");
  set_->add_option("--slo-ms", words_.slo_ms,
                   "Wanted time from a request's arrival to its end, for the policy slo; 0: none");
  set_->add_flag("--reset", words_.reset, "First forget what was changed before");
}

bool TenantsCommand::Chosen() const { return parser_->parsed(); }

Status TenantsCommand::Do() {
  const bool change = set_->parsed() || reset_->parsed();
  pb::SetTenantRequest request;
  if (change) {
    if (reset_->parsed()) words_.reset = true;
    const Result<pb::SetTenantRequest> read = ToRequest(words_);
    if (!read.ok()) return read.status();
    request = read.value();
  }
  const auto client = options_.Connect();
  if (!client.ok()) return client.status();
  pb::ListTenantsResponse shown;
  if (change) {
    const Result<pb::Tenant> changed = client.value()->SetTenant(request);
    if (!changed.ok()) return changed.status();
    *shown.add_tenants() = changed.value();
  } else {
    const Result<pb::ListTenantsResponse> all = client.value()->ListTenants();
    if (!all.ok()) return all.status();
    shown = all.value();
  }
  if (!options_.json_file.empty()) return options_.WriteJson(ToJson(shown));
  if (shown.tenants_size() == 0) {
    std::cout << "no tenants yet: nobody is configured and nobody has come\n";
  } else {
    std::cout << TenantsText(shown);
  }
  return {};
}

int TenantsCommand::Run() {
  const Status status = Do();
  if (status.ok()) return 0;
  Complain("tenants: " + status.text());
  return 1;
}

}  // namespace hawser::tools
