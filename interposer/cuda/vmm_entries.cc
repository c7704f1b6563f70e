// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: address ranges, physical allocations, mappings.
#include <map>
#include <mutex>
#include <unordered_map>

#include "interposer/cuda/entry.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// What is known of a physical allocation. Its handle is its name on the wire.
struct Physical {
  CUmemAllocationProp properties{};
  size_t size = 0;
  uint32_t references = 1;
};

/// Mapped ranges by their begin, and physical allocations by handle.
struct Book {
  std::mutex mutex;
  std::unordered_map<CUmemGenericAllocationHandle, Physical> physical;
  std::unordered_map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;
  std::map<std::pair<CUdeviceptr, int>, unsigned long long> access;  ///< By mapping and device.

  static Book& Get() {
    static auto* book = new Book;
    return *book;
  }
};

CUresult CheckProperties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  // Handles for other processes are descriptors and keys of the server's machine.
  if (properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return Client::Get().device(properties->location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult Ready() { return Client::Get().Check(); }

}  // namespace

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* result, size_t size, size_t alignment, CUdeviceptr hint,
                                     unsigned long long flags) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  cuda::ReserveAddress message;
  message.size = size;
  message.alignment = alignment;
  message.hint = hint;
  message.flags = flags;
  Answer<cuda::Address> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  PointerRange range;
  range.begin = answer->address;
  range.size = size;
  range.kind = PointerKind::kReserved;
  Client::Get().pointers().Add(range);
  *result = answer->address;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t size) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  cuda::FreeAddress message;
  message.address = address;
  message.size = size;
  const CUresult error = AskStatus(Client::Get().session(), message);
  if (error == CUDA_SUCCESS) Client::Get().pointers().Remove(address, {PointerKind::kReserved});
  return error;
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* result, size_t size, const CUmemAllocationProp* properties,
                             unsigned long long flags) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || size == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckProperties(properties); error != CUDA_SUCCESS) return error;
  guest::Session* session = Client::Get().session();
  cuda::CreateAllocation message;
  message.allocation = session->NewId(static_cast<uint8_t>(cuda::Handle::kAllocation));
  message.size = size;
  message.location = properties->location.type;
  message.location_id = properties->location.id;
  message.compression = properties->allocFlags.compressionType;
  message.usage = properties->allocFlags.usage;
  if (const CUresult error = AskStatus(session, message); error != CUDA_SUCCESS) {
    session->FreeId(message.allocation);
    return error;
  }
  *result = message.allocation.raw();
  std::lock_guard lock(Book::Get().mutex);
  Book::Get().physical[*result] = {*properties, size, 1};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  {
    std::lock_guard lock(Book::Get().mutex);
    const auto found = Book::Get().physical.find(handle);
    if (found == Book::Get().physical.end()) return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.references != 0) return CUDA_SUCCESS;
    Book::Get().physical.erase(found);
  }
  guest::Session* session = Client::Get().session();
  cuda::Release message;
  message.object = wire::Id(handle);
  const int32_t error = session->Send(message);
  session->FreeId(message.object);
  return FromWire(error);
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  int device = 0;
  {
    std::lock_guard lock(Book::Get().mutex);
    const auto found = Book::Get().physical.find(handle);
    if (found == Book::Get().physical.end()) return CUDA_ERROR_INVALID_VALUE;
    device = found->second.properties.location.id;
  }
  cuda::MapAllocation message;
  message.address = address;
  message.size = size;
  message.offset = offset;
  message.allocation = wire::Id(handle);
  if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  PointerRange range;
  range.begin = address;
  range.size = size;
  range.kind = PointerKind::kMapped;
  range.device = device;
  Client::Get().pointers().Add(range);
  std::lock_guard lock(Book::Get().mutex);
  Book::Get().mapped[address] = handle;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  cuda::UnmapAddress message;
  message.address = address;
  message.size = size;
  if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  // A call may take several mappings away.
  for (CUdeviceptr at = address; at < address + size;) {
    const auto range = Client::Get().pointers().Remove(at, {PointerKind::kMapped});
    if (!range || range->size == 0) break;
    std::lock_guard lock(Book::Get().mutex);
    Book::Get().mapped.erase(at);
    std::erase_if(Book::Get().access, [at](const auto& each) { return each.first.first == at; });
    at += range->size;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* map, size_t count) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (map == nullptr || count == 0 || count > 256) return CUDA_ERROR_INVALID_VALUE;
  std::vector<uint32_t> locations;
  std::vector<int32_t> ids;
  std::vector<uint32_t> flags;
  for (size_t i = 0; i < count; ++i) {
    locations.push_back(map[i].location.type);
    ids.push_back(map[i].location.id);
    flags.push_back(map[i].flags);
  }
  cuda::SetAccess message;
  message.address = address;
  message.size = size;
  message.locations = wire::ArrayView<uint32_t>(locations.data(), locations.size());
  message.location_ids = wire::ArrayView<int32_t>(ids.data(), ids.size());
  message.flags = wire::ArrayView<uint32_t>(flags.data(), flags.size());
  if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  // Every mapping in the range, for cuMemGetAccess.
  std::lock_guard lock(Book::Get().mutex);
  for (const auto& [begin, handle] : Book::Get().mapped) {
    if (begin < address || begin - address >= size) continue;
    for (size_t i = 0; i < count; ++i) Book::Get().access[{begin, map[i].location.id}] = map[i].flags;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(Book::Get().mutex);
  const auto range = Client::Get().pointers().Find(address);
  if (!range || (range->kind != PointerKind::kMapped && range->kind != PointerKind::kReserved)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto found = Book::Get().access.find({range->begin, location->id});
  *flags = found != Book::Get().access.end() ? found->second : 0;  // CU_MEM_ACCESS_FLAGS_PROT_NONE
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* result, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags option) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckProperties(properties); error != CUDA_SUCCESS) return error;
  cuda::GetGranularity message;
  message.location = properties->location.type;
  message.location_id = properties->location.id;
  message.option = option;
  Answer<cuda::Value> answer;
  const CUresult error = answer.Ask(Client::Get().session(), message);
  if (error == CUDA_SUCCESS) *result = answer->value;
  return error;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(Book::Get().mutex);
  const auto found = Book::Get().physical.find(handle);
  if (found == Book::Get().physical.end()) return CUDA_ERROR_INVALID_VALUE;
  *properties = found->second.properties;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* result, void* address) {
  if (const CUresult error = Ready(); error != CUDA_SUCCESS) return error;
  const auto range = Client::Get().pointers().Find(reinterpret_cast<uintptr_t>(address));
  if (result == nullptr || !range || range->kind != PointerKind::kMapped) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(Book::Get().mutex);
  const auto mapped = Book::Get().mapped.find(range->begin);
  if (mapped == Book::Get().mapped.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto physical = Book::Get().physical.find(mapped->second);
  if (physical == Book::Get().physical.end()) return CUDA_ERROR_INVALID_VALUE;
  ++physical->second.references;
  *result = mapped->second;
  return CUDA_SUCCESS;
}
