// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: reserved addresses, chunks of memory (a memfd each), and which lies where. The rules are a
// device's: whole chunks at granular addresses, mapped memory is out of reach until access is given, and is unmapped as
// it was mapped.
//
// Chunks that were created with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR may be given to other processes. A chunk
// counts against the capacity of its device in the process that created it, for as long as that has it: capacity is
// each process's own, and what it has from others is counted there, as with cuIpcOpenMemHandle.
//
// Source: CUDA driver API, "Virtual Memory Management". Threads: any; one lock, taken before the memory map's.
#ifndef HAWSER_SOFTCUDA_DRIVER_VIRTUAL_MEMORY_H_
#define HAWSER_SOFTCUDA_DRIVER_VIRTUAL_MEMORY_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "softcuda/driver/device.h"
#include "softcuda/driver/shared_file.h"

namespace hawser::soft {

/// A piece of memory that can be mapped; its memory lives as long as a handle or a mapping.
struct Chunk {
  uint64_t handle = 0;
  Device* device = nullptr;
  bool charged = false;  ///< Counts against the device's capacity.
  uint64_t size = 0;
  SharedFile file;
  CUmemAllocationProp properties{};
  unsigned references =
      1;  ///< Of the program: cuMemCreate, cuMemRetainAllocationHandle, imports. Guarded by the manager.

  Chunk() = default;
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
};

class VirtualMemory {
 public:
  static constexpr uint64_t kGranularity = uint64_t{2} << 20;

  CUresult Reserve(uint64_t size, uint64_t alignment, uint64_t hint, uint64_t* address);
  CUresult Free(uint64_t address, uint64_t size);
  CUresult Create(Device* device, uint64_t size, const CUmemAllocationProp& properties, uint64_t* handle);
  CUresult Release(uint64_t handle);
  CUresult Map(uint64_t address, uint64_t size, uint64_t offset, uint64_t handle);
  /// [address, address + size) must be whole mappings. Nothing may use them any more.
  CUresult Unmap(uint64_t address, uint64_t size);
  CUresult SetAccess(uint64_t address, uint64_t size, CUmemAccess_flags flags);
  CUresult GetAccess(uint64_t address, CUmemAccess_flags* flags);
  CUresult Retain(uint64_t address, uint64_t* handle);
  CUresult Properties(uint64_t handle, CUmemAllocationProp* properties);
  /// A new descriptor of the chunk's file, the caller's. CUDA_ERROR_INVALID_VALUE: it was not created to be given away.
  CUresult Export(uint64_t handle, int* descriptor);
  /// The chunk that a descriptor stands for, which stays the caller's; a handle of its own each time.
  CUresult Import(int descriptor, uint64_t* handle);

 private:
  struct Mapping {
    uint64_t size = 0;
    std::shared_ptr<Chunk> chunk;
    uint64_t offset = 0;
    uint64_t reservation = 0;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  };
  using Mappings = std::map<uint64_t, Mapping>;

  /// The reservation that holds all of the range; end() when there is none.
  std::map<uint64_t, uint64_t>::iterator Reservation(uint64_t address, uint64_t size);
  /// Mappings that make up exactly the range; false when something is missing or sticks out.
  bool Whole(uint64_t address, uint64_t size, Mappings::iterator* first, Mappings::iterator* last);
  void Close(uint64_t address, const Mapping& mapping);

  std::mutex mutex_;
  std::map<uint64_t, uint64_t> reservations_;  ///< begin -> size
  Mappings mappings_;
  std::map<uint64_t, std::shared_ptr<Chunk>> chunks_;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_VIRTUAL_MEMORY_H_
