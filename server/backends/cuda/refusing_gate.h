// SPDX-License-Identifier: Apache-2.0
// A gate for tests: as if somebody else always wanted the device, and refusing each so many-th question for a moment.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_REFUSING_GATE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_REFUSING_GATE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "server/worker/launch_gate.h"

namespace hawser::server::cuda_backend {

class RefusingGate final : public LaunchGate {
 public:
  explicit RefusingGate(uint64_t every) : every_(every) {}

  bool BeginOpen() override { return false; }
  uint64_t UnitNs() const override { return 1'000'000; }
  uint32_t Tenants() const override { return 2; }
  bool TryEnter(uint64_t) override { return asked_.fetch_add(1) % every_ != 0; }
  bool Enter(uint64_t) override {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    return !cancelled_;
  }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override { cancelled_ = true; }

 private:
  const uint64_t every_;
  std::atomic<uint64_t> asked_{0};
  std::atomic<bool> cancelled_{false};
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_REFUSING_GATE_H_
