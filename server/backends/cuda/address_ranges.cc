// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/address_ranges.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace hawser::server::cuda_backend {

AddressRanges AddressRanges::Reserved() {
  std::ifstream file("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return FromMaps(text);
}

AddressRanges AddressRanges::FromMaps(std::string_view maps) {
  AddressRanges all;
  while (!maps.empty()) {
    const size_t end = maps.find('\n');
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(end == std::string_view::npos ? maps.size() : end + 1);
    Range range;
    const char* const last = line.data() + line.size();
    const auto begin = std::from_chars(line.data(), last, range.begin, 16);
    if (begin.ec != std::errc() || begin.ptr == last || *begin.ptr != '-') continue;
    if (std::from_chars(begin.ptr + 1, last, range.end, 16).ec != std::errc()) continue;
    if (!all.ranges_.empty() && all.ranges_.back().end == range.begin) {
      all.ranges_.back().end = range.end;  // A reservation of which a part is in use.
    } else {
      all.ranges_.push_back(range);
    }
  }
  std::erase_if(all.ranges_, [](const Range& range) { return range.end - range.begin < kLeast; });
  return all;
}

AddressRanges AddressRanges::Without(const AddressRanges& before) const {
  AddressRanges rest;
  for (Range range : ranges_) {
    for (const Range& old : before.ranges_) {
      if (old.end <= range.begin || old.begin >= range.end) continue;
      if (old.begin > range.begin && old.begin - range.begin >= kLeast)
        rest.ranges_.push_back({range.begin, old.begin});
      range.begin = std::min(range.end, old.end);
    }
    if (range.end - range.begin >= kLeast) rest.ranges_.push_back(range);
  }
  return rest;
}

}  // namespace hawser::server::cuda_backend
