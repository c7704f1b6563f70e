// SPDX-License-Identifier: Apache-2.0
// The page that a worker and the scheduler share: how a grant is given and taken back without a call.
//
// Each word has one writer. The two words that decide are `word` (the scheduler's: may this worker submit?) and
// `active` (the worker's: how much is it submitting, or has submitted and not seen end?):
//
//   worker      active += piece;  then looks at word;    if it may not: active -= piece
//   scheduler   word = revoked;   then looks at active;  if it is 0: the device is free
//
// All four are sequentially consistent, so either the worker sees that it may not, or the scheduler sees that something
// is active. The scheduler needs no answer from the worker to take back a grant, and a worker that dies needs to do
// nothing. Whoever brings `active` to 0 rings the scheduler's bell, unless the grant is open: a tenant that is alone
// rings no bells.
//
// The tail: the last piece of a slice may be said to have left a moment before it ends, so that the next worker gets
// ready meanwhile and the device does not wait for four threads to be woken one after the other. It is then no longer
// `active` but `tail`, until it has ended. Who has a tail at the device beside another's is not given back the device
// before one of them has ended: what runs beside the holder is never more than one piece, which was to end at once. And
// the time for which a tail is there while others wait counts as time for which its tenant keeps the device.
//
// The worker is a process of the server's, but it works on a guest's bytes, so it may write here whatever it likes,
// whenever. What is said is about that worker only, and it is read within bounds, so a lie costs others this much:
//
//   * Use that is not said is charged all the same, by the scheduler's clock, but only half of it: a tenant whose
//   worker
//     keeps silent can have twice what it is charged. Use that was not is charged up to the time that passed
//     (scheduler/core/used_time.h).
//   * Whoever keeps the device from others, or says so, is ended after a time that does not depend on what it says
//     (scheduler/core/kept_time.h). Until then they wait.
//   * Who has something on the device and says that it has not cannot be told from a device that is slow: then the one
//     who waits for it is ended.
#ifndef HAWSER_SCHEDULER_GRANT_PAGE_H_
#define HAWSER_SCHEDULER_GRANT_PAGE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace hawser::scheduler {

/// What `word` says in its lowest bits. The rest is the grant's epoch.
enum class GateMode : uint64_t {
  kClosed = 0,   ///< Never had a grant.
  kOpen = 1,     ///< Submit; alone.
  kSlice = 2,    ///< Submit until the slice is used.
  kRevoked = 3,  ///< Do not submit.
};

inline constexpr uint64_t kModeMask = 3;
/// Likely to be next: worth spinning for a moment. Only together with kClosed and kRevoked; of one tenant at a time.
inline constexpr uint64_t kStagedFlag = 4;
inline constexpr int kEpochShift = 8;

constexpr uint64_t MakeWord(uint64_t epoch, GateMode mode) {
  return epoch << kEpochShift | static_cast<uint64_t>(mode);
}
constexpr GateMode ModeOf(uint64_t word) { return static_cast<GateMode>(word & kModeMask); }
constexpr uint64_t EpochOf(uint64_t word) { return word >> kEpochShift; }

/// `active`: pieces in the upper 16 bits, their estimated nanoseconds in the lower 48 (three days).
inline constexpr int kPieceShift = 48;
inline constexpr uint64_t kMostEstimateNs = (uint64_t{1} << 40) - 1;  ///< Of one piece: 18 minutes.

constexpr uint64_t MakePiece(uint64_t estimate_ns) {
  return uint64_t{1} << kPieceShift | std::min(estimate_ns, kMostEstimateNs);
}
constexpr uint64_t PiecesOf(uint64_t active) { return active >> kPieceShift; }
constexpr uint64_t EstimateOf(uint64_t active) { return active & ((uint64_t{1} << kPieceShift) - 1); }

/// `Atomic` is std::atomic but in the model check, where each sequentially consistent step is a point at which another
/// thread may come in between. Relaxed words only inform.
template <template <typename> class Atomic>
struct BasicGrantPage {
  // The scheduler writes. The three lengths belong to the grant in `word` and are written before it.
  alignas(64) Atomic<uint64_t> word{0};
  Atomic<uint64_t> slice_ns{0};
  Atomic<uint64_t> cap_ns{0};
  Atomic<uint64_t> unit_ns{0};

  // The worker writes. The launch path touches this line and reads the one above.
  alignas(64) Atomic<uint64_t> active{0};
  Atomic<uint64_t> spent_epoch{0};  ///< The slice of this epoch is used up, or will be with what is active.
  Atomic<uint64_t> demand{0};       ///< 1: somebody waits to submit.
  Atomic<uint64_t> tail{0};         ///< As `active`: what left before its end.

  // The worker writes; information.
  alignas(64) Atomic<uint64_t> used_ns{0};
  Atomic<uint64_t> pending_ns{0};
  Atomic<uint64_t> pending_count{0};
  Atomic<uint64_t> oldest_arrival_ns{0};
  Atomic<uint64_t> next_unit_ns{0};
  Atomic<uint64_t> last_unit_ns{0};
  Atomic<uint64_t> submitted{0};
  Atomic<uint64_t> completed{0};
  Atomic<uint64_t> mem_resident{0};
  Atomic<uint64_t> mem_total{0};
};

using GrantPage = BasicGrantPage<std::atomic>;
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(GrantPage) <= 4096);

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_GRANT_PAGE_H_
