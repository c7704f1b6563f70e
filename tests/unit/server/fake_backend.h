// SPDX-License-Identifier: Apache-2.0
// A backend without a device: buffers are host memory, and some commands misbehave on request.
#ifndef HAWSER_TESTS_UNIT_SERVER_FAKE_BACKEND_H_
#define HAWSER_TESTS_UNIT_SERVER_FAKE_BACKEND_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/opencl/forwarding_handler.h"
#include "server/worker/backend.h"
#include "server/worker/launch_gate.h"

namespace hawser::server {

/// What Flush() does when it names a queue with this index; other queues do nothing.
enum class Prank : uint32_t {
  kCrash = 0xdead0001,  ///< Touches memory that does not exist.
  kAbort = 0xdead0002,
  kHang = 0xdead0003,         ///< Writes "hanging from now on", never returns.
  kPrint = 0xdead0004,        ///< Prints "printed\n" on stdout, as a kernel would.
  kOpenNetwork = 0xdead0005,  ///< Answers with an error notice whose status is errno of socket(AF_INET).
  kLog = 0xdead0006,          ///< Writes "a line for the log".
  kFlood = 0xdead0007,        ///< Sends notices without end until the session is lost.
  kUseDevice = 0xdead0008,    ///< Asks the scheduler's gate for a microsecond.
};

struct FakeState {
  Services services;
  Backend::Failure failure;
  std::mutex mutex;
  std::map<uint64_t, std::vector<std::byte>> buffers;
  std::vector<std::string> calls;
  bool wants_heap = false;
  uint64_t heap_size = 0;
  bool lets_go_of_gate = false;  ///< At its end, as backends with a device do.
};

/// Calls that matter are overloads; the rest succeed.
class FakeCalls {
 public:
  explicit FakeCalls(std::shared_ptr<FakeState> state) : state_(std::move(state)) {}

  template <typename Message>
  int32_t operator()(const opencl::Call& call, const Message& message) {
    {
      std::lock_guard lock(state_->mutex);
      state_->calls.emplace_back(opencl::OpcodeName(call.opcode));
    }
    return Run(call, message);
  }

 private:
  template <typename Message>
  int32_t Run(const opencl::Call&, const Message&) {
    return 0;
  }
  int32_t Run(const opencl::Call& call, const opencl::Nothing& message);       // GetInventory
  int32_t Run(const opencl::Call& call, const opencl::CreateBuffer& message);  // waits for initial contents
  int32_t Run(const opencl::Call& call, const opencl::WriteBuffer& message);
  int32_t Run(const opencl::Call& call, const opencl::ReadBuffer& message);
  int32_t Run(const opencl::Call& call, const opencl::CreateContext& message);  // fails without devices
  int32_t Run(const opencl::Call& call, const opencl::Finish& message);
  int32_t Run(const opencl::Call& call, const opencl::Flush& message);

  std::shared_ptr<FakeState> state_;
};

class FakeBackend final : public opencl::ForwardingHandler<FakeCalls, Backend> {
 public:
  explicit FakeBackend(std::shared_ptr<FakeState> state = std::make_shared<FakeState>())
      : ForwardingHandler(FakeCalls(state)), state_(std::move(state)) {}
  ~FakeBackend() override {
    if (state_->lets_go_of_gate && state_->services.launch_gates != nullptr)
      state_->services.launch_gates->Of("cpu").SetDrain(nullptr);
  }

  Failure TakeFailure() override { return std::exchange(state_->failure, Failure()); }
  bool WantsHeap() override { return state_->wants_heap; }
  uint64_t HeapSizeHint() override { return state_->heap_size; }
  void SetServices(const Services& services) override { state_->services = services; }

  FakeState& state() { return *state_; }

 private:
  std::shared_ptr<FakeState> state_;
};

}  // namespace hawser::server

#endif  // HAWSER_TESTS_UNIT_SERVER_FAKE_BACKEND_H_
