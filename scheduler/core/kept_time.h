// SPDX-License-Identifier: Apache-2.0
// For how long a tenant has kept the device from others that have work, by the scheduler's own clock, since its last
// grant began; and whether that is too long.
//
// What it says that it used meanwhile answers for some of it: who finishes one piece after the other is no runaway. But
// only for as much as it says, so a worker that says that it used a nanosecond now and then gains nothing by that, and
// one that says that it used all of it is charged for all of it. And in the end nothing answers for it: a grant and
// what is drained after it are bounded, whatever a worker says.
//
// Threading: the scheduler's thread.
#ifndef HAWSER_SCHEDULER_CORE_KEPT_TIME_H_
#define HAWSER_SCHEDULER_CORE_KEPT_TIME_H_

#include <algorithm>
#include <cstdint>

namespace hawser::scheduler {

class KeptTime {
 public:
  /// A nanosecond of use answers for so many that passed: on a busy machine gaps may be longer than pieces.
  static constexpr uint64_t kWorth = 4;
  /// Beside its slice, nothing answers for more than so many times the limit of a piece. Who is alone may have two
  /// pieces under way, and long queues that are not measured; a slice has one.
  static constexpr uint64_t kMostPieces = 8;

  /// A grant begins.
  void Begin(uint64_t slice_ns) {
    slice_ns_ = slice_ns;
    Again();
  }
  /// It was told, and is told again if that does not help.
  void Again() { kept_ns_ = answered_ns_ = 0; }
  void Pass(uint64_t ns) { kept_ns_ += ns; }
  void Used(uint64_t ns) { answered_ns_ = std::min(kept_ns_, answered_ns_ + std::min(ns, kept_ns_) * kWorth); }

  /// How much more it may keep the device; 0: it is a runaway.
  uint64_t LeftNs(uint64_t max_piece_ns) const {
    const uint64_t unanswered = kept_ns_ - answered_ns_;
    const uint64_t most = slice_ns_ * kWorth + max_piece_ns * kMostPieces;
    return std::min(max_piece_ns - std::min(max_piece_ns, unanswered), most - std::min(most, kept_ns_));
  }

 private:
  uint64_t slice_ns_ = 0;
  uint64_t kept_ns_ = 0;
  uint64_t answered_ns_ = 0;  ///< Of kept_ns_.
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_KEPT_TIME_H_
