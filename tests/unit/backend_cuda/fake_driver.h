// SPDX-License-Identifier: Apache-2.0
// A CUDA driver without a device, for tests of the backend: memory is host memory, each stream is a thread that runs
// what was enqueued in order, and kernels are a few C++ functions. Every module holds the same kernels:
//   add(u64 pointer, u32 count, u32 value)   adds to each 32-bit element
//   fault()                                  breaks the context with CUDA_ERROR_ILLEGAL_ADDRESS
//   block()                                  runs until FakeDriver::Unblock()
// and the variable "counter" of 64 bytes. The image "bad" is refused; loading "slow" takes until FakeDriver::Unblock().
#ifndef HAWSER_TESTS_UNIT_BACKEND_CUDA_FAKE_DRIVER_H_
#define HAWSER_TESTS_UNIT_BACKEND_CUDA_FAKE_DRIVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/backends/cuda/driver_choice.h"

namespace hawser::server::cuda_backend {

/// One at a time: the table's functions find it through a global.
class FakeDriver {
 public:
  explicit FakeDriver(uint64_t memory = 1u << 20);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  DriverTable table() const;
  /// As if chosen; one device of capability 9.0.
  ChosenDriver Chosen(bool soft) const;

  /// Lets every block() kernel end, now and later.
  void Unblock();
  uint64_t allocated() const { return allocated_; }
  size_t live_objects() const;
  std::vector<std::string> loaded_images() const;
  std::atomic<int> launches{0};

  struct StreamObject;
  struct EventObject;

 private:
  friend struct FakeCalls;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  const uint64_t memory_;
  std::atomic<uint64_t> allocated_{0};
  std::map<CUdeviceptr, std::unique_ptr<std::byte[]>> blocks_;
  std::map<CUdeviceptr, uint64_t> sizes_;
  std::vector<std::unique_ptr<EventObject>> dead_events_;  ///< Destroyed; streams_ may still use them.
  std::map<StreamObject*, std::unique_ptr<StreamObject>> streams_;
  std::vector<std::unique_ptr<StreamObject>> gone_streams_;
  std::set<EventObject*> events_;
  std::vector<std::string> images_;
  std::atomic<int> error_{0};  ///< Sticky, of the one context.
  bool unblocked_ = false;
  std::vector<std::byte> counter_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_TESTS_UNIT_BACKEND_CUDA_FAKE_DRIVER_H_
