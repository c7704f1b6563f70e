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

/// How long a piece takes that was estimated at `estimate_ns` before the one ahead of it, of the same kernel, ended:
/// as much longer or shorter as that one took (`took_ns`) than it was estimated (`ahead_ns`), by a factor of two at
/// most. A device is not equally fast all the time (clocks, neighbours), and what was learnt of a kernel is a mean.
constexpr uint64_t RevisedNs(uint64_t estimate_ns, uint64_t ahead_ns, uint64_t took_ns) {
  if (ahead_ns == 0 || took_ns == 0) return estimate_ns;
  constexpr double kMost = 2;
  const double slower = static_cast<double>(took_ns) / static_cast<double>(ahead_ns);
  return static_cast<uint64_t>(static_cast<double>(estimate_ns) * std::clamp(slower, 1 / kMost, kMost));
}

/// How long the next piece of a slice should be, nanoseconds; `unit_ns`: how long one should be at most, `taken_ns`:
/// what those before it in the same slice were taken to need, `grain_ns`: what the smallest piece needs, which others
/// are made of; 0: not known.
///
/// One piece fills a slice, or several of a unit each; but where they are long the last one is short. A piece may end
/// some percent before its estimate, because work-groups differ; of one of ten milliseconds that is more than
/// `handover_ns`, so it would be over before it leaves, and the device without work until the next tenant is ready.
/// That the long piece ended earlier is known when the short one begins.
constexpr uint64_t NextPieceNs(uint64_t handover_ns, uint64_t unit_ns, uint64_t slice_ns, uint64_t taken_ns,
                               uint64_t grain_ns) {
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
  if (before >= kLeastBefore * closing) return std::min(unit_ns, before);
  // The last one uses up the slice also if it is made a grain shorter than this says, or there would be another.
  const uint64_t lacks = slice_ns - std::min(slice_ns, taken_ns);
  const uint64_t more = std::max(grain_ns, slice_ns / kLeft);
  return std::min(unit_ns, more < rest - std::min(rest, lacks) ? std::max(closing, lacks + more) : rest);
}

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_EARLY_LEAVE_H_
