// SPDX-License-Identifier: Apache-2.0
// The runtime of this process: driver, devices, what programs registered. Made at first use and never destroyed,
// because programs call CUDA from exit handlers and destructors.
#ifndef HAWSER_INTERPOSER_CUDART_RUNTIME_H_
#define HAWSER_INTERPOSER_CUDART_RUNTIME_H_

#include <memory>
#include <mutex>
#include <vector>

#include "interposer/cudart/device.h"
#include "interposer/cudart/driver.h"
#include "interposer/cudart/loader.h"
#include "interposer/cudart/registry.h"
#include "interposer/cudart/thread_state.h"

namespace hawser::cudart {

class Runtime {
 public:
  static Runtime& Get();

  Registry& registry() { return registry_; }
  Loader& loader() { return loader_; }
  /// Only after Start() succeeded.
  const Driver& driver() const { return driver_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  /// Null for a number that is no device.
  Device* device(int ordinal) {
    return ordinal >= 0 && ordinal < device_count() ? devices_[static_cast<size_t>(ordinal)].get() : nullptr;
  }

  /// Opens the driver and finds the devices, once; later calls return what the first returned.
  cudaError_t Start();
  /// True once Start() succeeded.
  bool started() const { return state_.load(std::memory_order_acquire) == kReady; }

  /// Start(), and then makes sure that the thread has a current context: the one that the program made current through
  /// the driver API, else the primary context of the thread's device.
  cudaError_t Bind(ThreadState& thread);
  /// Makes the device's primary context current and remembers the choice.
  cudaError_t SetDevice(ThreadState& thread, int ordinal);
  /// The device of the thread: that of its current context, else the chosen one.
  int CurrentDevice(ThreadState& thread);
  cudaError_t ResetDevice(ThreadState& thread);
  /// The version of the device's primary context; 0 when a context of the program's own is current.
  uint64_t CurrentEpoch(ThreadState& thread);

  /// For tests, each of which wants a fresh process.
  static void ReplaceForTest();

 private:
  enum State { kNew, kFailed, kReady };

  Runtime() : loader_(driver_, registry_) {}
  cudaError_t StartOnce();
  cudaError_t BindPrimary(ThreadState& thread);

  Driver driver_;
  Registry registry_;
  Loader loader_;
  std::mutex start_mutex_;
  std::atomic<State> state_ = kNew;
  cudaError_t start_error_ = cudaSuccess;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_RUNTIME_H_
