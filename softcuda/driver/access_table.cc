// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/access_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hawser::soft {
namespace {

using exec::Range;

/// First range that begins after `address`.
auto After(const std::vector<Range>& leaf, uint64_t address) {
  return std::upper_bound(leaf.begin(), leaf.end(), address,
                          [](uint64_t value, const Range& range) { return value < range.begin; });
}

/// Bytes between `address` and a range that does not hold it.
uint64_t Distance(const Range& range, uint64_t address) {
  return address < range.begin ? range.begin - address : address - range.end;
}

}  // namespace

AccessTable::AccessTable() : leaves_(std::make_shared<const Leaves>()) {}

size_t AccessTable::LeafOf(const Leaves& leaves, uint64_t address) {
  const auto after = std::upper_bound(leaves.begin(), leaves.end(), address,
                                      [](uint64_t value, const auto& leaf) { return value < leaf->front().begin; });
  return after == leaves.begin() ? 0 : static_cast<size_t>(after - leaves.begin()) - 1;
}

void AccessTable::Insert(const Range& range) {
  auto leaves = std::make_shared<Leaves>(*leaves_.load());
  if (leaves->empty()) {
    leaves->push_back(std::make_shared<const Leaf>(1, range));
    leaves_.store(std::move(leaves));
    return;
  }
  const size_t index = LeafOf(*leaves, range.begin);
  Leaf leaf = *(*leaves)[index];
  leaf.insert(After(leaf, range.begin), range);
  if (leaf.size() > kLeafRanges) {
    // Addresses mostly grow: a full last leaf is left full, and a new one begun.
    const bool last = index + 1 == leaves->size() && leaf.back().begin == range.begin;
    const auto middle = leaf.begin() + static_cast<std::ptrdiff_t>(last ? leaf.size() - 1 : leaf.size() / 2);
    leaves->insert(leaves->begin() + static_cast<std::ptrdiff_t>(index) + 1,
                   std::make_shared<const Leaf>(middle, leaf.end()));
    leaf.erase(middle, leaf.end());
  }
  (*leaves)[index] = std::make_shared<const Leaf>(std::move(leaf));
  leaves_.store(std::move(leaves));
}

void AccessTable::Remove(uint64_t begin) {
  auto leaves = std::make_shared<Leaves>(*leaves_.load());
  if (leaves->empty()) return;
  const size_t index = LeafOf(*leaves, begin);
  Leaf leaf = *(*leaves)[index];
  std::erase_if(leaf, [begin](const Range& range) { return range.begin == begin; });
  if (leaf.empty()) {
    leaves->erase(leaves->begin() + static_cast<std::ptrdiff_t>(index));
  } else {
    (*leaves)[index] = std::make_shared<const Leaf>(std::move(leaf));
  }
  leaves_.store(std::move(leaves));
}

std::optional<Range> AccessTable::Find(uint64_t address) const {
  const std::shared_ptr<const Leaves> leaves = leaves_.load();
  if (leaves->empty()) return std::nullopt;
  const Leaf& leaf = *(*leaves)[LeafOf(*leaves, address)];
  const auto after = After(leaf, address);
  if (after == leaf.begin() || address >= std::prev(after)->end) return std::nullopt;
  return *std::prev(after);
}

std::optional<Range> AccessTable::Nearest(uint64_t address) const {
  const std::shared_ptr<const Leaves> leaves = leaves_.load();
  if (leaves->empty()) return std::nullopt;
  const size_t index = LeafOf(*leaves, address);
  const Leaf& leaf = *(*leaves)[index];
  const auto after = After(leaf, address);
  std::optional<Range> nearest;
  if (after != leaf.begin()) nearest = *std::prev(after);
  if (nearest.has_value() && address < nearest->end) return nearest;
  std::optional<Range> next;
  if (after != leaf.end()) {
    next = *after;
  } else if (index + 1 < leaves->size()) {
    next = (*leaves)[index + 1]->front();
  }
  if (!nearest.has_value()) return next;
  return next.has_value() && Distance(*next, address) < Distance(*nearest, address) ? next : nearest;
}

}  // namespace hawser::soft
