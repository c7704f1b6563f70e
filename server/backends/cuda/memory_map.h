// SPDX-License-Identifier: Apache-2.0
// Which addresses a session may name: its own allocations. Where the driver would take any address, one of the
// worker's own memory included, a command is checked against this first.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_MEMORY_MAP_H_
#define HAWSER_SERVER_BACKENDS_CUDA_MEMORY_MAP_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>

#include "server/exported.h"
#include "wire/id.h"

namespace hawser::server::cuda_backend {

enum class MemoryKind : uint8_t {
  kLinear,    ///< cuMemAlloc, cuMemAllocPitch
  kManaged,   ///< cuMemAllocManaged
  kPooled,    ///< cuMemAllocAsync
  kGlobal,    ///< A variable of a module.
  kMapped,    ///< cuMemMap
  kImported,  ///< cuIpcOpenMemHandle
  kGraph,     ///< Of an allocation node: the graph's, from launch to launch, whoever frees it.
  kHeap,      ///< The session's heap, which the guest maps too.
};

class Publication;

struct MemoryRange {
  uint64_t address = 0;
  uint64_t size = 0;
  MemoryKind kind = MemoryKind::kLinear;
  uint64_t charge = 0;                       ///< Bytes in the ledger.
  wire::Id owner;                            ///< Context, or module of a global.
  uint32_t opened = 1;                       ///< kImported: how often.
  std::shared_ptr<Publication> publication;  ///< kLinear, once the guest has shared it.
  std::shared_ptr<const ExportToken> token;  ///< kImported, in chunks: what it was opened by.
};

/// Threading: the executor's.
class MemoryMap {
 public:
  /// False when the range is empty, wraps around, or overlaps another one.
  bool Add(const MemoryRange& range) {
    if (range.size == 0 || range.address == 0 || range.address > UINT64_MAX - range.size) return false;
    const auto next = ranges_.lower_bound(range.address);
    if (next != ranges_.end() && next->first < range.address + range.size) return false;
    if (next != ranges_.begin()) {
      const MemoryRange& before = std::prev(next)->second;
      if (before.address + before.size > range.address) return false;
    }
    ranges_.emplace_hint(next, range.address, range);
    return true;
  }
  /// The range that begins at `address`; null: none does.
  const MemoryRange* At(uint64_t address) const {
    const auto at = ranges_.find(address);
    return at == ranges_.end() ? nullptr : &at->second;
  }
  /// The same, to be changed in what is not its place.
  MemoryRange* Edit(uint64_t address) {
    const auto at = ranges_.find(address);
    return at == ranges_.end() ? nullptr : &at->second;
  }
  /// The range that holds the byte at `address`.
  const MemoryRange* Around(uint64_t address) const {
    auto at = ranges_.upper_bound(address);
    if (at == ranges_.begin()) return nullptr;
    --at;
    return address - at->first < at->second.size ? &at->second : nullptr;
  }
  /// True when all of [address, address + size) is the session's. Neighbouring mappings count as one.
  bool Holds(uint64_t address, uint64_t size) const {
    const MemoryRange* range = Around(address);
    while (range != nullptr) {
      const uint64_t left = range->size - (address - range->address);
      if (size <= left) return true;
      address += left;
      size -= left;
      range = At(address);
    }
    return false;
  }
  /// As Holds, for `height` rows of `width` bytes, `pitch` bytes apart, in `depth` slices `slice` bytes apart.
  bool HoldsRegion(uint64_t address, uint64_t width, uint64_t height, uint64_t pitch, uint64_t depth,
                   uint64_t slice) const {
    if (width == 0 || height == 0 || depth == 0) return true;
    uint64_t rows = 0, slices = 0, size = 0;
    if (__builtin_mul_overflow(height - 1, pitch, &rows) || __builtin_mul_overflow(depth - 1, slice, &slices) ||
        __builtin_add_overflow(rows, slices, &size) || __builtin_add_overflow(size, width, &size)) {
      return false;
    }
    return Holds(address, size);
  }
  bool Remove(uint64_t address) { return ranges_.erase(address) != 0; }

  /// The first range for which wanted(const MemoryRange&) holds; null: none.
  template <typename Wanted>
  MemoryRange* Find(Wanted&& wanted) {
    for (auto& [address, range] : ranges_) {
      if (wanted(range)) return &range;
    }
    return nullptr;
  }
  /// visit(const MemoryRange&) -> bool: true removes the range.
  template <typename Visitor>
  void RemoveIf(Visitor&& visit) {
    for (auto at = ranges_.begin(); at != ranges_.end();) at = visit(at->second) ? ranges_.erase(at) : std::next(at);
  }
  size_t size() const { return ranges_.size(); }

 private:
  std::map<uint64_t, MemoryRange> ranges_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_MEMORY_MAP_H_
