// SPDX-License-Identifier: Apache-2.0
// When the last piece of a grant leaves the gate before its end (LaunchGate::LeaveEarly), and how long the pieces of a
// slice are so that this end is known well enough; for every backend.
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

/// How long the next piece of a slice should be, nanoseconds; `unit_ns`: how long one should be at most, `taken_ns`:
/// what those before it in the same slice were taken to need.
///
/// One piece fills a slice, or several of a unit each; but where they are long the last one is short. A piece may end
/// some percent before its estimate, because work-groups differ; of one of ten milliseconds that is more than
/// `handover_ns`, so it would be over before it leaves, and the device without work until the next tenant is ready.
/// That the long piece ended earlier is known when the short one begins.
constexpr uint64_t NextPieceNs(uint64_t handover_ns, uint64_t unit_ns, uint64_t slice_ns, uint64_t taken_ns) {
  // The last piece takes eight hand-overs: an eighth of it may be wrong. What is before it: twice that, or it is not
  // worth a launch more.
  constexpr uint64_t kClosing = 8, kLeastBefore = 2;
  // What is before it may not use up the slice; estimates change a little from one piece to the next.
  constexpr uint64_t kLeft = 32;
  const uint64_t closing = kClosing * handover_ns;
  if (closing == 0 || unit_ns < (kLeastBefore + 1) * closing) return unit_ns;
  const uint64_t all = std::max(unit_ns, slice_ns);
  const uint64_t most = slice_ns - slice_ns / kLeft;
  const uint64_t rest = std::max(closing, all - std::min(all, taken_ns));
  const uint64_t before = std::min(rest - closing, most - std::min(most, taken_ns));
  return std::min(unit_ns, before >= kLeastBefore * closing ? before : rest);
}

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_EARLY_LEAVE_H_
