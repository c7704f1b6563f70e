// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/pointer_set.h"

#include <utility>

namespace hawser::ocl {

void PointerSet::Insert(const void* pointer) {
  if ((size_ + 1) * 2 > slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  size_t at = HomeOf(pointer);
  while (slots_[at] != nullptr) {
    if (slots_[at] == pointer) return;
    at = (at + 1) & mask;
  }
  slots_[at] = pointer;
  ++size_;
}

void PointerSet::Erase(const void* pointer) {
  if (slots_.empty()) return;
  const size_t mask = slots_.size() - 1;
  size_t hole = HomeOf(pointer);
  while (slots_[hole] != pointer) {
    if (slots_[hole] == nullptr) return;
    hole = (hole + 1) & mask;
  }
  // Move back whatever a search would no longer find behind the hole.
  for (size_t at = (hole + 1) & mask; slots_[at] != nullptr; at = (at + 1) & mask) {
    const size_t distance = (at - HomeOf(slots_[at])) & mask;
    if (distance < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = nullptr;
  --size_;
}

bool PointerSet::Contains(const void* pointer) const {
  if (slots_.empty() || pointer == nullptr) return false;
  const size_t mask = slots_.size() - 1;
  for (size_t at = HomeOf(pointer); slots_[at] != nullptr; at = (at + 1) & mask) {
    if (slots_[at] == pointer) return true;
  }
  return false;
}

void PointerSet::Grow() {
  std::vector<const void*> old = std::move(slots_);
  slots_.assign(old.empty() ? 64 : old.size() * 2, nullptr);
  shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(slots_.size()));
  size_ = 0;
  for (const void* pointer : old) {
    if (pointer != nullptr) Insert(pointer);
  }
}

}  // namespace hawser::ocl
