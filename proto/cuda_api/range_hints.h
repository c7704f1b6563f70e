// SPDX-License-Identifier: Apache-2.0
// What a program said about ranges of managed memory with cuMemAdvise and cuMemPrefetchAsync, and what
// cuMemRangeGetAttribute answers from it. Nothing else comes of hints where the memory is everywhere at once.
//
// Threading: thread-safe; one lock, a leaf.
#ifndef HAWSER_PROTO_CUDA_API_RANGE_HINTS_H_
#define HAWSER_PROTO_CUDA_API_RANGE_HINTS_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

namespace hawser::cuda_api {

/// The place that the older forms of calls mean, which have numbers of devices and CU_DEVICE_CPU.
CUmemLocation LocationOf(CUdevice device);

class RangeHints {
 public:
  /// A piece of the address space. `begin` and `end` are those of the memory that holds it: hints are for whole pages
  /// (4 KiB), but never for its neighbours.
  struct Range {
    uint64_t address = 0;
    uint64_t size = 0;  ///< Bytes.
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  /// Whether the advice is about a place; the others ignore theirs.
  static bool NeedsLocation(CUmem_advise advice) {
    return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
           advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  }
  /// CUDA_ERROR_INVALID_VALUE: no such advice, or no such place. Whether a device exists the caller knows.
  CUresult Advise(const Range& range, CUmem_advise advice, CUmemLocation location);
  void Prefetch(const Range& range, CUmemLocation location);
  /// The memory there begins or ends.
  void Forget(uint64_t begin, uint64_t size);
  /// Writes `bytes` bytes to `to`. CUDA_ERROR_INVALID_VALUE: no such attribute, or its size is another.
  CUresult Get(void* to, size_t bytes, CUmem_range_attribute attribute, const Range& range) const;

 private:
  struct Place {
    CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
    int id = CU_DEVICE_INVALID;
    bool operator==(const Place&) const = default;
  };
  struct Hints {
    bool read_mostly = false;
    Place preferred;
    Place prefetched;
    std::set<int> accessed_by;  ///< Devices, and CU_DEVICE_CPU.
  };
  struct Piece {
    uint64_t end = 0;
    Hints hints;
  };

  static Range Pages(const Range& range);
  /// So that no piece lies on both sides of the address.
  void Split(uint64_t at);
  template <typename C>
  void Change(const Range& range, C change);
  /// What is true of all of it.
  Hints Common(const Range& range) const;

  mutable std::mutex mutex_;
  std::map<uint64_t, Piece> pieces_;  ///< By where they begin; they do not overlap.
};

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_RANGE_HINTS_H_
