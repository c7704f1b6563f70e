// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/address_range.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace hawser::soft {
namespace {

constexpr uint64_t kLeastRange = uint64_t{1} << 30;
constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

uint64_t RoundUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

void* ReserveAt(uint64_t base, uint64_t size) {
  void* const got = ::mmap(Pointer(base), size, PROT_NONE, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED || got == Pointer(base)) return got;
  ::munmap(got, size);  // A kernel that does not know the flag takes the address for a hint.
  return MAP_FAILED;
}

}  // namespace

AddressRange::AddressRange(uint64_t base, uint64_t size) {
#if defined(__SANITIZE_THREAD__)
  base = 0;  // That sanitizer allows no addresses of our choice.
#endif
  void* got = MAP_FAILED;
  // A process whose address space is limited gets less of it, still at `base` if that can be.
  for (; got == MAP_FAILED && size >= kLeastRange; size /= 4) {
    if (base != 0) got = ReserveAt(base, size);
    if (got == MAP_FAILED) got = ::mmap(nullptr, size, PROT_NONE, kReserve, -1, 0);
    if (got != MAP_FAILED) break;
  }
  if (got == MAP_FAILED) return;  // Every Take() fails: out of memory.
  begin_ = reinterpret_cast<uint64_t>(got);
  end_ = begin_ + size;
  next_ = begin_;
  free_[begin_] = end_;
}

AddressRange::~AddressRange() {
  if (end_ != begin_) ::munmap(Pointer(begin_), end_ - begin_);
}

uint64_t AddressRange::Search(uint64_t from, uint64_t size, uint64_t alignment, Holes::iterator* hole) {
  auto at = free_.upper_bound(from);
  if (at != free_.begin()) --at;  // The one that holds `from`, if any does.
  for (; at != free_.end(); ++at) {
    const uint64_t start = RoundUp(std::max(at->first, from), alignment);
    if (start >= from && start < at->second && at->second - start >= size) {
      *hole = at;
      return start;
    }
  }
  return 0;
}

uint64_t AddressRange::Take(uint64_t size, uint64_t alignment, uint64_t hint) {
  alignment = std::max(alignment, kPage);
  if (size == 0 || size > end_ - begin_) return 0;
  size = RoundToPage(size);
  const std::lock_guard lock(mutex_);
  auto hole = free_.end();
  uint64_t address = 0;
  if (hint != 0 && hint % alignment == 0) {
    hole = free_.upper_bound(hint);
    if (hole != free_.begin()) {
      --hole;
      if (hint >= hole->first && hint < hole->second && hole->second - hint >= size) address = hint;
    }
  }
  if (address == 0) address = Search(next_, size, alignment, &hole);
  if (address == 0) address = Search(begin_, size, alignment, &hole);
  if (address == 0) return 0;
  const auto [hole_begin, hole_end] = *hole;
  free_.erase(hole);
  if (address > hole_begin) free_[hole_begin] = address;
  if (address + size < hole_end) free_[address + size] = hole_end;
  taken_[address] = address + size;
  next_ = address + size;
  return address;
}

bool AddressRange::Give(uint64_t address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(address);
  if (taken == taken_.end() || taken->second != address + RoundToPage(size)) return false;
  Decommit(address, taken->second - address);
  uint64_t begin = address;
  uint64_t end = taken->second;
  taken_.erase(taken);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  free_[begin] = end;
  return true;
}

bool AddressRange::Commit(uint64_t address, uint64_t size) {
  return ::mmap(Pointer(address), RoundToPage(size), PROT_READ | PROT_WRITE, MAP_FIXED | kReserve, -1, 0) != MAP_FAILED;
}

bool AddressRange::CommitFile(uint64_t address, uint64_t size, int file, uint64_t offset, int protection) {
  return ::mmap(Pointer(address), size, protection, MAP_FIXED | MAP_SHARED, file, static_cast<off_t>(offset)) !=
         MAP_FAILED;
}

void AddressRange::Decommit(uint64_t address, uint64_t size) {
  static_cast<void>(::mmap(Pointer(address), RoundToPage(size), PROT_NONE, MAP_FIXED | kReserve, -1, 0));
}

}  // namespace hawser::soft
