// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/region.h"

#include <algorithm>
#include <cstring>

namespace hawser::ocl {
namespace {

/// Calls visit(offset in the block, offset in [0, size), bytes) for each piece of a row.
template <typename Visit>
void ForEachPiece(const Region& region, uint64_t offset, size_t size, Visit visit) {
  size_t done = 0;
  while (done < size) {
    const uint64_t at = offset + done;
    const size_t row = static_cast<size_t>(at / region.width);
    const size_t column = static_cast<size_t>(at % region.width);
    const size_t piece = std::min(region.width - column, size - done);
    visit(row / region.rows * region.slice_pitch + row % region.rows * region.row_pitch + column, done, piece);
    done += piece;
  }
}

}  // namespace

void Gather(const std::byte* strided, const Region& region, uint64_t offset, size_t size, std::byte* packed) {
  if (region.contiguous()) {
    std::memcpy(packed, strided + offset, size);
    return;
  }
  ForEachPiece(region, offset, size,
               [&](size_t from, size_t to, size_t bytes) { std::memcpy(packed + to, strided + from, bytes); });
}

void Scatter(std::byte* strided, const Region& region, uint64_t offset, size_t size, const std::byte* packed) {
  if (region.contiguous()) {
    std::memcpy(strided + offset, packed, size);
    return;
  }
  ForEachPiece(region, offset, size,
               [&](size_t to, size_t from, size_t bytes) { std::memcpy(strided + to, packed + from, bytes); });
}

void CopyRegion(std::byte* to, const Region& to_region, const std::byte* from, const Region& from_region) {
  if (to_region.contiguous() && from_region.contiguous()) {
    std::memcpy(to, from, from_region.bytes());
    return;
  }
  for (size_t slice = 0; slice < from_region.slices; ++slice) {
    for (size_t row = 0; row < from_region.rows; ++row) {
      std::memcpy(to + slice * to_region.slice_pitch + row * to_region.row_pitch,
                  from + slice * from_region.slice_pitch + row * from_region.row_pitch, from_region.width);
    }
  }
}

bool ResolvePitches(const size_t* region, size_t* row_pitch, size_t* slice_pitch) {
  if (region[0] == 0 || region[1] == 0 || region[2] == 0) return false;
  if (*row_pitch == 0) *row_pitch = region[0];
  if (*row_pitch < region[0]) return false;
  size_t least = 0;
  if (__builtin_mul_overflow(*row_pitch, region[1], &least)) return false;
  if (*slice_pitch == 0) *slice_pitch = least;
  return *slice_pitch >= least && *slice_pitch % *row_pitch == 0;
}

bool RectFits(size_t size, const size_t* origin, const size_t* region, size_t row_pitch, size_t slice_pitch) {
  const size_t pitch[3] = {1, row_pitch, slice_pitch};
  size_t last = 0;  // Offset of the last byte.
  for (int i = 0; i < 3; ++i) {
    size_t index = 0;
    size_t term = 0;
    if (__builtin_add_overflow(origin[i], region[i] - 1, &index) || __builtin_mul_overflow(index, pitch[i], &term) ||
        __builtin_add_overflow(last, term, &last)) {
      return false;
    }
  }
  return last < size;
}

bool RectsOverlap(const size_t* a, const size_t* b, const size_t* region, size_t row_pitch, size_t slice_pitch) {
  // Rows of one pitch: two rows share bytes when their starts are less than a width apart. The difference of the
  // starts takes (2 rows - 1) * (2 slices - 1) values, nearly all of which are ruled out by the slices first.
  const auto base = [&](const size_t* origin) {
    return static_cast<__int128>(origin[2]) * slice_pitch + static_cast<__int128>(origin[1]) * row_pitch + origin[0];
  };
  const __int128 distance = base(b) - base(a);
  const __int128 width = region[0];
  const __int128 rows = region[1];
  const __int128 slices = region[2];
  const auto magnitude = [](__int128 value) { return value < 0 ? -value : value; };
  const __int128 slice_extent = (rows - 1) * row_pitch + width;
  for (__int128 slice = 1 - slices; slice < slices; ++slice) {
    const __int128 rest = distance + slice * slice_pitch;
    if (magnitude(rest) >= slice_extent) continue;
    for (__int128 row = 1 - rows; row < rows; ++row) {
      if (magnitude(rest + row * row_pitch) < width) return true;
    }
  }
  return false;
}

}  // namespace hawser::ocl
