// SPDX-License-Identifier: Apache-2.0
// Device memory of one process in another (CUDA driver API, "Memory Management", cuIpc*).
//
// Memory is private until it is first exported: then its bytes move into a file behind the same addresses, while
// nothing runs. So programs that share nothing pay nothing, and pointers stay what they are.
//
// Threads: any; one lock, taken before the contexts' and the memory map's.
#ifndef HAWSER_SOFTCUDA_DRIVER_SHARING_H_
#define HAWSER_SOFTCUDA_DRIVER_SHARING_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "softcuda/driver/memory_map.h"
#include "softcuda/driver/shared_file.h"

namespace hawser::soft {

class Context;

class Sharing {
 public:
  /// A handle of memory of this process. The first time it waits for all work of the process so far.
  CUresult Export(const AllocationPtr& allocation, SharedHandle* handle);
  /// Maps memory of another process. Opened again by the same context it is the same address, counted.
  CUresult Import(const SharedHandle& handle, Context* context, uint64_t* address);
  /// One opening less. *last: that was the last one, and this is what the caller releases once nothing uses it.
  CUresult Close(uint64_t address, AllocationPtr* last);

 private:
  struct Imported {
    std::weak_ptr<Allocation> allocation;  ///< Gone: its context ended.
    uint64_t file_system = 0;
    uint64_t file = 0;
    unsigned count = 0;
  };

  static CUresult MoveIntoFile(const AllocationPtr& allocation);

  std::mutex mutex_;
  std::map<uint64_t, Imported> imported_;  ///< By address.
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_SHARING_H_
