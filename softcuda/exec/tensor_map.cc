// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/tensor_map.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hawser::exec {

TensorMap TensorMap::From(const void* from) {
  TensorMap map;
  std::memcpy(&map, from, sizeof(map));
  return map;
}

void TensorMap::Store(void* to) const {
  std::memset(to, 0, kBytes);
  std::memcpy(to, this, sizeof(*this));
}

bool TensorMap::Valid() const {
  if (mark != kMark || dimensions == 0 || dimensions > kMostDimensions || swizzle_bits > 3) return false;
  if (element_bytes > 8 || !std::has_single_bit(element_bytes)) return false;
  for (size_t i = 0; i < dimensions; ++i) {
    if (size[i] == 0 || size[i] > kMostElements || box[i] == 0 || box[i] > kLongestBox) return false;
    if (step[i] == 0 || step[i] > kLongestStep) return false;
  }
  return step[0] == 1 && RowBytes() % 16 == 0;
}

uint32_t TensorMap::Moved(size_t dimension) const {
  return (uint32_t{box[dimension]} + step[dimension] - 1) / step[dimension];
}

uint32_t TensorMap::Rows() const {
  uint64_t rows = 1;
  // 256 to the fourth, at most.
  for (size_t i = 1; i < dimensions; ++i) rows *= Moved(i);
  return static_cast<uint32_t>(std::min<uint64_t>(rows, UINT32_MAX));
}

TensorMap::Run TensorMap::RowAt(const std::array<int32_t, kMostDimensions>& at, uint32_t row) const {
  Run run;
  uint64_t place = address;
  for (size_t i = 1; i < dimensions; ++i) {
    const uint32_t moved = Moved(i);
    const int64_t coordinate = int64_t{at[i]} + int64_t{row % moved} * step[i];
    row /= moved;
    if (coordinate < 0 || static_cast<uint64_t>(coordinate) >= size[i]) return run;
    place += static_cast<uint64_t>(coordinate) * stride[i - 1];
  }
  const int64_t first = std::max<int64_t>(0, -int64_t{at[0]});
  const int64_t end = std::min<int64_t>(box[0], static_cast<int64_t>(size[0]) - at[0]);
  if (first >= end) return run;
  run.first = static_cast<uint32_t>(first);
  run.count = static_cast<uint32_t>(end - first);
  run.address = place + static_cast<uint64_t>(int64_t{at[0]} + first) * element_bytes;
  return run;
}

}  // namespace hawser::exec
