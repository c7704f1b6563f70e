// SPDX-License-Identifier: Apache-2.0
#include "tools/policy_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "scheduler/conformance/conformance.h"
#include "scheduler/core/policy_library.h"
#include "tools/operator_commands.h"
#include "tools/shut_in.h"

namespace hawser::tools {

void PolicyCommand::Register(CLI::App& app) {
  parser_ = app.add_subcommand("policy", "Scheduling policies");
  parser_->require_subcommand(1);
  list_ = parser_->add_subcommand("list", "The built-in policies");
  list_->add_flag("--json", json_, "As JSON");
  test_ = parser_->add_subcommand("test",
                                  "Whether a policy keeps the rules: scenarios, random ones, tenants that come and go");
  test_->add_option("policy", policy_, "A plugin's file, or a built-in policy's name")->required();
  test_->add_option("--seeds", seeds_, "How many random scenarios (default: 50)")->check(CLI::Range(0, 100000));
  test_->add_option("--first-seed", first_seed_, "The first one's number (default: 1)");
  test_->add_flag("--isolated", isolated_, "Run it as a server runs a policy that is not trusted: shut in");
  test_->add_flag("--verbose", verbose_, "Name what passed as well");
  test_->add_flag("--json", json_, "As JSON");
  show_ = AddOperatorWord(*parser_, kPolicyShowWord);
  set_ = AddOperatorWord(*parser_, kPolicySetWord);
}

bool PolicyCommand::Chosen() const { return parser_->parsed(); }

int PolicyCommand::Run() {
  if (show_->parsed()) return BecomeAdmin(admin_, {"policy", kPolicyShowWord.name}, *show_);
  if (set_->parsed()) return BecomeAdmin(admin_, {"policy", kPolicySetWord.name}, *set_);
  return list_->parsed() ? List() : Test();
}

int PolicyCommand::List() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const scheduler::BuiltinPolicy& policy : scheduler::BuiltinPolicies()) {
    if (json_) {
      json.push_back({{"name", policy.name}, {"summary", policy.summary}});
    } else {
      std::printf("%-8.*s %.*s\n", static_cast<int>(policy.name.size()), policy.name.data(),
                  static_cast<int>(policy.summary.size()), policy.summary.data());
    }
  }
  if (json_) std::cout << json.dump(2) << "\n";
  return 0;
}

int PolicyCommand::Test() const {
  scheduler::ConformanceOptions options;
  options.seeds = seeds_;
  options.first_seed = first_seed_;
  if (isolated_) options.open = OpenShutIn;
  size_t failed = 0;
  const auto cases = scheduler::TestConformance(policy_, options, [&](const scheduler::ConformanceCase& one) {
    failed += one.problems.empty() ? 0 : 1;
    if (json_ || (one.problems.empty() && !verbose_)) return;
    std::cout << (one.problems.empty() ? "passed  " : "FAILED  ") << one.name << std::endl;
    for (const std::string& problem : one.problems) std::cout << "        " << problem << std::endl;
  });
  if (!cases.ok()) {
    Complain("policy test: " + cases.status().text());
    return 1;
  }
  if (json_) {
    nlohmann::ordered_json json;
    json["policy"] = policy_;
    json["cases"] = cases.value().size();
    json["failed"] = nlohmann::ordered_json::array();
    for (const auto& one : cases.value()) {
      if (!one.problems.empty()) json["failed"].push_back({{"name", one.name}, {"problems", one.problems}});
    }
    std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    std::cout << policy_ << ": " << cases.value().size() - failed << " of " << cases.value().size() << " passed"
              << std::endl;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace hawser::tools
