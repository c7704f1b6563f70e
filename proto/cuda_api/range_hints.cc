// SPDX-License-Identifier: Apache-2.0
#include "proto/cuda_api/range_hints.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace hawser::cuda_api {
namespace {

constexpr uint64_t kPage = 4096;

/// As the older attributes have it: every part of the host is the CPU.
int DeviceOf(CUmemLocationType type, int id) {
  switch (type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return id;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CU_DEVICE_CPU;
    default:
      return CU_DEVICE_INVALID;
  }
}

/// The whole host has no number.
int IdOf(const CUmemLocation& location) { return location.type == CU_MEM_LOCATION_TYPE_HOST ? 0 : location.id; }

}  // namespace

CUmemLocation LocationOf(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == CU_DEVICE_CPU ? 0 : device;
  return location;
}

RangeHints::Range RangeHints::Pages(const Range& range) {
  Range pages = range;
  const uint64_t end = range.address + range.size;
  pages.address = std::max(range.begin, range.address / kPage * kPage);
  const uint64_t last = end % kPage == 0 ? end : std::min(range.end, end + (kPage - end % kPage));
  pages.size = last - pages.address;
  return pages;
}

void RangeHints::Split(uint64_t at) {
  auto after = pieces_.upper_bound(at);
  if (after == pieces_.begin()) return;
  const auto piece = std::prev(after);
  if (piece->first == at || piece->second.end <= at) return;
  pieces_.emplace_hint(after, at, piece->second);
  piece->second.end = at;
}

template <typename C>
void RangeHints::Change(const Range& range, C change) {
  const Range pages = Pages(range);
  const uint64_t end = pages.address + pages.size;
  const std::lock_guard lock(mutex_);
  Split(pages.address);
  Split(end);
  for (uint64_t at = pages.address; at < end;) {
    auto piece = pieces_.lower_bound(at);
    if (piece == pieces_.end() || piece->first != at) {
      const uint64_t gap_end = piece == pieces_.end() ? end : std::min(end, piece->first);
      piece = pieces_.emplace_hint(piece, at, Piece{gap_end, {}});
    }
    change(piece->second.hints);
    at = piece->second.end;
  }
}

CUresult RangeHints::Advise(const Range& range, CUmem_advise advice, CUmemLocation location) {
  const int device = DeviceOf(location.type, location.id);
  if (NeedsLocation(advice) && device == CU_DEVICE_INVALID) return CUDA_ERROR_INVALID_VALUE;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Change(range, [&](Hints& hints) {
    switch (advice) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY:
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        hints.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        hints.preferred = {location.type, IdOf(location)};
        break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        hints.preferred = {};
        break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY:
        hints.accessed_by.insert(device);
        break;
      default:
        hints.accessed_by.erase(device);
        break;
    }
  });
  return CUDA_SUCCESS;
}

void RangeHints::Prefetch(const Range& range, CUmemLocation location) {
  Change(range, [&](Hints& hints) { hints.prefetched = {location.type, IdOf(location)}; });
}

void RangeHints::Forget(uint64_t begin, uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (pieces_.empty()) return;
  Split(begin);
  Split(begin + size);
  pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(begin + size));
}

RangeHints::Hints RangeHints::Common(const Range& range) const {
  const Range pages = Pages(range);
  const uint64_t end = pages.address + pages.size;
  Hints common;
  const std::lock_guard lock(mutex_);
  auto piece = pieces_.upper_bound(pages.address);
  if (piece == pieces_.begin()) return {};
  --piece;
  if (piece->second.end <= pages.address) return {};
  common = piece->second.hints;
  while (piece->second.end < end) {
    const auto next = std::next(piece);
    if (next == pieces_.end() || next->first != piece->second.end) return {};  // Nothing was said about the gap.
    piece = next;
    const Hints& hints = piece->second.hints;
    common.read_mostly = common.read_mostly && hints.read_mostly;
    if (common.preferred != hints.preferred) common.preferred = {};
    if (common.prefetched != hints.prefetched) common.prefetched = {};
    std::erase_if(common.accessed_by, [&](int device) { return hints.accessed_by.count(device) == 0; });
  }
  return common;
}

CUresult RangeHints::Get(void* to, size_t bytes, CUmem_range_attribute attribute, const Range& range) const {
  if (to == nullptr || bytes == 0 || bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Hints hints = Common(range);
  if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
    auto* const list = static_cast<int*>(to);
    const size_t room = bytes / sizeof(int);
    const size_t count = std::min(room, hints.accessed_by.size());
    std::copy_n(hints.accessed_by.begin(), count, list);
    std::fill(list + count, list + room, static_cast<int>(CU_DEVICE_INVALID));
    return CUDA_SUCCESS;
  }
  if (bytes != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  int value = 0;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      value = hints.read_mostly ? 1 : 0;
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      value = DeviceOf(hints.preferred.type, hints.preferred.id);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      value = DeviceOf(hints.prefetched.type, hints.prefetched.id);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      value = static_cast<int>(hints.preferred.type);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      value = hints.preferred.id;
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      value = static_cast<int>(hints.prefetched.type);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      value = hints.prefetched.id;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(to, &value, sizeof(value));
  return CUDA_SUCCESS;
}

}  // namespace hawser::cuda_api
