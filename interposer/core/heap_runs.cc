// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/heap_runs.h"

#include <algorithm>
#include <bit>

namespace hawser::guest {
namespace {

constexpr uint32_t kSmallestShift = std::countr_zero(HeapRuns::kSmallest);

}  // namespace

uint64_t HeapRuns::Allocate(uint64_t size) {
  const uint64_t slot = std::bit_ceil(std::max(size, kSmallest));
  const uint32_t size_class = static_cast<uint32_t>(std::countr_zero(slot)) - kSmallestShift;
  Run* run = open_[size_class];
  if (run == nullptr && (run = NewRun(size_class)) == nullptr) return HeapExtents::kNone;
  while (run->bits[run->hint] == 0) ++run->hint;
  uint64_t& word = run->bits[run->hint];
  const uint64_t index = uint64_t{run->hint} * 64 + static_cast<uint32_t>(std::countr_zero(word));
  word &= word - 1;
  if (--run->free == 0) Unlink(run);
  return run->offset + (index << (kSmallestShift + size_class));
}

bool HeapRuns::Owns(uint64_t offset) const {
  const uint64_t index = offset / kRun;
  return index < runs_.size() && runs_[index] != nullptr;
}

bool HeapRuns::Free(uint64_t offset) {
  Run* run = runs_[offset / kRun].get();
  const uint32_t shift = kSmallestShift + run->size_class;
  const uint64_t index = (offset - run->offset) >> shift;
  const uint64_t bit = uint64_t{1} << (index % 64);
  uint64_t& word = run->bits[index / 64];
  if (run->offset + (index << shift) != offset || (word & bit) != 0) return false;
  word |= bit;
  run->hint = std::min(run->hint, static_cast<uint32_t>(index / 64));
  if (run->free++ == 0) Link(run);
  if (run->free == run->slots && (run->previous != nullptr || run->next != nullptr)) {
    Unlink(run);
    extents_->Free(run->offset, kRun);
    runs_[offset / kRun].reset();
  }
  return true;
}

HeapRuns::Run* HeapRuns::NewRun(uint32_t size_class) {
  const uint64_t offset = extents_->Allocate(kRun, kRun);
  if (offset == HeapExtents::kNone) return nullptr;
  auto run = std::make_unique<Run>();
  run->offset = offset;
  run->size_class = size_class;
  run->slots = run->free = static_cast<uint32_t>(kRun >> (kSmallestShift + size_class));
  run->bits.assign((run->slots + 63) / 64, ~uint64_t{0});
  if (run->slots < 64) run->bits[0] = (uint64_t{1} << run->slots) - 1;
  if (offset / kRun >= runs_.size()) runs_.resize(offset / kRun + 1);
  Run* raw = run.get();
  runs_[offset / kRun] = std::move(run);
  Link(raw);
  return raw;
}

void HeapRuns::Link(Run* run) {
  Run*& head = open_[run->size_class];
  run->previous = nullptr;
  run->next = head;
  if (head != nullptr) head->previous = run;
  head = run;
}

void HeapRuns::Unlink(Run* run) {
  (run->previous != nullptr ? run->previous->next : open_[run->size_class]) = run->next;
  if (run->next != nullptr) run->next->previous = run->previous;
  run->previous = run->next = nullptr;
}

}  // namespace hawser::guest
