// SPDX-License-Identifier: Apache-2.0
#include "server/size.h"

#include <charconv>
#include <utility>

namespace hawser::server {

std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  constexpr std::pair<std::string_view, unsigned> kUnits[] = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                              {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [name, shift] : kUnits) {
    if (unit != name) continue;
    if (value > (UINT64_MAX >> shift)) return std::nullopt;
    return value << shift;
  }
  return std::nullopt;
}

}  // namespace hawser::server
