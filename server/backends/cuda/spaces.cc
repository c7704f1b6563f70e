// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: addresses, physical memory, and the mapping of one to the other.
#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

int32_t CudaBackend::ReserveAddress(const cuda::Call& call, const cuda::ReserveAddress& message) {
  cuda::Address reply;
  if (driver_.cuMemAddressReserve == nullptr) {
    reply.status = kNotSupported;
  } else {
    CUdeviceptr address = 0;
    reply.status = driver_.cuMemAddressReserve(&address, message.size, message.alignment, message.hint, message.flags);
    reply.address = address;
    if (reply.status == 0) reserved_[address] = message.size;
  }
  Reply(call, reply);
  return 0;
}

bool CudaBackend::IsReserved(uint64_t address, uint64_t size) const {
  auto at = reserved_.upper_bound(address);
  if (at == reserved_.begin()) return false;
  --at;
  const uint64_t offset = address - at->first;
  return offset < at->second && size <= at->second - offset;
}

int32_t CudaBackend::FreeAddress(const cuda::Call& call, const cuda::FreeAddress& message) {
  if (driver_.cuMemAddressFree == nullptr) return ReplyStatus(call, kNotSupported);
  const auto at = reserved_.find(message.address);
  if (at == reserved_.end() || at->second != message.size) return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  const CUresult result = driver_.cuMemAddressFree(message.address, message.size);
  if (result == CUDA_SUCCESS) reserved_.erase(at);
  return ReplyStatus(call, result);
}

int32_t CudaBackend::CreateAllocation(const cuda::Call& call, const cuda::CreateAllocation& message) {
  if (driver_.cuMemCreate == nullptr) return ReplyStatus(call, kNotSupported);
  if (!ledger_->Reserve(message.size)) return ReplyStatus(call, CUDA_ERROR_OUT_OF_MEMORY);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  properties.location.type = static_cast<CUmemLocationType>(message.location);
  properties.location.id = message.location_id;
  properties.allocFlags.compressionType = static_cast<unsigned char>(message.compression);
  properties.allocFlags.usage = static_cast<unsigned short>(message.usage);  // NOLINT(google-runtime-int)
  CUmemGenericAllocationHandle native = 0;
  const CUresult result = driver_.cuMemCreate(&native, message.size, &properties, 0);
  if (result != CUDA_SUCCESS) {
    ledger_->Cancel(message.size);
    return ReplyStatus(call, result);
  }
  ledger_->Commit(message.size);
  Allocation allocation;
  allocation.size = message.size;
  allocation.memory = std::make_shared<PhysicalMemory>(OwnedAllocation(&driver_, native), ledger_.get(), message.size);
  return ReplyStatus(call, Keep(message.allocation, std::move(allocation)));
}

int32_t CudaBackend::MapAllocation(const cuda::Call& call, const cuda::MapAllocation& message) {
  int32_t status = 0;
  const Allocation* allocation = Use<Allocation>(message.allocation, &status);
  if (allocation == nullptr) return ReplyStatus(call, status);
  if (driver_.cuMemMap == nullptr) return ReplyStatus(call, kNotSupported);
  if (!IsReserved(message.address, message.size)) return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  const CUresult result =
      driver_.cuMemMap(message.address, message.size, message.offset, allocation->memory->native(), 0);
  if (result == CUDA_SUCCESS) {
    MemoryRange range;
    range.address = message.address;
    range.size = message.size;
    range.kind = MemoryKind::kMapped;
    (void)memory_.Add(range);
    // It is charged for as long as it is mapped, also when its name has ended.
    mapped_[message.address] = allocation->memory;
  }
  return ReplyStatus(call, result);
}

bool CudaBackend::IsAllMapped(uint64_t address, uint64_t size) const {
  for (const uint64_t end = address + size; address != end;) {
    const MemoryRange* const range = memory_.At(address);
    if (range == nullptr || range->kind != MemoryKind::kMapped || range->size > end - address) return false;
    address += range->size;
  }
  return true;
}

int32_t CudaBackend::UnmapAddress(const cuda::Call& call, const cuda::UnmapAddress& message) {
  if (driver_.cuMemUnmap == nullptr) return ReplyStatus(call, kNotSupported);
  const uint64_t address = message.address, size = message.size;
  if (!IsReserved(address, size)) return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  // Returns what was mapped: its charge ends with the last of it.
  const auto forget = [&] {
    std::vector<std::shared_ptr<PhysicalMemory>> was;
    const auto inside = [&](uint64_t at) { return at >= address && at - address < size; };
    memory_.RemoveIf(
        [&](const MemoryRange& range) { return range.kind == MemoryKind::kMapped && inside(range.address); });
    std::erase_if(mapped_, [&](auto& mapping) {
      if (!inside(mapping.first)) return false;
      was.push_back(std::move(mapping.second));
      return true;
    });
    return was;
  };
  // A driver may wait for the device in this; then it is no longer the executor's.
  if (IsAllMapped(address, size) && FreesWait()) {
    disposals_.Add(current_, [this, call, address, size, kept = forget()]() mutable {
      const CUresult result = driver_.cuMemUnmap(address, size);
      kept.clear();  // Who hears of the end may want the memory.
      (void)ReplyStatus(call, result);
    });
    return 0;
  }
  const CUresult result = driver_.cuMemUnmap(address, size);
  if (result == CUDA_SUCCESS) (void)forget();
  return ReplyStatus(call, result);
}

int32_t CudaBackend::SetAccess(const cuda::Call& call, const cuda::SetAccess& message) {
  if (driver_.cuMemSetAccess == nullptr) return ReplyStatus(call, kNotSupported);
  const size_t count = message.flags.size();
  if (message.locations.size() != count || message.location_ids.size() != count ||
      !IsReserved(message.address, message.size)) {
    return ReplyStatus(call, CUDA_ERROR_INVALID_VALUE);
  }
  std::vector<CUmemAccessDesc> list(count);
  for (size_t i = 0; i < count; ++i) {
    list[i].location.type = static_cast<CUmemLocationType>(message.locations[i]);
    list[i].location.id = message.location_ids[i];
    list[i].flags = static_cast<CUmemAccess_flags>(message.flags[i]);
  }
  return ReplyStatus(call, driver_.cuMemSetAccess(message.address, message.size, list.data(), count));
}

int32_t CudaBackend::GetGranularity(const cuda::Call& call, const cuda::GetGranularity& message) {
  cuda::Value reply;
  size_t value = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = static_cast<CUmemLocationType>(message.location);
  properties.location.id = message.location_id;
  reply.status = driver_.cuMemGetAllocationGranularity == nullptr
                     ? kNotSupported
                     : driver_.cuMemGetAllocationGranularity(
                           &value, &properties, static_cast<CUmemAllocationGranularity_flags>(message.option));
  reply.value = value;
  Reply(call, reply);
  return 0;
}

}  // namespace hawser::server::cuda_backend
