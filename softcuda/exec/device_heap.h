// SPDX-License-Identifier: Apache-2.0
// malloc and free of kernels: first fit over one region that the driver gives (and lists in its AddressSpace).
// Thread-safe; one lock, held for a short list walk.
#ifndef HAWSER_SOFTCUDA_EXEC_DEVICE_HEAP_H_
#define HAWSER_SOFTCUDA_EXEC_DEVICE_HEAP_H_

#include <cstdint>
#include <map>
#include <mutex>

namespace hawser::exec {

class DeviceHeap {
 public:
  /// Region of `size` bytes at `base` (16-byte aligned host address), owned by the caller.
  DeviceHeap(uint64_t base, uint64_t size);
  /// 16-byte aligned; 0 when there is no room or `size` is 0.
  uint64_t Allocate(uint64_t size);
  /// False when `address` is not a live allocation (null is fine).
  bool Free(uint64_t address);
  uint64_t used() const;

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_;  ///< begin -> bytes
  std::map<uint64_t, uint64_t> live_;  ///< begin -> bytes
  uint64_t used_ = 0;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_DEVICE_HEAP_H_
