// SPDX-License-Identifier: Apache-2.0
// The free ranges of the session's heap.
#ifndef HAWSER_INTERPOSER_CORE_HEAP_EXTENTS_H_
#define HAWSER_INTERPOSER_CORE_HEAP_EXTENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace hawser::guest {

/// Best fit: the smallest free range that is large enough, at the lowest offset. Sizes are multiples of kPage.
///
/// Threading: none; the caller holds its own lock.
class HeapExtents {
 public:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kNone = ~uint64_t{0};

  explicit HeapExtents(uint64_t size);
  /// `alignment` is a power of two of at least kPage. kNone when there is no room.
  uint64_t Allocate(uint64_t size, uint64_t alignment = kPage);
  /// False, and nothing changes, when part of the range is free already or beyond the heap.
  bool Free(uint64_t offset, uint64_t size);
  /// Whether Free() would take it.
  bool IsUsed(uint64_t offset, uint64_t size) const;

  uint64_t free_bytes() const { return free_bytes_; }
  size_t ranges() const { return by_offset_.size(); }

 private:
  void Insert(uint64_t offset, uint64_t size);
  void Erase(uint64_t offset, uint64_t size);

  const uint64_t size_;
  uint64_t free_bytes_ = 0;
  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_HEAP_EXTENTS_H_
