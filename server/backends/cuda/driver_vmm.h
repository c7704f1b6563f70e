// SPDX-License-Identifier: Apache-2.0
// The virtual memory management of one device of a CUDA driver.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_DRIVER_VMM_H_
#define HAWSER_SERVER_BACKENDS_CUDA_DRIVER_VMM_H_

#include <memory>
#include <string>

#include "memmgr/device_vmm.h"
#include "server/backends/cuda/driver_table.h"
#include "wire/socket.h"

namespace hawser::server::cuda_backend {

/// Threads: any, as the driver. Needs no current context.
class DriverVmm final : public memmgr::DeviceVmm {
 public:
  /// Null, and why, when the driver or the device has none. `driver` is borrowed. Its memory can be given to other
  /// processes where the device says so and keeps its word.
  static std::unique_ptr<DriverVmm> Create(const DriverTable* driver, CUdevice device, std::string* why);

  uint64_t granularity() const override { return granularity_; }
  int32_t out_of_memory() const override { return CUDA_ERROR_OUT_OF_MEMORY; }
  int32_t Reserve(uint64_t size, uint64_t* address) override;
  void Free(uint64_t address, uint64_t size) override { (void)driver_->cuMemAddressFree(address, size); }
  int32_t Create(uint64_t size, Handle* handle) override;
  void Release(Handle handle) override { (void)driver_->cuMemRelease(handle); }
  int32_t Map(uint64_t address, uint64_t size, Handle handle) override {
    return driver_->cuMemMap(address, size, 0, handle, 0);
  }
  void Unmap(uint64_t address, uint64_t size) override { (void)driver_->cuMemUnmap(address, size); }
  int32_t SetAccess(uint64_t address, uint64_t size, std::span<const int> devices) override;

  /// Whether what Create() makes can be given to other processes, and theirs be had.
  bool shareable() const { return properties_.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE; }
  CUresult Export(Handle handle, wire::Fd* file);
  CUresult Import(const wire::Fd& file, Handle* handle);

 private:
  DriverVmm(const DriverTable* driver, const CUmemAllocationProp& properties, uint64_t granularity)
      : driver_(driver), properties_(properties), granularity_(granularity) {}

  const DriverTable* const driver_;
  const CUmemAllocationProp properties_;
  const uint64_t granularity_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_DRIVER_VMM_H_
