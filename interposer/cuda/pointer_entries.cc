// SPDX-License-Identifier: Apache-2.0
// cuPointer*: answered from the guest's own map of addresses.
#include <cstring>

#include "interposer/cuda/entry.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

template <typename T>
void Put(void* data, T value) {
  std::memcpy(data, &value, sizeof(value));
}

CUcontext ContextOf(const PointerRange& range) {
  CUcontext context = nullptr;
  Registry::Get().With(wire::Id(range.context), [&](Object& object) { context = dynamic_cast<CUctx_st*>(&object); });
  return context;
}

/// What the attribute of a known address is. NOT_SUPPORTED: it has none of that kind.
CUresult Attribute(const PointerRange& range, uint64_t address, CUpointer_attribute attribute, void* data) {
  // Kernels take the host's address of pinned memory (host_mirror.h); registered memory they know by another, once
  // asked for.
  const bool same = !range.is_host() || (range.kind == PointerKind::kHost && range.device_alias == 0);
  const uint64_t alias = same ? address : range.device_alias == 0 ? 0 : range.device_alias + (address - range.begin);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      Put<CUcontext>(data, ContextOf(range));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      Put<unsigned>(data, range.is_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (alias == 0) return CUDA_ERROR_INVALID_VALUE;
      Put<CUdeviceptr>(data, alias);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!range.is_host() && !range.is_managed()) return CUDA_ERROR_INVALID_VALUE;
      Put<uint64_t>(data, address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      Put<unsigned>(data, range.kind == PointerKind::kDevice && Client::Get().CanShare(range.device) ? 1 : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      Put<unsigned>(data, 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      Put<unsigned long long>(data, range.id);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      Put<unsigned>(data, range.is_managed() ? 1 : 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      Put<int>(data, range.device);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      Put<CUdeviceptr>(data, range.begin);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      Put<size_t>(data, range.size);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      Put<unsigned>(data, range.kind == PointerKind::kReserved || alias == 0 ? 0 : 1);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      Put<unsigned long long>(data, 0);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      Put<unsigned>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      Put<CUmemoryPool>(data, nullptr);
      return range.kind == PointerKind::kPool ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// Bytes of the attribute's value; 0: unknown.
size_t SizeOf(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return 4;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (data == nullptr || SizeOf(attribute) == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto range = Client::Get().pointers().Find(address);
  return range ? Attribute(*range, address, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr address) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (attributes == nullptr || data == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto range = Client::Get().pointers().Find(address);
  for (unsigned i = 0; i < count; ++i) {
    const size_t size = SizeOf(attributes[i]);
    if (size == 0 || data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // An unknown address is no error here: its attributes are zero.
    std::memset(data[i], 0, size);
    if (!range) {
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) Put<int>(data[i], -2);
      continue;
    }
    (void)Attribute(*range, address, attributes[i], data[i]);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  // Synchronous copies wait in any case.
  return Client::Get().pointers().Find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
