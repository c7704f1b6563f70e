// SPDX-License-Identifier: Apache-2.0
// The most of a device's time that a tenant may have.
#ifndef HAWSER_SCHEDULER_CORE_SHARE_LIMIT_H_
#define HAWSER_SCHEDULER_CORE_SHARE_LIMIT_H_

#include <algorithm>
#include <cstdint>

namespace hawser::scheduler {

/// A bucket of device time that fills at the tenant's maximum share and holds what comes in a window of 100 ms. In any
/// stretch of time T a tenant that only runs while Ready() gets at most share x (T + window), and as much more as its
/// last grant was longer than what was allowed: one piece.
///
/// Kept as one clock: the time at which somebody who uses exactly that share would have used what this tenant has.
/// Integers, so that the same times give the same answers.
class ShareLimit {
 public:
  static constexpr uint64_t kWindowNs = 100'000'000;
  static constexpr uint32_t kWhole = 1'000'000;

  /// 0, or all of it: no limit. What the bucket held, or lacked, stays.
  void Set(uint32_t share_ppm, uint64_t now_ns) {
    const uint32_t share = share_ppm < kWhole ? share_ppm : 0;
    if (share == share_ppm_) return;
    const uint64_t had = limited() ? Allowance(now_ns) : UINT64_MAX;
    const uint64_t lacked = limited() ? Debt(now_ns) : 0;
    share_ppm_ = share;
    if (!limited()) return;
    const uint64_t full = TimeFor(std::min(had, Filled()));
    clock_ns_ = lacked > 0 ? now_ns + TimeFor(lacked) : now_ns - std::min(now_ns, full);
  }
  bool limited() const { return share_ppm_ != 0; }

  void Charge(uint64_t used_ns, uint64_t now_ns) {
    if (limited()) clock_ns_ = Floored(now_ns) + TimeFor(std::min(used_ns, kMostChargeNs));
  }

  /// Device time that it may have now.
  uint64_t Allowance(uint64_t now_ns) const {
    if (!limited()) return UINT64_MAX;
    const uint64_t clock = Floored(now_ns);
    return clock < now_ns ? Part(now_ns - clock) : 0;
  }
  /// When it may have `quantum_ns`, or all that the bucket holds if that is less; not later than now: it may.
  uint64_t ReadyAt(uint64_t quantum_ns) const {
    return limited() ? clock_ns_ + TimeFor(std::min(quantum_ns, Filled())) : 0;
  }

 private:
  static constexpr uint64_t kMostChargeNs = 1'000'000'000'000;  ///< Of one grant: a quarter of an hour.

  uint64_t Filled() const { return std::max<uint64_t>(1, Part(kWindowNs)); }
  uint64_t Floored(uint64_t now_ns) const { return std::max(clock_ns_, now_ns - std::min(now_ns, kWindowNs)); }
  uint64_t Debt(uint64_t now_ns) const { return clock_ns_ > now_ns ? Part(clock_ns_ - now_ns) : 0; }
  /// How much of this time is its share, and in how much time this is; neither overflows within an age.
  uint64_t Part(uint64_t ns) const { return ns / kWhole * share_ppm_ + ns % kWhole * share_ppm_ / kWhole; }
  uint64_t TimeFor(uint64_t ns) const {
    return ns / share_ppm_ * kWhole + (ns % share_ppm_ * kWhole + share_ppm_ - 1) / share_ppm_;
  }

  uint32_t share_ppm_ = 0;
  uint64_t clock_ns_ = 0;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_SHARE_LIMIT_H_
