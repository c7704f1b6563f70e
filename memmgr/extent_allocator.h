// SPDX-License-Identifier: Apache-2.0
// Extents of one range of numbers: which are taken, which are free.
#ifndef HAWSER_MEMMGR_EXTENT_ALLOCATOR_H_
#define HAWSER_MEMMGR_EXTENT_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace hawser::memmgr {

/// Hands out extents of [0, size): the smallest free one that is large enough, of several the first. What is given back
/// becomes one with its free neighbours at once. Logarithmic in the number of free extents.
///
/// Threads: the caller's lock.
class ExtentAllocator {
 public:
  /// `unit`: extents begin and end at multiples of it. A power of two; `size` is a multiple of it.
  ExtentAllocator(uint64_t size, uint64_t unit);

  /// `size` is rounded up to the unit; 0 counts as 1. Nothing when there is no free extent of that size.
  std::optional<uint64_t> Allocate(uint64_t size);
  /// Gives back the extent that begins there. False when none does.
  bool Free(uint64_t begin);

  /// What an extent for `size` takes; 0 when that is more than a number holds.
  uint64_t Rounded(uint64_t size) const;
  /// Size of the extent that begins there; 0: none does.
  uint64_t SizeAt(uint64_t begin) const;
  bool empty() const { return taken_.empty(); }
  uint64_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  void AddFree(uint64_t begin, uint64_t size);

  uint64_t unit_;
  std::map<uint64_t, uint64_t> free_;                ///< begin -> size
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  ///< (size, begin) of the same.
  std::unordered_map<uint64_t, uint64_t> taken_;     ///< begin -> size
};

}  // namespace hawser::memmgr

#endif  // HAWSER_MEMMGR_EXTENT_ALLOCATOR_H_
