// SPDX-License-Identifier: Apache-2.0
// Device memory in chunks: one physical handle for each, mapped side by side under addresses that were reserved once.
// What a program allocates is a range of addresses that stays; what lies under it can be exchanged chunk by chunk,
// which is what moving a tenant's memory out of the way needs (GPUswap, section 3). Small allocations share a chunk.
//
// Threads: any; one lock, held over calls of the driver's memory management, which takes its own. Nobody waits for the
// device under it: who frees has made sure that nothing uses the memory any more.
#ifndef HAWSER_MEMMGR_CHUNKED_MEMORY_H_
#define HAWSER_MEMMGR_CHUNKED_MEMORY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "memmgr/device_vmm.h"
#include "memmgr/extent_allocator.h"

namespace hawser::memmgr {

class ChunkedMemory {
 public:
  /// Up to here allocations share chunks, in bytes.
  static constexpr uint64_t kSmall = uint64_t{1} << 20;
  /// What small allocations begin at a multiple of, at least (cuMemAlloc promises 256).
  static constexpr uint64_t kUnit = 512;
  /// An allocation has no more chunks than this: those of large ones are larger.
  static constexpr uint64_t kMostChunks = 128;

  struct Chunk {
    uint64_t address = 0;
    uint64_t size = 0;
    DeviceVmm::Handle handle = 0;
    bool shared = false;  ///< Other processes may have it, or made it: it stays what it is and where it is.
  };

  /// `vmm` is borrowed. `device`: its number, which may use the memory from the start.
  ChunkedMemory(DeviceVmm* vmm, int device);
  /// Takes all memory away.
  ~ChunkedMemory();
  ChunkedMemory(const ChunkedMemory&) = delete;
  ChunkedMemory& operator=(const ChunkedMemory&) = delete;

  /// Reserves addresses for everything that will ever be there, in bytes; less when there are not so many. Once, before
  /// all else. The driver's code.
  int32_t Reserve(uint64_t size);
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return begin_ + span_; }

  /// What an allocation of that size takes of the device; 0: more than there are numbers.
  uint64_t Footprint(uint64_t size) const;
  /// The driver's code; 0: `*address` is usable by all devices that have access.
  int32_t Allocate(uint64_t size, uint64_t* address);
  /// Ends the allocation, or what was taken in, that begins there. False when none does. Chunks that others have too
  /// live on with them.
  bool Free(uint64_t address);
  /// The chunks under an allocation, in order, which are shared from now on; they live as long as it does. Nothing when
  /// the range is no allocation's.
  std::vector<Chunk> Share(uint64_t address, uint64_t size);
  /// Takes in chunks of another process, side by side; their sizes and handles say what they are, and the handles are
  /// this object's from now on, or the caller's again when the driver's code says that it cannot be. `offset`:
  /// where in them the memory begins that somebody shares, which is `*address`.
  int32_t TakeIn(std::span<const Chunk> chunks, uint64_t offset, uint64_t* address);
  /// One more device may use the memory, what there is and what comes.
  int32_t GiveAccess(int device);

  /// The chunks there are, by address.
  std::vector<Chunk> Chunks() const;
  /// Bytes of chunks.
  uint64_t held() const;

 private:
  /// A chunk that small allocations share.
  struct Slab {
    explicit Slab(uint64_t size) : extents(size, kUnit) {}
    ExtentAllocator extents;
  };

  uint64_t ChunkSize(uint64_t size) const;
  /// Addresses with memory behind them.
  int32_t Back(uint64_t size, uint64_t* address);
  /// Maps a chunk at its address, and notes it.
  int32_t Map(const Chunk& chunk);
  void Unback(uint64_t address);
  int32_t AllocateSmall(uint64_t size, uint64_t* address);
  /// Changes a slab by change(extents), and where it stands in by_room_.
  template <typename Change>
  auto InSlab(uint64_t begin, Slab& slab, Change&& change) {
    by_room_.erase({slab.extents.largest_free(), begin});
    auto result = change(slab.extents);
    by_room_.emplace(slab.extents.largest_free(), begin);
    return result;
  }

  DeviceVmm* const vmm_;
  const uint64_t granularity_;
  mutable std::mutex mutex_;
  uint64_t begin_ = 0;
  uint64_t span_ = 0;
  ExtentAllocator addresses_{0, 1};  ///< Relative to begin_.
  std::vector<int> devices_;
  std::map<uint64_t, Chunk> chunks_;                 ///< By address.
  std::map<uint64_t, Slab> slabs_;                   ///< By address.
  std::map<uint64_t, uint64_t> taken_in_;            ///< Where the memory begins -> where its chunks do.
  std::set<std::pair<uint64_t, uint64_t>> by_room_;  ///< (largest free extent, address) of the slabs.
  uint64_t empty_slabs_ = 0;
  uint64_t held_ = 0;
};

}  // namespace hawser::memmgr

#endif  // HAWSER_MEMMGR_CHUNKED_MEMORY_H_
