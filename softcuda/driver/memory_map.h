// SPDX-License-Identifier: Apache-2.0
// What is allocated where: device memory, host memory that kernels may use, managed memory, mapped chunks, variables of
// modules. The same table answers pointer queries, checks copies, and is what kernels' accesses are checked against.
//
// Threads: all functions from any thread; one reader-writer lock. access() is read by kernels without it.
#ifndef HAWSER_SOFTCUDA_DRIVER_MEMORY_MAP_H_
#define HAWSER_SOFTCUDA_DRIVER_MEMORY_MAP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "proto/cuda_api/range_hints.h"
#include "softcuda/driver/access_table.h"
#include "softcuda/driver/shared_file.h"

namespace hawser::soft {

enum class MemoryKind : uint8_t {
  kDevice,
  kPool,  ///< Stream-ordered.
  kManaged,
  kHost,        ///< Pinned, allocated here.
  kRegistered,  ///< Pinned, the program's own.
  kModule,      ///< A variable, or the kernels' heap.
  kMapped,      ///< Part of a reserved range with a chunk behind it.
  kImported,    ///< Another process's.
};

struct Allocation {
  uint64_t begin = 0;
  uint64_t size = 0;  ///< As asked for, in bytes.
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;        ///< Ordinal.
  uint64_t context = 0;  ///< Handle; 0: belongs to no context.
  uint64_t owner = 0;    ///< Handle of the pool, of the chunk, of the module.
  uint64_t charged = 0;  ///< Bytes of the device's capacity.
  unsigned flags = 0;    ///< Of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged.
  bool writable = true;
  uint64_t reservation = 0;          ///< kMapped: where the reserved range begins,
  uint64_t reserved = 0;             ///< and its bytes.
  bool graph = false;                ///< Made by a graph's node: stays for the next launch, whoever frees it.
  std::atomic<bool> unfreed{false};  ///< Then: launched, and not freed since, in the order of the program's calls.
  uint64_t id = 0;                   ///< CU_POINTER_ATTRIBUTE_BUFFER_ID
  std::atomic<bool> sync_memops{false};
  cuda_api::RangeHints hints;  ///< kManaged: what the program said about it, which changes nothing here.
  SharedFile file;             ///< Valid once it was exported (sharing.h), and guarded like that.

  uint64_t end() const { return begin + size; }
  bool on_host() const { return kind == MemoryKind::kHost || kind == MemoryKind::kRegistered; }
};

using AllocationPtr = std::shared_ptr<Allocation>;

class MemoryMap {
 public:
  /// False when it overlaps a live one.
  bool Add(const AllocationPtr& allocation);
  /// Removes the one that begins at `address`; null when there is none.
  AllocationPtr Remove(uint64_t address);
  /// The one that holds `address`; null when there is none.
  AllocationPtr Find(uint64_t address) const;
  /// True when all of the bytes are live; they may lie in neighbouring allocations.
  bool Covers(uint64_t address, uint64_t size) const { return Covers(address, size, false); }
  /// The same, and all may be written.
  bool CoversForWriting(uint64_t address, uint64_t size) const { return Covers(address, size, true); }
  /// True when any of the bytes is live.
  bool Touches(uint64_t address, uint64_t size) const;
  /// All for which `predicate` holds.
  std::vector<AllocationPtr> Select(const std::function<bool(const Allocation&)>& predicate) const;

  const exec::AddressSpace& access() const { return access_; }

 private:
  bool TouchesLocked(uint64_t address, uint64_t size) const;
  bool Covers(uint64_t address, uint64_t size, bool writing) const;

  mutable std::shared_mutex mutex_;
  std::map<uint64_t, AllocationPtr> by_begin_;
  uint64_t next_id_ = 1;
  AccessTable access_;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_MEMORY_MAP_H_
