// SPDX-License-Identifier: Apache-2.0
// When the last piece of a grant leaves the gate before its end (LaunchGate::LeaveEarly), for every backend.
#ifndef HAWSER_SERVER_WORKER_EARLY_LEAVE_H_
#define HAWSER_SERVER_WORKER_EARLY_LEAVE_H_

#include <algorithm>
#include <cstdint>

namespace hawser::server {

/// How much of a piece of this estimated length may still run when it leaves, nanoseconds: what handing over takes
/// (LaunchGate::EarlyNs), but no more than a quarter of the piece; of a short one half of what handing over takes. 0:
/// it leaves at its end.
constexpr uint64_t EarlyRestNs(uint64_t handover_ns, uint64_t estimate_ns) {
  constexpr uint64_t kLeastRest = 4, kShortRest = 2;
  return std::min(handover_ns, std::max(estimate_ns / kLeastRest, handover_ns / kShortRest));
}

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_EARLY_LEAVE_H_
