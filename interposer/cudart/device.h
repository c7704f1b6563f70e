// SPDX-License-Identifier: Apache-2.0
// One device as the runtime sees it: its primary context and what never changes about it.
// Threads: all members may be called from any thread. mutex_ is a leaf: only the driver is called under it.
#ifndef HAWSER_INTERPOSER_CUDART_DEVICE_H_
#define HAWSER_INTERPOSER_CUDART_DEVICE_H_

#include <driver_types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "interposer/cudart/driver.h"
#include "interposer/cudart/thread_state.h"

namespace hawser::cudart {

class Device {
 public:
  Device(const Driver& driver, int ordinal, CUdevice handle) : driver_(driver), ordinal_(ordinal), handle_(handle) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  CUdevice handle() const { return handle_; }

  /// The primary context, retained once and kept until Reset().
  cudaError_t Primary(CUcontext* context);
  /// The primary context if this runtime holds it now, else null.
  CUcontext held() const { return held_.load(std::memory_order_acquire); }
  /// Changes with each Reset(): contexts and addresses of an earlier epoch are gone.
  Epoch epoch() const { return {&epoch_, epoch_.load(std::memory_order_acquire)}; }
  /// Destroys everything in the primary context and gives it back.
  cudaError_t Reset();
  cudaError_t SetFlags(unsigned flags);
  cudaError_t GetFlags(unsigned* flags);

  /// Asks the driver only the first time.
  cudaError_t Attribute(CUdevice_attribute attribute, int* value);
  /// What cudaGetDeviceProperties() gives; asks the driver only the first time.
  cudaError_t Properties(cudaDeviceProp* properties);

 private:
  static constexpr int64_t kUnknown = INT64_MIN;
  static constexpr size_t kAttributes = 192;

  cudaError_t ReadProperties();

  const Driver& driver_;
  const int ordinal_;
  const CUdevice handle_;
  std::mutex mutex_;
  std::atomic<CUcontext> held_ = nullptr;
  std::atomic<uint64_t> epoch_ = 1;
  // Value, or ~error for an attribute that the driver refuses; kUnknown until asked.
  struct Cached {
    std::atomic<int64_t> value = kUnknown;
  };
  std::array<Cached, kAttributes> attributes_;
  bool properties_known_ = false;  // Guarded by mutex_.
  cudaDeviceProp properties_{};
};

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_DEVICE_H_
