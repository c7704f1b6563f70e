// SPDX-License-Identifier: Apache-2.0
#include "wire/id_allocator.h"

namespace hawser::wire {

Id IdAllocator::Allocate() {
  ++live_;
  if (free_ != kNone) {
    const uint32_t index = free_;
    Slot& slot = slots_[index];
    free_ = slot.next;
    slot.next = kInUse;
    ++slot.generation;
    return Id(type_, slot.generation, index);
  }
  slots_.push_back({1, kInUse});
  return Id(type_, 1, static_cast<uint32_t>(slots_.size() - 1));
}

void IdAllocator::Free(Id id) {
  if (!id || id.type() != type_ || id.index() >= slots_.size()) return;
  Slot& slot = slots_[id.index()];
  if (slot.next != kInUse || slot.generation != id.generation()) return;
  --live_;
  if (slot.generation == kLastGeneration) {
    slot.next = kRetired;  // The server would take a wrapped generation for a stale id.
    return;
  }
  slot.next = free_;
  free_ = id.index();
}

}  // namespace hawser::wire
