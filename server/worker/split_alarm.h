// SPDX-License-Identifier: Apache-2.0
// The alarm for kernels that turn out not to bear being split, though their code did not show it: work-groups (blocks)
// wait for others, which come only in a later part, by means that no detector sees. Two signs, for every backend:
//   * parts that end, but took many times what they should, several times in a row (SplitAlarms::OnEnd): they wait for
//     a limited time;
//   * a part that runs on while what it may wait for was not given to the device yet (PartWatch). The backend then
//   gives
//     the device all the rest of the launch, beside the part (SplitAlarms::OnStuck).
// Either way the kernel runs whole from then on, as long as the session lasts. Of a kernel none of whose parts has
// ended yet (IsTrusted) one part is under way at a time, so that the rest is never queued behind a part that waits.
#ifndef HAWSER_SERVER_WORKER_SPLIT_ALARM_H_
#define HAWSER_SERVER_WORKER_SPLIT_ALARM_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/core/kernel_history.h"

namespace hawser::server {

/// What a session knows of its kernels' parts.
///
/// Threading: any thread; the mutex is a leaf, the log is called without it.
class SplitAlarms {
 public:
  using Log = std::function<void(std::string_view level, const std::string& text)>;
  /// A part that takes so many times what it should waits for something.
  static constexpr uint64_t kTimes = 20;
  /// So many parts, one after the other: the device may have been busy otherwise, and a CPU that is one often is.
  static constexpr uint32_t kInARow = 3;
  /// Nanoseconds; shorter estimates are too rough and count as this.
  static constexpr uint64_t kRoughNs = 100'000;
  /// Kernels; of more the ones that behave are forgotten.
  static constexpr size_t kMostKernels = 4096;
  /// A session's log is not for guests to fill.
  static constexpr uint32_t kMostTold = 64;

  /// `setting`: the variable of the environment with which an operator turns splitting off. `raised`: counts kernels;
  /// borrowed, may be null.
  SplitAlarms(const char* setting, Log log, std::atomic<uint64_t>* raised)
      : setting_(setting), log_(std::move(log)), raised_(raised) {}

  /// The kernel is not split any more; of a launch that runs in parts the rest is one.
  bool IsRaised(const scheduler::KernelKey& key) const;
  /// A part of it has ended, in time as far as that is known.
  bool IsTrusted(const scheduler::KernelKey& key) const;
  /// A part has ended that should have taken so long (nanoseconds; 0: not known) and took so long (0: not known, as
  /// when it failed).
  void OnEnd(const scheduler::KernelKey& key, std::string_view name, uint64_t estimated_ns, uint64_t measured_ns);
  /// A part was found stuck (PartWatch), and the rest of its launch goes to the device beside it.
  void OnStuck(const scheduler::KernelKey& key, std::string_view name);

 private:
  struct Kernel {
    uint32_t late = 0;  ///< Parts, one after the other.
    bool trusted = false;
    bool raised = false;
  };
  /// With the lock.
  Kernel& Of(const scheduler::KernelKey& key);
  /// With the lock. False: it was raised before.
  bool Raise(Kernel* kernel);
  void Tell(std::string_view name, std::string_view why);

  const char* const setting_;
  const Log log_;
  std::atomic<uint64_t>* const raised_;
  std::atomic<bool> any_{false};  ///< Raised.
  mutable std::mutex mutex_;
  std::map<scheduler::KernelKey, Kernel> kernels_;
  uint32_t told_ = 0;
};

/// Watches one part that is alone under way. Knows the time only from its callers.
class PartWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// Nanoseconds that a part may run at least; a driver's compiler may be part of that.
  static constexpr uint64_t kLeastNs = 1'000'000'000;
  /// Taken for the length of parts of which nothing is known.
  static constexpr uint64_t kUnknownNs = 100'000'000;
  /// Between two looks before the device has begun it: nobody tells.
  static constexpr std::chrono::milliseconds kLook{50};

  /// Nanoseconds that it should take; 0: not known.
  explicit PartWatch(uint64_t estimated_ns);

  /// `runs`: the device is at it at this moment. True: it has been seen running for all of its patience.
  bool Look(bool runs, Clock::time_point now);
  /// When to look again.
  Clock::time_point NextLook(Clock::time_point now) const { return began_ ? *began_ + patience_ : now + kLook; }
  std::chrono::nanoseconds patience() const { return patience_; }

 private:
  std::chrono::nanoseconds patience_;
  std::optional<Clock::time_point> began_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SPLIT_ALARM_H_
