// SPDX-License-Identifier: Apache-2.0
#include "memmgr/chunked_memory.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace hawser::memmgr {
namespace {

uint64_t RoundUp(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

ChunkedMemory::ChunkedMemory(DeviceVmm* vmm, int device)
    : vmm_(vmm), granularity_(vmm->granularity()), devices_{device} {}

ChunkedMemory::~ChunkedMemory() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, chunk] : chunks_) {
    vmm_->Unmap(address, chunk.size);
    vmm_->Release(chunk.handle);
  }
  if (span_ != 0) vmm_->Free(begin_, span_);
}

int32_t ChunkedMemory::Reserve(uint64_t size) {
  const std::lock_guard lock(mutex_);
  int32_t status = vmm_->out_of_memory();
  for (size = size / granularity_ * granularity_; size != 0; size = size / 2 / granularity_ * granularity_) {
    uint64_t address = 0;
    status = vmm_->Reserve(size, &address);
    if (status != 0) continue;
    begin_ = address;
    span_ = size;
    addresses_ = ExtentAllocator(size, granularity_);
    break;
  }
  return status;
}

uint64_t ChunkedMemory::Footprint(uint64_t size) const {
  if (size > UINT64_MAX / 2) return 0;
  return RoundUp(std::max<uint64_t>(size, 1), size <= kSmall ? kUnit : granularity_);
}

uint64_t ChunkedMemory::ChunkSize(uint64_t size) const {
  // In powers of two, so that chunks of one size fit where others of that size have been.
  const uint64_t least = (size + kMostChunks - 1) / kMostChunks;
  return std::max(granularity_, std::bit_ceil(least));
}

int32_t ChunkedMemory::Back(uint64_t size, uint64_t* address) {
  const auto room = addresses_.Allocate(size);
  if (!room) return vmm_->out_of_memory();
  const uint64_t begin = begin_ + *room;
  const uint64_t step = ChunkSize(size);
  int32_t status = 0;
  uint64_t done = 0;
  while (done < size && status == 0) {
    Chunk chunk;
    chunk.address = begin + done;
    chunk.size = std::min(step, size - done);
    status = vmm_->Create(chunk.size, &chunk.handle);
    if (status != 0) break;
    status = Map(chunk);
    if (status != 0) {
      vmm_->Release(chunk.handle);
      break;
    }
    done += chunk.size;
  }
  if (status == 0) status = vmm_->SetAccess(begin, size, devices_);
  *address = begin;
  if (status != 0) Unback(begin);
  return status;
}

int32_t ChunkedMemory::Map(const Chunk& chunk) {
  if (const int32_t status = vmm_->Map(chunk.address, chunk.size, chunk.handle); status != 0) return status;
  chunks_[chunk.address] = chunk;
  held_ += chunk.size;
  return 0;
}

void ChunkedMemory::Unback(uint64_t address) {
  const uint64_t end = address + addresses_.SizeAt(address - begin_);
  auto chunk = chunks_.lower_bound(address);
  while (chunk != chunks_.end() && chunk->first < end) {
    vmm_->Unmap(chunk->first, chunk->second.size);
    vmm_->Release(chunk->second.handle);
    held_ -= chunk->second.size;
    chunk = chunks_.erase(chunk);
  }
  (void)addresses_.Free(address - begin_);
}

int32_t ChunkedMemory::AllocateSmall(uint64_t size, uint64_t* address) {
  // Where the largest hole is the smallest that will do: large holes stay for who needs them.
  const auto best = by_room_.lower_bound({size, 0});
  uint64_t begin = 0;
  if (best != by_room_.end()) {
    begin = best->second;
    if (slabs_.at(begin).extents.empty()) --empty_slabs_;
  } else {
    const uint64_t room = std::max(granularity_, 2 * kSmall);
    if (const int32_t status = Back(room, &begin); status != 0) return status;
    slabs_.emplace(begin, room);
  }
  const auto extent = InSlab(begin, slabs_.at(begin), [&](ExtentAllocator& extents) { return extents.Allocate(size); });
  *address = begin + *extent;
  return 0;
}

int32_t ChunkedMemory::Allocate(uint64_t size, uint64_t* address) {
  const uint64_t footprint = Footprint(size);
  if (footprint == 0) return vmm_->out_of_memory();
  const std::lock_guard lock(mutex_);
  if (size <= kSmall) return AllocateSmall(footprint, address);
  return Back(footprint, address);
}

bool ChunkedMemory::Free(uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (address < begin_ || address - begin_ >= span_) return false;
  auto at = slabs_.upper_bound(address);
  if (at != slabs_.begin()) {
    --at;
    const uint64_t begin = at->first;
    Slab& slab = at->second;
    if (slab.extents.SizeAt(address - begin) != 0) {
      (void)InSlab(begin, slab, [&](ExtentAllocator& extents) { return extents.Free(address - begin); });
      if (!slab.extents.empty()) return true;
      // One that is empty is kept: who allocates and frees in turn does not pay for a chunk each time.
      if (++empty_slabs_ <= 1) return true;
      --empty_slabs_;
      by_room_.erase({slab.extents.largest_free(), begin});
      slabs_.erase(at);
      Unback(begin);
      return true;
    }
  }
  if (const auto in = taken_in_.find(address); in != taken_in_.end()) {
    Unback(in->second);
    taken_in_.erase(in);
    return true;
  }
  if (slabs_.count(address) != 0 || addresses_.SizeAt(address - begin_) == 0) return false;
  const auto in = taken_in_.lower_bound(address);
  if (in != taken_in_.end() && in->second == address) return false;  // It begins further on.
  Unback(address);
  return true;
}

std::vector<ChunkedMemory::Chunk> ChunkedMemory::Share(uint64_t address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  std::vector<Chunk> shared;
  auto at = chunks_.upper_bound(address);
  if (size == 0 || at == chunks_.begin()) return shared;
  --at;
  uint64_t left = size;
  uint64_t place = address;
  for (; at != chunks_.end() && left != 0; ++at) {
    const Chunk& chunk = at->second;
    // A hole before it; or it is another process's, which shares it itself.
    if (place < chunk.address || place - chunk.address >= chunk.size || taken_in_.count(address) != 0) return {};
    const uint64_t here = std::min(left, chunk.size - (place - chunk.address));
    left -= here;
    place += here;
    shared.push_back(chunk);
  }
  if (left != 0) return {};
  for (Chunk& chunk : shared) chunks_[chunk.address].shared = chunk.shared = true;
  return shared;
}

int32_t ChunkedMemory::TakeIn(std::span<const Chunk> chunks, uint64_t offset, uint64_t* address) {
  uint64_t size = 0;
  for (const Chunk& chunk : chunks) {
    if (chunk.size == 0 || chunk.size % granularity_ != 0 || chunk.size > UINT64_MAX / 2 - size) {
      return vmm_->out_of_memory();
    }
    size += chunk.size;
  }
  if (offset >= size) return vmm_->out_of_memory();
  const std::lock_guard lock(mutex_);
  const auto room = addresses_.Allocate(size);
  if (!room) return vmm_->out_of_memory();
  const uint64_t begin = begin_ + *room;
  uint64_t done = 0;
  int32_t status = 0;
  for (const Chunk& each : chunks) {
    Chunk chunk = each;
    chunk.address = begin + done;
    chunk.shared = true;
    status = Map(chunk);
    if (status != 0) break;
    done += chunk.size;
  }
  if (status == 0) status = vmm_->SetAccess(begin, size, devices_);
  if (status == 0) {
    *address = begin + offset;
    taken_in_[*address] = begin;
    return 0;
  }
  // The handles are the caller's again.
  for (auto at = chunks_.lower_bound(begin); at != chunks_.end() && at->first < begin + done; at = chunks_.erase(at)) {
    vmm_->Unmap(at->first, at->second.size);
    held_ -= at->second.size;
  }
  (void)addresses_.Free(*room);
  return status;
}

int32_t ChunkedMemory::GiveAccess(int device) {
  const std::lock_guard lock(mutex_);
  if (std::find(devices_.begin(), devices_.end(), device) != devices_.end()) return 0;
  devices_.push_back(device);
  for (const auto& [address, chunk] : chunks_) {
    if (const int32_t status = vmm_->SetAccess(address, chunk.size, devices_); status != 0) {
      devices_.pop_back();
      return status;
    }
  }
  return 0;
}

std::vector<ChunkedMemory::Chunk> ChunkedMemory::Chunks() const {
  const std::lock_guard lock(mutex_);
  std::vector<Chunk> chunks;
  for (const auto& [address, chunk] : chunks_) chunks.push_back(chunk);
  return chunks;
}

uint64_t ChunkedMemory::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace hawser::memmgr
