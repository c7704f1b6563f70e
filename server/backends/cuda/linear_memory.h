// SPDX-License-Identifier: Apache-2.0
// Where linear memory (cuMemAlloc, cuMemAllocPitch) comes from: chunks, or the driver's own allocator.
//
// Threads: Prepare() before all else; then any. Nothing here waits for the device but what the driver's own cuMemFree
// waits for.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_LINEAR_MEMORY_H_
#define HAWSER_SERVER_BACKENDS_CUDA_LINEAR_MEMORY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "memmgr/chunked_memory.h"
#include "server/backends/cuda/driver_vmm.h"
#include "server/backends/cuda/shared_chunks.h"

namespace hawser::server::cuda_backend {

class LinearMemory {
 public:
  /// `driver` is borrowed.
  explicit LinearMemory(const DriverTable* driver) : driver_(driver) {}

  /// Lets the memory of these devices come in chunks. False, and why: one of them cannot, so all stay with the driver.
  bool Prepare(const std::vector<CUdevice>& devices, std::string* why);
  bool chunked() const { return !devices_.empty(); }
  /// Whether chunks can be given to other processes, and theirs be had.
  bool shareable() const;

  /// What an allocation of that size takes; 0: more than there are numbers.
  uint64_t Footprint(CUdevice device, uint64_t size) const;
  /// A context of the device is current.
  CUresult Allocate(CUdevice device, uint64_t size, CUdeviceptr* address);
  /// Bytes from one row to the next, where it is this side that says so.
  static CUresult RowPitch(size_t width, size_t height, unsigned element, size_t* pitch);
  /// As Allocate(), of rows; `*pitch`: bytes from one to the next, `*size`: of all of them.
  CUresult AllocatePitch(CUdevice device, size_t width, size_t height, unsigned element, CUdeviceptr* address,
                         size_t* pitch, uint64_t* size);
  /// Whether the memory there comes in chunks: then Free() needs a device that does not use it any more.
  bool InChunks(uint64_t address) const;
  CUresult Free(uint64_t address);
  /// What other processes need to have an allocation in chunks too. The allocation lives during the call.
  CUresult Share(uint64_t address, uint64_t size, SharedChunks* chunks, std::vector<wire::Fd>* files);
  /// The same on their side: `size` bytes of memory that another process shares, in addresses of the device's chunks.
  /// Free() ends it. Nothing of what is given is trusted.
  CUresult Open(CUdevice device, const SharedChunks& chunks, const std::vector<wire::Fd>& files, uint64_t size,
                uint64_t* address);
  /// A device may use the memory of another one.
  CUresult GiveAccess(CUdevice owner, CUdevice user);

  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  /// Where chunks lie.
  std::vector<Range> Ranges() const;

 private:
  struct Device {
    std::unique_ptr<DriverVmm> vmm;
    std::unique_ptr<memmgr::ChunkedMemory> memory;  ///< Ends before vmm.
  };
  const Device* DeviceAt(uint64_t address) const;
  memmgr::ChunkedMemory* At(uint64_t address) const;

  const DriverTable* const driver_;
  std::map<CUdevice, Device> devices_;  ///< Empty: the driver's allocator. Not changed after Prepare().
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_LINEAR_MEMORY_H_
