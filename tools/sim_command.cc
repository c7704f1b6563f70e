// SPDX-License-Identifier: Apache-2.0
#include "tools/sim_command.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "scheduler/sim/metrics.h"
#include "scheduler/sim/report.h"
#include "scheduler/sim/scenario.h"
#include "scheduler/sim/simulator.h"
#include "tools/shut_in.h"
#include "tools/sim_timeline.h"

namespace hawser::tools {
namespace {

/// "-" is the standard output.
wire::Status Write(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << std::flush;
    return wire::Status::Ok();
  }
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  return file ? wire::Status::Ok() : wire::Status::FromErrno("writing " + path);
}

}  // namespace

void SimCommand::Register(CLI::App& app) {
  CLI::App* sim = app.add_subcommand("sim", "Simulate, in virtual time");
  sim->require_subcommand(1);
  parser_ = sim->add_subcommand("sched", "Play a scenario of tenants that share a device under a scheduling policy");
  parser_->add_option("--policy", policy_, "A built-in policy's name, or a plugin's file (default: fair)");
  parser_->add_option("--scenario", scenario_, "A built-in scenario's name, or a JSON file (names: --list)");
  parser_->add_option("--set", settings_, "key=value: a setting for the policy; may be repeated");
  parser_->add_option("--seconds", seconds_, "Virtual time (default: the scenario's)")
      ->check(CLI::Range(0.001, 3600.0));
  parser_->add_flag("--isolated", isolated_, "Run the policy as a server runs one that is not trusted: shut in");
  parser_->add_option("--json", json_file_, "Write everything measured as JSON to this file; -: to standard output");
  parser_->add_option("--svg", svg_file_, "Write a picture of the timeline to this file");
  parser_->add_flag("--list", list_, "List the built-in scenarios");
}

bool SimCommand::Chosen() const { return parser_->parsed(); }

int SimCommand::Run() {
  if (list_) {
    for (const auto& builtin : scheduler::BuiltinScenarios()) {
      const auto scenario = scheduler::ParseScenario(builtin.json, std::string(builtin.name));
      std::cout << builtin.name << ": " << (scenario.ok() ? scenario.value().summary : scenario.status().text())
                << "\n";
    }
    return 0;
  }
  if (scenario_.empty()) {
    Complain("sim sched: name a scenario with --scenario (--list shows the built-in ones)");
    return kExitHawser;
  }
  auto scenario = scheduler::FindScenario(scenario_);
  if (!scenario.ok()) {
    Complain("sim sched: " + scenario.status().text());
    return 1;
  }
  if (seconds_ > 0) scenario->duration_ns = static_cast<uint64_t>(seconds_ * 1e9);
  for (const std::string& setting : settings_) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      Complain("sim sched: --set " + setting + ": write key=value");
      return 1;
    }
    scenario->settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  const auto policy = isolated_ ? OpenShutIn(policy_) : scheduler::PolicyLibrary::Find(policy_);
  if (!policy.ok()) {
    Complain("sim sched: " + policy.status().text());
    return 1;
  }
  const auto result = scheduler::Simulate(*scenario, policy.value());
  if (!result.ok()) {
    Complain("sim sched: " + result.status().text());
    return 1;
  }
  for (const std::string& setting : settings_) {
    const std::string key = setting.substr(0, setting.find('='));
    if (result.value().asked_settings.count(key) == 0) {
      Complain("sim sched: policy " + result.value().policy + " never asked for '" + key + "'; is it spelled right?");
    }
  }
  const scheduler::Metrics metrics = scheduler::Measure(result.value());
  if (json_file_ != "-") std::cout << scheduler::ReportText(result.value(), metrics);
  wire::Status written = wire::Status::Ok();
  if (!json_file_.empty()) {
    // Names and texts of plugins and scenarios may be in any encoding.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    written = Write(json_file_, scheduler::ReportJson(result.value(), metrics).dump(2, ' ', false, kReplace) + "\n");
  }
  if (written.ok() && !svg_file_.empty()) written = Write(svg_file_, TimelineSvg(result.value(), metrics));
  if (!written.ok()) {
    Complain("sim sched: " + written.text());
    return 1;
  }
  return result.value().ejected ? 2 : 0;
}

}  // namespace hawser::tools
