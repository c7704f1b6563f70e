// SPDX-License-Identifier: Apache-2.0
// What the configuration says about sharing the devices' time: [scheduler].
#ifndef HAWSER_SERVER_SCHEDULER_SETTINGS_H_
#define HAWSER_SERVER_SCHEDULER_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>

namespace hawser::server {

struct SchedulerSettings {
  /// The policy that means no scheduler.
  static constexpr const char* kNone = "none";

  std::string policy = "fair";  ///< A built-in policy, a plugin's path, or kNone.
  /// A plugin runs in a process of its own; built-in policies never do. Here a callback that does not return would stop
  /// the server, and nothing could end it.
  bool isolated = true;
  std::string policy_host;  ///< That process's program; empty: of this installation or build tree.
  /// For the policy, as it documents them; hawser_host.cfg() answers from here.
  std::map<std::string, std::string> settings;
  /// After so long without anybody else's work a tenant counts as alone.
  uint64_t alone_after_ms = 100;
  /// A device that finishes nothing for so long while others wait has a runaway kernel, whose worker is ended; 0:
  /// never.
  uint64_t max_unit_ms = 10'000;
  /// How long before its estimated end the last piece of a grant makes way, so that the next worker is ready when it
  /// ends: about what it takes to wake four threads one after the other. 0: the device is handed over empty.
  uint64_t handover_us = 250;
  /// A policy that leaves a tenant with work unserved for so long is replaced by `fair`; 0: never.
  uint64_t starvation_ms = 1000;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_SCHEDULER_SETTINGS_H_
