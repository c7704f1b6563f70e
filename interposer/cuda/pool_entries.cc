// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation and its pools.
#include <cstring>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/heap_memory.h"
#include "interposer/cuda/pool.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult FindDevice(CUdevice ordinal, Device** device) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  *device = Client::Get().device(ordinal);
  return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult Check(CUmemoryPool pool) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckObject(pool, Kind::kPool);
}

/// See cuda.proto for `action`.
CUresult GraphMemory(CUdevice ordinal, uint32_t action, CUgraphMem_attribute attribute, void* value) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::GraphMemory message;
  message.device = static_cast<uint32_t>(ordinal);
  message.action = action;
  message.attribute = attribute;
  std::memcpy(&message.value, value, sizeof(message.value));
  Answer<cuda::Value> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  if (action == 0) std::memcpy(value, &answer->value, sizeof(answer->value));
  return CUDA_SUCCESS;
}

CUmemPoolHandle_st* NewPool(int device) {
  auto* pool =
      new CUmemPoolHandle_st(Kind::kPool, Client::Get().session()->NewId(static_cast<uint8_t>(cuda::Handle::kPool)));
  pool->device = device;
  Registry::Get().Add(pool);
  return pool;
}

/// The device's default pool has one handle for the whole process.
CUresult DefaultPool(Device* device, CUmemPoolHandle_st** pool) {
  std::lock_guard lock(device->mutex);
  if (device->default_pool == nullptr) {
    device->default_pool = NewPool(device->ordinal);
    device->default_pool->is_default = true;
    cuda::CreatePool message;
    message.pool = device->default_pool->id;
    message.device = static_cast<uint32_t>(device->ordinal);
    message.which = 1;
    const int32_t error = Client::Get().session()->Send(message);
    if (error != 0) return FromWire(error);
  }
  *pool = device->default_pool;
  return CUDA_SUCCESS;
}

CUresult Allocate(CUdeviceptr* result, size_t size, CUmemPoolHandle_st* pool, CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (result == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  cuda::AllocateAsync message;
  command.Address(message);
  if (pool != nullptr) message.pool = pool->id;
  message.size = size;
  Answer<cuda::Address> answer;
  command.NoteCommand();
  if (const CUresult error = answer.Ask(command.session(), message); error != CUDA_SUCCESS) return error;
  PointerRange range;
  range.begin = answer->address;
  range.size = size;
  range.kind = PointerKind::kPool;
  range.graph = command.capturing();
  range.device = pool != nullptr ? pool->device : command.context()->device;
  range.context = command.context()->id.raw();
  Client::Get().pointers().Add(range);
  *result = answer->address;
  return CUDA_SUCCESS;
}

bool IsWide(CUmemPool_attribute attribute) { return attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD; }

/// What the program sets, unlike what the pool counts.
bool IsSetting(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attribute <= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
}

/// What a pool is asked for by.
CUresult CheckPlace(const CUmemLocation* location, CUmemAllocationType type) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool of_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
  return of_device ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : DefaultPool(device, pool);
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(device->mutex);
    *pool = device->current_pool;
  }
  return *pool != nullptr && (*pool)->kind == Kind::kPool ? CUDA_SUCCESS : DefaultPool(device, pool);
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(device->mutex);
  device->current_pool = pool;
  cuda::SetPool message;
  message.device = static_cast<uint32_t>(ordinal);
  message.pool = pool->id;
  return FromWire(Client::Get().session()->Send(message));
}

// By location: of CUDA 13. Devices' pools are the only ones that go with a place.
CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (const CUresult error = CheckPlace(location, type); error != CUDA_SUCCESS) return error;
  return cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (const CUresult error = CheckPlace(location, type); error != CUDA_SUCCESS) return error;
  return cuDeviceGetMemPool(pool, location->id);
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  if (const CUresult error = CheckPlace(location, type); error != CUDA_SUCCESS) return error;
  return cuDeviceSetMemPool(location->id, pool);
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* result, const CUmemPoolProps* properties) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (Client::Get().device(properties->location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  CUmemPoolHandle_st* pool = NewPool(properties->location.id);
  cuda::CreatePool message;
  message.pool = pool->id;
  message.device = static_cast<uint32_t>(pool->device);
  message.max_size = properties->maxSize;
  message.usage = properties->usage;
  *result = pool;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (pool == nullptr || pool->kind != Kind::kPool || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  Device* device = Client::Get().device(pool->device);
  {
    std::lock_guard lock(device->mutex);
    if (device->current_pool == pool) device->current_pool = nullptr;
  }
  cuda::Release message;
  message.object = pool->id;
  const int32_t error = Client::Get().session()->Send(message);
  const wire::Id id = pool->id;
  Registry::Get().Bury(pool);
  Client::Get().session()->FreeId(id);
  return FromWire(error);
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::SetPoolAttribute message;
  message.pool = pool->id;
  message.attribute = attribute;
  if (IsWide(attribute)) {
    std::memcpy(&message.value, value, sizeof(message.value));
  } else {
    int number = 0;
    std::memcpy(&number, value, sizeof(number));
    message.value = static_cast<uint64_t>(number);
  }
  const CUresult error = AskStatus(Client::Get().session(), message);
  pool->settings.Forget(static_cast<uint64_t>(attribute));
  return error;
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto ask = [pool, attribute](uint64_t* result) {
    cuda::GetPoolAttribute message;
    message.pool = pool->id;
    message.attribute = attribute;
    Answer<cuda::Value> answer;
    const CUresult error = answer.Ask(Client::Get().session(), message);
    if (error == CUDA_SUCCESS) *result = answer->value;
    return error;
  };
  uint64_t result = 0;
  const CUresult error =
      IsSetting(attribute) ? pool->settings.Get(static_cast<uint64_t>(attribute), &result, ask) : ask(&result);
  if (error != CUDA_SUCCESS) return error;
  if (IsWide(attribute)) {
    std::memcpy(value, &result, sizeof(result));
  } else {
    const int number = static_cast<int>(result);
    std::memcpy(value, &number, sizeof(number));
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return GraphMemory(device, 0, attribute, value);
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return GraphMemory(device, 1, attribute, value);
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device) {
  uint64_t none = 0;
  return GraphMemory(device, 2, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &none);
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  cuda::TrimPool message;
  message.pool = pool->id;
  message.keep = keep;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  if (count > 256 || (count != 0 && map == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint32_t> devices;
  std::vector<uint32_t> flags;
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    devices.push_back(static_cast<uint32_t>(map[i].location.id));
    flags.push_back(map[i].flags);
  }
  cuda::SetPoolAccess message;
  message.pool = pool->id;
  message.devices = wire::ArrayView<uint32_t>(devices.data(), devices.size());
  message.flags = wire::ArrayView<uint32_t>(flags.data(), flags.size());
  return AskStatus(Client::Get().session(), message);
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::Query message;
  message.kind = 7;
  message.object = pool->id;
  message.device = static_cast<uint32_t>(location->id);
  Answer<cuda::QueryReply> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  if (answer->value.size() != sizeof(*flags)) return CUDA_ERROR_UNKNOWN;
  std::memcpy(flags, answer->value.data(), sizeof(*flags));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  return Allocate(address, size, nullptr, stream);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream stream) {
  if (const CUresult error = Check(pool); error != CUDA_SUCCESS) return error;
  return Allocate(address, size, pool, stream);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  if (address == 0) return CUDA_SUCCESS;
  PointerMap& pointers = Client::Get().pointers();
  std::optional<PointerRange> range;
  if (!pointers.IsGraphs(address)) {
    range = pointers.Remove(address, {PointerKind::kPool, PointerKind::kDevice});
    if (!range) return CUDA_ERROR_INVALID_VALUE;
  }
  cuda::FreeAsync message;
  message.address = address;
  const CUresult error = command.Send(message);
  // A capture frees nothing.
  if (error != CUDA_SUCCESS || !range || command.capturing()) return error;
  return HeapMemory::Get().GiveAfter(command, HeapMemory::PagesOf(*range));
}
