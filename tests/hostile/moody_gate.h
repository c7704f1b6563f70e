// SPDX-License-Identifier: Apache-2.0
// A gate at which others come and go all the time: now and then the session is alone, then it must ask for each unit,
// and is let through at once, later, or after it has waited.
#ifndef HAWSER_TESTS_HOSTILE_MOODY_GATE_H_
#define HAWSER_TESTS_HOSTILE_MOODY_GATE_H_

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "server/worker/launch_gate.h"

namespace hawser::hostile {

/// Never destroyed: its thread goes on until the process ends.
///
/// Threads: any, and its own, which lets others come and go. Lock order: open_mutex_ before mutex_.
class MoodyGate final : public server::LaunchGate {
 public:
  explicit MoodyGate(uint64_t seed) : random_(seed) {
    std::thread([this] { ComeAndGo(); }).detach();
  }

  bool BeginOpen() override {
    open_mutex_.lock();
    if (alone_) return true;
    open_mutex_.unlock();
    return false;
  }
  void EndOpen() override { open_mutex_.unlock(); }
  uint64_t OpenCapNs() const override { return 10'000'000; }
  void SetDrain(std::function<void()> drain) override {
    const std::lock_guard<std::mutex> lock(call_mutex_);
    drain_ = std::move(drain);
  }
  void SetClosed(std::function<void()> closed) override {
    const std::lock_guard<std::mutex> lock(call_mutex_);
    closed_ = std::move(closed);
  }
  uint64_t UnitNs() const override { return alone_ ? 0 : unit_ns_.load(); }
  uint32_t Tenants() const override { return 3; }
  bool TryEnter(uint64_t) override {
    if (Below(2) == 0) return false;
    entered_.fetch_add(1);
    return true;
  }
  bool Enter(uint64_t) override {
    std::this_thread::sleep_for(std::chrono::microseconds(Below(800)));
    entered_.fetch_add(1);
    return true;
  }
  void Leave(uint64_t, uint64_t) override {
    if (left_.fetch_add(1) < entered_.load()) return;
    std::printf("more units have left the gate than entered it\n");
    std::fflush(stdout);
    std::abort();
  }
  uint64_t EarlyNs() const override { return 200'000; }
  bool Ends() const override { return ends_; }
  void Cancel() override {}

 private:
  uint64_t Below(uint64_t limit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return random_() % limit;
  }
  void ComeAndGo() {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::microseconds(200 + Below(3000)));
      unit_ns_ = 50'000 + Below(2'000'000);
      ends_ = Below(2) == 0;
      {
        const std::lock_guard<std::mutex> lock(open_mutex_);
        alone_ = !alone_;
        if (alone_) continue;
      }
      const std::lock_guard<std::mutex> lock(call_mutex_);
      if (closed_) closed_();
      if (drain_) drain_();
    }
  }

  std::mutex open_mutex_, call_mutex_, mutex_;
  std::mt19937_64 random_;
  std::function<void()> drain_, closed_;
  std::atomic<bool> alone_{true}, ends_{false};
  std::atomic<uint64_t> unit_ns_{1'000'000}, entered_{0}, left_{0};
};

}  // namespace hawser::hostile

#endif  // HAWSER_TESTS_HOSTILE_MOODY_GATE_H_
