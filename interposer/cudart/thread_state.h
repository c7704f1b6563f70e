// SPDX-License-Identifier: Apache-2.0
// What the runtime knows about each host thread. Trivially destructible on purpose: the runtime is called from exit
// handlers and from destructors of thread-local objects, and must still find it.
#ifndef HAWSER_INTERPOSER_CUDART_THREAD_STATE_H_
#define HAWSER_INTERPOSER_CUDART_THREAD_STATE_H_

#include <cuda.h>
#include <driver_types.h>
#include <vector_types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "interposer/cudart/errors.h"

namespace hawser::cudart {

struct Function;

/// The <<<...>>> of a launch, between its evaluation and the launch.
struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

/// The configurations of launches whose arguments are being evaluated: an argument may itself launch. Not thread safe.
class LaunchConfigurationStack {
 public:
  /// False when launches are nested more deeply than any program does.
  bool Push(const LaunchConfiguration& configuration) {
    if (depth_ == kDepth) return false;
    entries_[depth_++] = configuration;
    return true;
  }
  bool Pop(LaunchConfiguration* configuration) {
    if (depth_ == 0) return false;
    *configuration = entries_[--depth_];
    return true;
  }

 private:
  static constexpr size_t kDepth = 16;
  std::array<LaunchConfiguration, kDepth> entries_{};
  size_t depth_ = 0;
};

/// When a context was made current: as often as its device had been reset by then. Device::epoch() counts that.
struct Epoch {
  const std::atomic<uint64_t>* now = nullptr;  ///< Null: of no device that the runtime resets.
  uint64_t then = 0;

  bool is_over() const { return now != nullptr && now->load(std::memory_order_acquire) != then; }
};

/// The thread's last error (CUDA runtime API, "Error handling"): kept until it is asked for. An error that ended the
/// context is kept as long as that context, whichever thread resets the device.
class LastError {
 public:
  /// Returns `error`. cudaErrorNotReady is an answer, not an error, and is not kept. `epoch`: of the current context.
  cudaError_t Record(cudaError_t error, Epoch epoch = {}) {
    if (error == cudaSuccess || error == cudaErrorNotReady || Stays()) return error;
    error_ = error;
    epoch_ = epoch;
    return error;
  }
  cudaError_t Peek() const { return IsSticky(error_) && epoch_.is_over() ? cudaSuccess : error_; }
  cudaError_t Take() {
    const cudaError_t error = Peek();
    if (!Stays()) error_ = cudaSuccess;
    return error;
  }
  void Clear() { error_ = cudaSuccess; }

 private:
  bool Stays() const { return IsSticky(error_) && !epoch_.is_over(); }

  cudaError_t error_ = cudaSuccess;
  Epoch epoch_;
};

/// The functions that this thread launched last, so that a launch by host address takes no lock.
struct FunctionCache {
  static constexpr size_t kSize = 64;
  struct Slot {
    const void* host = nullptr;
    Function* function = nullptr;
  };
  static size_t Index(const void* host) { return (reinterpret_cast<uintptr_t>(host) >> 4) % kSize; }
  std::array<Slot, kSize> slots{};
  uint64_t generation = 0;
};

struct ThreadState {
  LastError last_error;
  int device = 0;                   ///< Chosen by cudaSetDevice().
  CUcontext bound = nullptr;        ///< The primary context that the runtime made current in this thread; null: none.
  Epoch bound_epoch;                ///< Of that time; over: the device was reset since.
  bool per_thread_default = false;  ///< Stream 0 means the thread's own stream; see twin.h.
  LaunchConfigurationStack launches;
  FunctionCache functions;
};

inline thread_local constinit ThreadState g_thread_state;
inline ThreadState& CurrentThread() { return g_thread_state; }

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_THREAD_STATE_H_
