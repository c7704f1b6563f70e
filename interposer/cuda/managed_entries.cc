// SPDX-License-Identifier: Apache-2.0
// Hints about managed memory, and attributes of streams.
#include <algorithm>

#include "interposer/cuda/launch_attributes.h"
#include "interposer/cuda/managed.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// Whether streams have it: others are launches' and nodes'.
bool IsStreams(CUstreamAttrID attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return true;
    default:
      return false;
  }
}

}  // namespace

namespace hawser::cu {

CUresult FindManaged(CUdeviceptr address, size_t size, HintedRange* found) {
  const auto range = Client::Get().pointers().Find(address);
  if (!range || size == 0 || size > range->begin + range->size - address) return CUDA_ERROR_INVALID_VALUE;
  found->range = {address, size, range->begin, range->begin + range->size};
  found->hints = range->is_managed();
  return range->is_managed() || range->is_host() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckPlace(const CUmemLocation& location) {
  const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return device && Client::Get().device(location.id) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

}  // namespace hawser::cu

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags,
                                       CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckPlace(location); error != CUDA_SUCCESS) return error;
  HintedRange found;
  if (const CUresult error = FindManaged(address, size, &found); error != CUDA_SUCCESS) return error;
  if (found.hints) Client::Get().hints().Prefetch(found.range, location);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(address, size, cuda_api::LocationOf(device), 0, stream);
}

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  HintedRange found;
  if (const CUresult error = FindManaged(address, size, &found); error != CUDA_SUCCESS) return error;
  if (cuda_api::RangeHints::NeedsLocation(advice)) {
    if (const CUresult error = CheckPlace(location); error != CUDA_SUCCESS) return error;
  }
  return found.hints ? Client::Get().hints().Advise(found.range, advice, location) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(address, size, advice, cuda_api::LocationOf(device));
}

CUresult CUDAAPI cuMemRangeGetAttribute(void* to, size_t bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                        size_t size) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  HintedRange found;
  if (const CUresult error = FindManaged(address, size, &found); error != CUDA_SUCCESS) return error;
  return found.hints ? Client::Get().hints().Get(to, bytes, attribute, found.range) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemRangeGetAttributes(void** to, size_t* bytes, CUmem_range_attribute* attributes, size_t count,
                                         CUdeviceptr address, size_t size) {
  if (to == nullptr || bytes == nullptr || attributes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult error = cuMemRangeGetAttribute(to[i], bytes[i], attributes[i], address, size);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t size, unsigned int flags) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Nobody's access is ever restricted; what is mirrored is looked at when it may have been written.
  const auto range = Client::Get().pointers().Find(address);
  const bool fits = range && range->is_managed() && size <= range->begin + range->size - address;
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  Mirrors::Get().Attach(address, flags == CU_MEM_ATTACH_SINGLE ? command.stream() : nullptr);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  if (value == nullptr || !IsStreams(attribute)) return CUDA_ERROR_INVALID_VALUE;
  if (!command.stream()->id) return CUDA_ERROR_INVALID_HANDLE;  // The legacy stream has no name on the wire.
  CUlaunchAttribute full{};
  full.id = attribute;
  full.value = *value;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    const Device* device = Client::Get().device(command.context()->device);
    full.value.priority = std::clamp(value->priority, device->greatest_priority, device->least_priority);
  }
  cuda::SetStreamAttribute message;
  if (const CUresult error = ToWire(full, &message.attribute); error != CUDA_SUCCESS) return error;
  message.stream = command.stream()->id;
  {
    std::lock_guard lock(command.stream()->mutex);
    command.stream()->attributes[attribute] = full.value;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) command.stream()->priority = full.value.priority;
  }
  return FromWire(command.session()->Send(message));
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUstream_st* stream = command.stream();
  std::lock_guard lock(stream->mutex);
  const auto known = stream->attributes.find(attribute);
  if (known != stream->attributes.end()) {
    *value = known->second;
    return CUDA_SUCCESS;
  }
  *value = {};
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value->syncPolicy = CU_SYNC_POLICY_AUTO;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = stream->priority;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream to, CUstream from) {
  StreamCommand source, target;
  if (const CUresult error = source.BeginQuestion(from); error != CUDA_SUCCESS) return error;
  if (const CUresult error = target.BeginQuestion(to); error != CUDA_SUCCESS) return error;
  std::map<int, CUstreamAttrValue> attributes;
  {
    std::lock_guard lock(source.stream()->mutex);
    attributes = source.stream()->attributes;
  }
  // It has a priority without having been given one as an attribute.
  const int priority = source.stream()->priority;
  if (priority != target.stream()->priority) attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = priority;
  for (const auto& [id, value] : attributes) {
    const CUresult error = cuStreamSetAttribute(to, static_cast<CUstreamAttrID>(id), &value);
    if (error != CUDA_SUCCESS) return error;
  }
  return CUDA_SUCCESS;
}
