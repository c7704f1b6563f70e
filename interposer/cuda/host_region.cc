// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/host_region.h"

#include <algorithm>
#include <cstring>

namespace hawser::cu {

template <typename Visit>
void HostRegion::ForRows(uint64_t offset, uint64_t size, Visit visit) const {
  uint64_t done = 0;
  while (done < size) {
    const uint64_t at = offset + done;
    const uint64_t row = at / width;
    const uint64_t column = at % width;
    const uint64_t part = std::min(width - column, size - done);
    visit(base + (row / height) * slice + (row % height) * pitch + column, done, part);
    done += part;
  }
}

void HostRegion::Gather(uint64_t offset, uint64_t size, std::byte* to) const {
  ForRows(offset, size,
          [to](const std::byte* row, uint64_t done, uint64_t part) { std::memcpy(to + done, row, part); });
}

void HostRegion::Scatter(uint64_t offset, uint64_t size, const std::byte* from) const {
  ForRows(offset, size, [from](std::byte* row, uint64_t done, uint64_t part) { std::memcpy(row, from + done, part); });
}

}  // namespace hawser::cu
