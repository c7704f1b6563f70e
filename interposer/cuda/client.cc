// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/client.h"

#include <sys/mman.h>

#include <algorithm>

#include "interposer/core/log.h"
#include "interposer/cuda/notices.h"
#include "interposer/cuda/wire_call.h"

namespace hawser::cu {
namespace {

using guest::Log;
using guest::LogLevel;

/// Keeps the process's own memory out of a range where device memory appears, so that a device pointer is never a
/// host pointer too. What is mapped there already stays. False: it is not kept free.
bool KeepFree(uint64_t address, uint64_t size) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (size == 0) return false;
  void* wanted = reinterpret_cast<void*>(address);
  void* got = ::mmap(wanted, size, PROT_NONE, kFlags, -1, 0);
  if (got == wanted) return true;
  if (got != MAP_FAILED) ::munmap(got, size);
  Log(LogLevel::kInfo,
      "cannot keep %p to +0x%llx free for device memory; a host pointer may look like a device pointer", wanted,
      static_cast<unsigned long long>(size));
  return false;
}

}  // namespace

CUresult FromWire(int32_t status) {
  if (status >= 0) return static_cast<CUresult>(status);
  switch (status) {
    case guest::Session::lost_code():
      return Client::Get().Lost();
    case -4:  // The bulk channel's own: no room for data in flight.
    case -5:
    case -6:
      return CUDA_ERROR_OUT_OF_MEMORY;
    default:
      return CUDA_ERROR_UNKNOWN;
  }
}

Client& Client::Get() {
  static auto* client = new Client;
  return *client;
}

CUresult Client::Lost() const {
  // In a child of fork() the parent's session is nobody's; CUDA does not survive fork() either.
  if (session_ == nullptr) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (guest::Session::IfConnected() != session_) return CUDA_ERROR_NOT_INITIALIZED;
  const uint32_t cause = session_->lost_cause();
  return cause != 0 ? static_cast<CUresult>(cause) : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult Client::Init() {
  if (initialized()) return Check();
  std::lock_guard lock(mutex_);
  if (initialized()) return Check();
  guest::Session* session = guest::Session::Current(guest::CudaApi());
  if (session == nullptr) return CUDA_ERROR_NO_DEVICE;
  if (const CUresult error = Load(session); error != CUDA_SUCCESS) return error;
  session_ = session;
  ready_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult Client::Load(guest::Session* session) {
  session->SetNoticeSink(Notices());
  Answer<cuda::Inventory> inventory;
  if (const CUresult error = inventory.Get(session, cuda::Opcode::kGetInventory, cuda::Nothing{}); error != 0) {
    return error;
  }
  if (inventory->status != 0) return FromWire(inventory->status);
  if (inventory->devices.empty()) return CUDA_ERROR_NO_DEVICE;
  Log(LogLevel::kInfo, "%u CUDA device(s) on %.*s", inventory->devices.size(),
      static_cast<int>(inventory->driver.size()), inventory->driver.data());
  inventory->devices.ForEach([this](const cuda::DeviceInfo& info) { Adopt(info); });
  inventory->ranges.ForEach([this](const cuda::AddressRange& range) {
    if (KeepFree(range.address, range.size)) kept_.emplace_back(range.address, range.size);
  });
  if (session->heap_base() != nullptr && inventory->heap_address != 0) {
    heap_address_ = inventory->heap_address;
    if (!session->MoveHeap(heap_address_)) {
      Log(LogLevel::kInfo, "pinned host memory is not at the server's addresses: kernels need its device pointers");
    }
  }
  memory_in_heap_ = session->heap_base() != nullptr && inventory->memory_in_heap != 0;
  for (Device* device : devices_) Correct(*device);
  return CUDA_SUCCESS;
}

bool Client::IsKept(uint64_t address, uint64_t size) const {
  return std::any_of(kept_.begin(), kept_.end(), [&](const auto& range) {
    const uint64_t offset = address - range.first;
    return offset < range.second && size <= range.second - offset;
  });
}

void Client::Correct(Device& device) const {
  const auto none = [&device](CUdevice_attribute attribute) { device.attributes[static_cast<size_t>(attribute)] = 0; };
  // Handles of the system do not cross the wire.
  none(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  none(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
  none(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
  // No array gets its memory later, and no other device writes into theirs.
  none(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
  none(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
  none(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  none(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  none(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  none(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
  // A function of theirs has no address here.
  none(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
  // They never reach other memory of this process, nor see its stores as they happen (mirror.h).
  for (const CUdevice_attribute attribute :
       {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES}) {
    none(attribute);
  }
}

void Client::Adopt(const cuda::DeviceInfo& info) {
  auto* device = new Device;
  device->ordinal = static_cast<int>(devices_.size());
  device->name = info.name;
  device->uuid = info.uuid;
  device->total_memory = info.total_memory;
  for (size_t i = 0; i < info.attributes.size() && i < info.values.size(); ++i) {
    if (info.attributes[i] >= Device::kAttributes) continue;
    device->attributes[info.attributes[i]] = info.values[i];
    device->known[info.attributes[i]] = true;
  }
  device->pci_bus_id = info.pci_bus_id;
  device->least_priority = info.least_priority;
  device->greatest_priority = info.greatest_priority;
  for (size_t i = 0; i < info.peers.size(); ++i) device->peers.push_back(info.peers[i]);
  for (size_t i = 0; i < info.limits.size() && i < info.limit_values.size(); ++i) {
    device->limits.emplace_back(info.limits[i], info.limit_values[i]);
  }
  devices_.push_back(device);
}

uint64_t Client::HeapOffset(const void* pointer, uint64_t size) const {
  if (heap_address_ == 0) return guest::Session::kNoHeap;
  const auto base = reinterpret_cast<uintptr_t>(session_->heap_base());
  const uint64_t offset = reinterpret_cast<uintptr_t>(pointer) - base;
  if (offset >= session_->heap_size() || size > session_->heap_size() - offset) return guest::Session::kNoHeap;
  return offset;
}

}  // namespace hawser::cu
