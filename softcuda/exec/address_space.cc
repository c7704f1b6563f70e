// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/address_space.h"

#include <algorithm>
#include <utility>

namespace hawser::exec {
namespace {

/// The first entry that begins after `address`.
template <typename Table>
auto After(const Table& table, uint64_t address) {
  return std::upper_bound(table.begin(), table.end(), address,
                          [](uint64_t value, const Range& range) { return value < range.begin; });
}

}  // namespace

AllocationMap::AllocationMap() : table_(std::make_shared<const Table>()) {}
AllocationMap::~AllocationMap() = default;

std::shared_ptr<const AllocationMap::Table> AllocationMap::Current() const {
  return table_.load(std::memory_order_acquire);
}

void AllocationMap::Publish(Table table) {
  table_.store(std::make_shared<const Table>(std::move(table)), std::memory_order_release);
}

bool AllocationMap::Insert(const Range& range) {
  if (range.begin >= range.end) return false;
  std::lock_guard lock(mutex_);
  Table table = *Current();
  const auto after = After(table, range.begin);
  if (after != table.end() && after->begin < range.end) return false;
  if (after != table.begin() && std::prev(after)->end > range.begin) return false;
  table.insert(after, range);
  Publish(std::move(table));
  return true;
}

bool AllocationMap::Remove(uint64_t begin) {
  std::lock_guard lock(mutex_);
  Table table = *Current();
  const auto after = After(table, begin);
  if (after == table.begin() || std::prev(after)->begin != begin) return false;
  table.erase(std::prev(after));
  Publish(std::move(table));
  return true;
}

size_t AllocationMap::size() const { return Current()->size(); }

std::optional<Range> AllocationMap::Find(uint64_t address) const {
  const auto table = Current();
  const auto after = After(*table, address);
  if (after == table->begin() || std::prev(after)->end <= address) return std::nullopt;
  return *std::prev(after);
}

std::optional<Range> AllocationMap::Nearest(uint64_t address) const {
  const auto table = Current();
  if (table->empty()) return std::nullopt;
  const auto after = After(*table, address);
  if (after == table->begin()) return *after;
  const auto before = std::prev(after);
  if (after == table->end() || before->end > address) return *before;
  return address - before->end < after->begin - address ? *before : *after;
}

}  // namespace hawser::exec
