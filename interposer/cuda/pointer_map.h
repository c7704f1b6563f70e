// SPDX-License-Identifier: Apache-2.0
// What this process knows of addresses: its allocations, globals, mapped ranges and pinned host memory. Answers
// pointer attributes and the direction of a copy without asking the server.
//
// Threading: thread-safe; one reader-writer lock, a leaf.
#ifndef HAWSER_INTERPOSER_CUDA_POINTER_MAP_H_
#define HAWSER_INTERPOSER_CUDA_POINTER_MAP_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace hawser::cu {

enum class PointerKind : uint8_t {
  kDevice,      ///< cuMemAlloc and its kin.
  kPool,        ///< Stream-ordered.
  kGlobal,      ///< A module's variable: cannot be freed.
  kReserved,    ///< Address space, perhaps with nothing mapped.
  kMapped,      ///< A piece of a reserved range with memory behind it.
  kManaged,     ///< Managed memory.
  kImported,    ///< From another process.
  kHost,        ///< Host memory that this library allocated (pinned).
  kRegistered,  ///< Host memory that the application pinned.
};

struct PointerRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  PointerKind kind = PointerKind::kDevice;
  int device = 0;
  uint64_t context = 0;                 ///< Name of its context; 0: none.
  uint64_t id = 0;                      ///< CU_POINTER_ATTRIBUTE_BUFFER_ID
  uint32_t flags = 0;                   ///< As given to the call that made it.
  uint64_t heap_offset = ~uint64_t{0};  ///< kHost, kManaged: where in the session's heap; all ones: not there.
  uint64_t heap_pages = ~uint64_t{0};   ///< kDevice: where in the heap pages are set aside for it; all ones: nowhere.
  bool in_heap = false;                 ///< kDevice: its bytes are those of the pages.
  uint64_t device_alias = 0;            ///< kHost, kRegistered: what kernels call it; 0: they have not been given it.

  bool managed = false;  ///< kGlobal: a managed variable.
  bool mirror = false;   ///< kGlobal: in place of host memory (host_mirror.h).
  bool graph = false;    ///< kPool: a graph's, which has it anew with each launch, whoever frees it.
  uint32_t opened = 1;   ///< kImported: how often.

  bool is_managed() const { return kind == PointerKind::kManaged || managed; }
  bool has_heap_pages() const { return heap_pages != ~uint64_t{0}; }
  bool is_host() const { return kind == PointerKind::kHost || kind == PointerKind::kRegistered; }
};

class PointerMap {
 public:
  /// Gives the range its id. Of ranges that overlap the one that begins later is found.
  void Add(PointerRange range);
  /// The innermost range that holds the address.
  std::optional<PointerRange> Find(uint64_t address) const;
  /// Removes the range that begins there and is of one of those kinds.
  std::optional<PointerRange> Remove(uint64_t begin, std::initializer_list<PointerKind> kinds);
  /// True when memory that a graph allocates begins there.
  bool IsGraphs(uint64_t begin) const {
    const auto range = Find(begin);
    return range && range->graph && range->begin == begin;
  }
  /// Memory of another process: opened once more where it is known already.
  void Open(PointerRange range);
  /// Closed once: no longer there after the last time. False: there is none.
  bool Close(uint64_t begin);
  /// Says what kernels call the host memory that begins there.
  void SetDeviceAlias(uint64_t begin, uint64_t alias);
  /// The memory that begins there is not to be touched in the heap from now on.
  void LeaveHeap(uint64_t begin);
  /// True when memory of the context has pages of the heap.
  bool UsesHeap(uint64_t context) const;
  /// Removes what belongs to a context that ends.
  std::vector<PointerRange> RemoveContext(uint64_t context);
  /// True when there was ever pinned memory that kernels know by another name.
  bool HasPinnedElsewhere() const { return elsewhere_end_.load(std::memory_order_relaxed) != 0; }
  /// False when `address` is certainly none, nor the end, of pinned memory that kernels know by another name.
  /// Lock-free.
  bool MayBePinnedElsewhere(uint64_t address) const {
    return address <= elsewhere_end_.load(std::memory_order_relaxed) &&
           address >= elsewhere_begin_.load(std::memory_order_relaxed);
  }
  /// True when [address, address + size) is free of known ranges' beginnings and ends.
  bool Overlaps(uint64_t address, uint64_t size) const;

 private:
  mutable std::shared_mutex mutex_;
  std::multimap<uint64_t, PointerRange> ranges_;
  uint64_t largest_nested_ = 0;  ///< How far back an outer range may begin.
  uint64_t next_id_ = 1;
  // Around all kHost ranges that there ever were whose device_alias was not their beginning. Written under the lock.
  std::atomic<uint64_t> elsewhere_begin_{~uint64_t{0}};
  std::atomic<uint64_t> elsewhere_end_{0};
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_POINTER_MAP_H_
