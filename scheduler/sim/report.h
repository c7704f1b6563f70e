// SPDX-License-Identifier: Apache-2.0
// A simulation's result for people and for programs.
#ifndef HAWSER_SCHEDULER_SIM_REPORT_H_
#define HAWSER_SCHEDULER_SIM_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "scheduler/sim/metrics.h"
#include "scheduler/sim/simulator.h"

namespace hawser::scheduler {

/// {"policy", "scenario", "tenants": [{"name", "share", ...}], "windows": [...], "pairs": [...], "events": [...]}.
/// Times are in milliseconds.
nlohmann::ordered_json ReportJson(const SimResult& result, const Metrics& metrics);
/// Tables.
std::string ReportText(const SimResult& result, const Metrics& metrics);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_SIM_REPORT_H_
