// SPDX-License-Identifier: Apache-2.0
// What sharing a device costs, and no tenant is charged with: the time in which somebody has work and is not served.
//
// It is reckoned in phases (who has the device, and whether with work), each from when it began to when the next one
// does. From a phase's length is taken what all tenants used meanwhile; the rest is lost to that phase. So the account
// knows nothing of devices: the scheduler knows when it gave a grant and when that had ended, and pages say what was
// used. Where pieces are measured one beside the other (several queues of one tenant at once) they may hide a gap.
//
// What left early (page.h about tails) is charged before it has ended. That much of the next phase is no gap either, as
// long as the tail has not ended.
//
// Threading: the scheduler's thread.
#ifndef HAWSER_SCHEDULER_CORE_SYSTEM_ACCOUNT_H_
#define HAWSER_SCHEDULER_CORE_SYSTEM_ACCOUNT_H_

#include <algorithm>
#include <cstdint>

namespace hawser::scheduler {

/// Since the beginning; never falls. What goes on counts when it is over. Times in nanoseconds.
struct SystemTime {
  uint64_t gap_ns = 0;       ///< While somebody with work had a slice: it was being given, or taken back.
  uint64_t switches = 0;     ///< Slices given to another tenant than the grant before.
  uint64_t waited_ns = 0;    ///< The policy wanted to wait for somebody better.
  uint64_t lingered_ns = 0;  ///< Whoever had a slice had no work, and others had.
};

class SystemAccount {
 public:
  enum class Phase : uint8_t {
    kNone,       ///< Nobody has work, or whoever has the device is alone with it: nothing is lost.
    kServing,    ///< Whoever has a slice has work.
    kWaiting,    ///< Nobody has the device, because the policy waits.
    kLingering,  ///< Whoever has a slice has no work; others have.
  };

  /// From now on it is `phase`; if it is already, nothing changes. `used_ns`: device time of all tenants so far, those
  /// that are gone included; never falls. `tail_ns`: estimated length of what left early and has not ended.
  void Enter(Phase phase, uint64_t now_ns, uint64_t used_ns, uint64_t tail_ns) {
    if (phase == phase_) return;
    End(now_ns, used_ns, tail_ns);
    phase_ = phase;
  }

  /// The phase is over, also if the same one follows: from one grant to the next.
  void End(uint64_t now_ns, uint64_t used_ns, uint64_t tail_ns) {
    const uint64_t length = now_ns - std::min(now_ns, since_ns_);
    const uint64_t busy = ahead_ns_ + (used_ns - used_at_ns_);
    ahead_ns_ = busy > length ? std::min(busy - length, tail_ns) : 0;
    if (uint64_t* lost = LostTo(phase_)) *lost += length - std::min(length, busy);
    phase_ = Phase::kNone;
    since_ns_ = now_ns;
    used_at_ns_ = used_ns;
  }

  /// A grant begins. `tenant` is never 0.
  void Given(uint64_t tenant, bool slice) {
    if (slice && last_tenant_ != 0 && last_tenant_ != tenant) ++time_.switches;
    last_tenant_ = tenant;
  }

  const SystemTime& time() const { return time_; }

 private:
  uint64_t* LostTo(Phase phase) {
    switch (phase) {
      case Phase::kServing:
        return &time_.gap_ns;
      case Phase::kWaiting:
        return &time_.waited_ns;
      case Phase::kLingering:
        return &time_.lingered_ns;
      case Phase::kNone:
        break;
    }
    return nullptr;
  }

  SystemTime time_;
  Phase phase_ = Phase::kNone;
  uint64_t since_ns_ = 0;
  uint64_t used_at_ns_ = 0;  ///< By all, when the phase began.
  uint64_t ahead_ns_ = 0;    ///< Charged before it was used.
  uint64_t last_tenant_ = 0;
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_SYSTEM_ACCOUNT_H_
