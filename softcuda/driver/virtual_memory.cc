// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "softcuda/driver/chunk_file.h"
#include "softcuda/driver/driver.h"

namespace hawser::soft {
namespace {

bool Granular(uint64_t value) { return value % VirtualMemory::kGranularity == 0; }

}  // namespace

Chunk::~Chunk() {
  if (charged) device->Discharge(size);
}

CUresult VirtualMemory::Reserve(uint64_t size, uint64_t alignment, uint64_t hint, uint64_t* address) {
  if (size == 0 || !Granular(size) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex_);
  *address = GetDriver()->addresses.Take(size, std::max(alignment, kGranularity), hint);
  if (*address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations_[*address] = size;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Free(uint64_t address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = mappings_.lower_bound(address);
  if (mapped != mappings_.end() && mapped->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(found);
  GetDriver()->addresses.Give(address, size);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Create(Device* device, uint64_t size, const CUmemAllocationProp& properties, uint64_t* handle) {
  if (size == 0 || !Granular(size)) return CUDA_ERROR_INVALID_VALUE;
  if (!device->Charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto chunk = std::make_shared<Chunk>();
  chunk->device = device;
  chunk->charged = true;
  chunk->size = size;
  chunk->properties = properties;
  const bool made = properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE
                        ? CreateChunkFile({size, device->ordinal()}, &chunk->file)
                        : chunk->file.Create("hawser-soft-chunk", size);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  chunk->handle = NextHandle();
  *handle = chunk->handle;
  const std::lock_guard lock(mutex_);
  chunks_[chunk->handle] = std::move(chunk);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Release(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = chunks_.find(handle);
  if (found == chunks_.end() || found->second->references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second->references != 0) return CUDA_SUCCESS;
  const bool mapped = std::any_of(mappings_.begin(), mappings_.end(),
                                  [&](const auto& mapping) { return mapping.second.chunk == found->second; });
  if (!mapped) chunks_.erase(found);  // Else its last mapping takes it along.
  return CUDA_SUCCESS;
}

std::map<uint64_t, uint64_t>::iterator VirtualMemory::Reservation(uint64_t address, uint64_t size) {
  auto found = reservations_.upper_bound(address);
  if (found == reservations_.begin()) return reservations_.end();
  --found;
  const uint64_t offset = address - found->first;
  return offset <= found->second && size <= found->second - offset ? found : reservations_.end();
}

CUresult VirtualMemory::Map(uint64_t address, uint64_t size, uint64_t offset, uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto chunk = chunks_.find(handle);
  if (chunk == chunks_.end() || chunk->second->references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size == 0 || !Granular(address) || !Granular(size) || !Granular(offset)) return CUDA_ERROR_INVALID_VALUE;
  if (offset > chunk->second->size || size > chunk->second->size - offset) return CUDA_ERROR_INVALID_VALUE;
  const auto reservation = Reservation(address, size);
  if (reservation == reservations_.end()) return CUDA_ERROR_INVALID_VALUE;
  auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + size) return CUDA_ERROR_INVALID_VALUE;
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.size > address) return CUDA_ERROR_INVALID_VALUE;
  }
  mappings_[address] = {size, chunk->second, offset, reservation->first, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  return CUDA_SUCCESS;
}

bool VirtualMemory::Whole(uint64_t address, uint64_t size, Mappings::iterator* first, Mappings::iterator* last) {
  *first = mappings_.find(address);
  uint64_t at = address;
  auto mapping = *first;
  while (size != 0 && mapping != mappings_.end() && mapping->first == at && at - address < size) {
    at += mapping->second.size;
    ++mapping;
  }
  *last = mapping;
  return size != 0 && at - address == size;
}

void VirtualMemory::Close(uint64_t address, const Mapping& mapping) {
  if (mapping.access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return;
  GetDriver()->memory.Remove(address);
  AddressRange::Decommit(address, mapping.size);
}

CUresult VirtualMemory::Unmap(uint64_t address, uint64_t size) {
  const std::lock_guard lock(mutex_);
  Mappings::iterator first;
  Mappings::iterator last;
  if (!Whole(address, size, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
  for (auto mapping = first; mapping != last; ++mapping) Close(mapping->first, mapping->second);
  mappings_.erase(first, last);
  std::erase_if(chunks_, [this](const auto& chunk) {
    return chunk.second->references == 0 && std::none_of(mappings_.begin(), mappings_.end(), [&](const auto& mapping) {
             return mapping.second.chunk == chunk.second;
           });
  });
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::SetAccess(uint64_t address, uint64_t size, CUmemAccess_flags flags) {
  const std::lock_guard lock(mutex_);
  Mappings::iterator first;
  Mappings::iterator last;
  if (!Whole(address, size, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
  Driver* const driver = GetDriver();
  for (auto at = first; at != last; ++at) {
    Mapping& mapping = at->second;
    if (mapping.access == flags) continue;
    Close(at->first, mapping);
    mapping.access = flags;
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
    const bool writable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    if (!AddressRange::CommitFile(at->first, mapping.size, mapping.chunk->file.fd(), mapping.offset, protection)) {
      mapping.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    auto allocation = std::make_shared<Allocation>();
    allocation->begin = at->first;
    allocation->size = mapping.size;
    allocation->kind = MemoryKind::kMapped;
    allocation->device = mapping.chunk->device->ordinal();
    allocation->owner = mapping.chunk->handle;
    allocation->writable = writable;
    allocation->reservation = mapping.reservation;
    allocation->reserved = reservations_[mapping.reservation];
    driver->memory.Add(allocation);
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::GetAccess(uint64_t address, CUmemAccess_flags* flags) {
  const std::lock_guard lock(mutex_);
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --mapping;
  if (address - mapping->first >= mapping->second.size) return CUDA_ERROR_INVALID_VALUE;
  *flags = mapping->second.access;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Retain(uint64_t address, uint64_t* handle) {
  const std::lock_guard lock(mutex_);
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --mapping;
  if (address - mapping->first >= mapping->second.size) return CUDA_ERROR_INVALID_VALUE;
  ++mapping->second.chunk->references;
  *handle = mapping->second.chunk->handle;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Properties(uint64_t handle, CUmemAllocationProp* properties) {
  const std::lock_guard lock(mutex_);
  const auto found = chunks_.find(handle);
  if (found == chunks_.end()) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->second->properties;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Export(uint64_t handle, int* descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = chunks_.find(handle);
  if (found == chunks_.end() || found->second->references == 0) return CUDA_ERROR_INVALID_VALUE;
  if (found->second->properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  const int given = ::fcntl(found->second->file.fd(), F_DUPFD_CLOEXEC, 0);
  if (given < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *descriptor = given;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Import(int descriptor, uint64_t* handle) {
  auto chunk = std::make_shared<Chunk>();
  ChunkFacts facts;
  if (const CUresult result = OpenChunkFile(descriptor, &chunk->file, &facts); result != CUDA_SUCCESS) return result;
  if (!Granular(facts.size)) return CUDA_ERROR_INVALID_VALUE;
  chunk->device = GetDriver()->FindDevice(facts.device);
  // This process has no such device, or one that is smaller.
  if (chunk->device == nullptr || facts.size > chunk->device->capacity()) return CUDA_ERROR_NOT_SUPPORTED;
  chunk->size = facts.size;
  chunk->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  chunk->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  chunk->properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  chunk->properties.location.id = facts.device;
  chunk->handle = NextHandle();
  *handle = chunk->handle;
  const std::lock_guard lock(mutex_);
  chunks_[chunk->handle] = std::move(chunk);
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
