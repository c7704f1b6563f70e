// SPDX-License-Identifier: Apache-2.0
// What is believed of the device time that a tenant's workers say they used.
//
// No more than the time in which they could use the device: while the tenant had a grant, or something that left early
// had not ended. Pieces of several queues that ran one beside the other are so charged once. And in the long run not
// less than half of the time in which it kept the device from others that had work: a worker that says nothing is
// charged that at the end of its grants. Handing over takes time too, now and then a lot of it, and is nobody's use: a
// nanosecond of use answers for another one that is lost, also in grants to come. Who says so late, because a piece
// left early, is not charged twice.
//
// Threading: the scheduler's thread.
#ifndef HAWSER_SCHEDULER_CORE_USED_TIME_H_
#define HAWSER_SCHEDULER_CORE_USED_TIME_H_

#include <algorithm>
#include <cstdint>

namespace hawser::scheduler {

class UsedTime {
 public:
  /// How much may be said before it has passed, beside what left early: clocks of a device are not the scheduler's.
  static constexpr uint64_t kAheadNs = 10'000'000;
  static constexpr uint64_t kMostTailNs = 100'000'000;
  /// So much time may be lost without use that answers for it.
  static constexpr uint64_t kMostLossNs = 20'000'000;

  /// A grant begins. `tail`: something that left early has not ended.
  void Begin(bool tail) {
    if (tail) return;
    room_ns_ = std::min<int64_t>(room_ns_, 0);
    assessed_ns_ = 0;
  }

  /// Time passed in which it could use the device.
  void Pass(uint64_t ns) { room_ns_ += static_cast<int64_t>(std::min(ns, kMostPassNs)); }
  /// Of that: it kept the device from others.
  void Keep(uint64_t ns) { kept_ns_ += std::min(ns, kMostPassNs); }

  /// Its workers say that they have used `said_ns` in all. How much of what is new is charged.
  uint64_t Believe(uint64_t said_ns, uint64_t tail_ns) {
    const uint64_t more = said_ns - std::min(said_ns, said_ns_);
    said_ns_ += more;
    const auto ahead = static_cast<int64_t>(kAheadNs + std::min(tail_ns, kMostTailNs));
    const uint64_t believed = std::min(more, static_cast<uint64_t>(std::max<int64_t>(0, room_ns_ + ahead)));
    room_ns_ -= static_cast<int64_t>(believed);
    const uint64_t known = std::min(believed, assessed_ns_);
    assessed_ns_ -= known;
    if (kept_ns_ != 0) used_ns_ += believed;
    return believed - known;
  }

  /// At the end of a grant: what is to be charged beside what was said; `least_ns` at least in all.
  uint64_t Assess(uint64_t least_ns = 0) {
    const uint64_t lost = kept_ns_ - std::min(kept_ns_, used_ns_);
    const uint64_t may_be_lost = may_be_lost_ns_ + used_ns_;
    const uint64_t free = std::min(lost, may_be_lost);
    may_be_lost_ns_ = std::min(may_be_lost - free, kMostLossNs);
    const uint64_t more = std::max((lost - free) / 2, least_ns - std::min(least_ns, used_ns_));
    kept_ns_ = used_ns_ = 0;
    assessed_ns_ += more;
    return more;
  }

 private:
  static constexpr uint64_t kMostPassNs = uint64_t{1} << 50;  ///< Thirteen days at once.

  uint64_t said_ns_ = 0;
  int64_t room_ns_ = 0;   ///< What passed and nothing was said of. Below 0: what was said before it passed.
  uint64_t kept_ns_ = 0;  ///< Since Assess(), as what follows.
  uint64_t used_ns_ = 0;  ///< What was believed when it had kept the device.
  uint64_t may_be_lost_ns_ = kMostLossNs;
  uint64_t assessed_ns_ = 0;  ///< Charged at the end of the latest grant without having been said.
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_USED_TIME_H_
