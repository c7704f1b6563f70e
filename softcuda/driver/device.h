// SPDX-License-Identifier: Apache-2.0
// A software device: what it says of itself, how much of its memory is taken, and its primary context.
//
// Threads: any. The capacity is one atomic number; the primary context has a lock of its own, taken before all others.
#ifndef HAWSER_SOFTCUDA_DRIVER_DEVICE_H_
#define HAWSER_SOFTCUDA_DRIVER_DEVICE_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "softcuda/driver/settings.h"
#include "softcuda/exec/launch.h"

namespace hawser::soft {

class Context;
struct Pool;

class Device {
 public:
  Device(int ordinal, const Settings& settings);

  int ordinal() const { return ordinal_; }
  std::string name() const;
  CUuuid uuid() const;
  /// "0000:01:00.0" and so on: made up, unique in the process.
  std::string pci_bus_id() const;
  uint32_t capability() const { return settings_.capability(); }

  /// CUDA_ERROR_INVALID_VALUE for a number that is no attribute.
  CUresult Attribute(CUdevice_attribute attribute, int* value) const;
  int Attribute(CUdevice_attribute attribute) const;
  const exec::DeviceProperties& properties() const { return properties_; }

  uint64_t capacity() const { return settings_.memory; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  /// Counts `bytes` as used; false, and nothing counted, when they do not fit.
  bool Charge(uint64_t bytes);
  void Discharge(uint64_t bytes);

  /// The primary context and its count of users. Guarded by primary_mutex.
  std::mutex primary_mutex;
  std::shared_ptr<Context> primary;
  unsigned primary_users = 0;
  unsigned primary_flags = 0;

  std::shared_ptr<Pool> default_pool;  ///< Set once when the driver starts.
  std::shared_ptr<Pool> current_pool;  ///< Guarded by primary_mutex.

 private:
  const int ordinal_;
  const Settings settings_;
  exec::DeviceProperties properties_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_DEVICE_H_
