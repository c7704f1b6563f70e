// SPDX-License-Identifier: Apache-2.0
// A simulation as a picture: who had the device when, and shares over windows.
#ifndef HAWSER_TOOLS_SIM_TIMELINE_H_
#define HAWSER_TOOLS_SIM_TIMELINE_H_

#include <string>

#include "scheduler/sim/metrics.h"
#include "scheduler/sim/simulator.h"

namespace hawser::tools {

/// A complete SVG document. Shares over 100 ms and 500 ms of the whole run, and the first stretch of the timeline, as
/// long as single grants can be seen.
std::string TimelineSvg(const scheduler::SimResult& result, const scheduler::Metrics& metrics);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_SIM_TIMELINE_H_
