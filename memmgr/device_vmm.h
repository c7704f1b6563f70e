// SPDX-License-Identifier: Apache-2.0
// What chunks of device memory need of a driver: its virtual memory management, one device's.
#ifndef HAWSER_MEMMGR_DEVICE_VMM_H_
#define HAWSER_MEMMGR_DEVICE_VMM_H_

#include <cstdint>
#include <span>

namespace hawser::memmgr {

/// Addresses are reserved, physical memory is created, and one is mapped to the other: the rules are those of the CUDA
/// driver API, "Virtual Memory Management". All sizes and addresses are multiples of granularity(), in bytes. Results
/// are the driver's codes, 0: done.
///
/// Threads: as the driver, any; ChunkedMemory calls it under its lock.
class DeviceVmm {
 public:
  using Handle = uint64_t;

  virtual ~DeviceVmm() = default;

  /// The least that can be created and mapped. A power of two.
  virtual uint64_t granularity() const = 0;
  /// The driver's code for memory that is not to be had.
  virtual int32_t out_of_memory() const = 0;

  virtual int32_t Reserve(uint64_t size, uint64_t* address) = 0;
  virtual void Free(uint64_t address, uint64_t size) = 0;
  virtual int32_t Create(uint64_t size, Handle* handle) = 0;
  virtual void Release(Handle handle) = 0;
  /// Maps all of `handle`'s memory.
  virtual int32_t Map(uint64_t address, uint64_t size, Handle handle) = 0;
  virtual void Unmap(uint64_t address, uint64_t size) = 0;
  /// These devices may read and write what is mapped in the range.
  virtual int32_t SetAccess(uint64_t address, uint64_t size, std::span<const int> devices) = 0;
};

}  // namespace hawser::memmgr

#endif  // HAWSER_MEMMGR_DEVICE_VMM_H_
