// SPDX-License-Identifier: Apache-2.0
// cuInit and cuDevice*: answered from what the server told once.
#include <algorithm>
#include <cstring>

#include "interposer/cuda/entry.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult FindDevice(CUdevice ordinal, Device** device) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  *device = Client::Get().device(ordinal);
  return *device != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult CUDAAPI cuInit(unsigned int flags) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : Client::Get().Init(); }

// The version of the API, which this library is made for; the server's driver may be older or newer.
CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(Client::Get().device_count());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* result, int ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *result = device->ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (name == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t length = std::min(device->name.size(), static_cast<size_t>(size) - 1);
  std::memcpy(name, device->name.data(), length);
  name[length] = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof(uuid->bytes) == sizeof(device->uuid));
  std::memcpy(uuid->bytes, device->uuid.data(), sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) { return cuDeviceGetUuid_v2(uuid, ordinal); }

// A number of Windows.
CUresult CUDAAPI cuDeviceGetLuid(char*, unsigned int*, CUdevice ordinal) {
  Device* device = nullptr;
  const CUresult error = FindDevice(ordinal, &device);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->total_memory;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  const auto index = static_cast<size_t>(attribute);
  if (value == nullptr || index >= Device::kAttributes || !device->known[index]) return CUDA_ERROR_INVALID_VALUE;
  *value = device->attributes[index];
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto get = [device](CUdevice_attribute attribute) { return device->attribute(attribute); };
  *properties = {};
  properties->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties->maxThreadsDim[0] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  properties->maxThreadsDim[1] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  properties->maxThreadsDim[2] = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  properties->maxGridSize[0] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  properties->maxGridSize[1] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  properties->maxGridSize[2] = get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  properties->sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int size, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (text == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t length = std::min(device->pci_bus_id.size(), static_cast<size_t>(size) - 1);
  std::memcpy(text, device->pci_bus_id.data(), length);
  text[length] = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* result, const char* text) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  const std::string_view wanted(text);
  for (size_t i = 0; i < Client::Get().device_count(); ++i) {
    const std::string& id = Client::Get().device(static_cast<int>(i))->pci_bus_id;
    // "0000:01:00.0", or without domain or function.
    const auto found = std::search(id.begin(), id.end(), wanted.begin(), wanted.end(), same);
    if (wanted.size() < 5 || found == id.end()) continue;
    *result = static_cast<CUdevice>(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  Device* device = nullptr;
  Device* other = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (const CUresult error = FindDevice(peer, &other); error != CUDA_SUCCESS) return error;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = std::count(device->peers.begin(), device->peers.end(), static_cast<uint32_t>(peer)) != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                         CUdevice destination) {
  Device* device = nullptr;
  Device* other = nullptr;
  if (const CUresult error = FindDevice(source, &device); error != CUDA_SUCCESS) return error;
  if (const CUresult error = FindDevice(destination, &other); error != CUDA_SUCCESS) return error;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (source == destination) return CUDA_ERROR_INVALID_DEVICE;
  const auto ask = [&](uint64_t* result) {
    cuda::Query message;
    message.kind = 1;
    message.device = static_cast<uint32_t>(source);
    message.other = static_cast<uint32_t>(destination);
    message.param = attribute;
    Answer<cuda::QueryReply> answer;
    if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
    int number = 0;
    if (answer->value.size() != sizeof(number)) return CUDA_ERROR_UNKNOWN;
    std::memcpy(&number, answer->value.data(), sizeof(number));
    *result = static_cast<uint32_t>(number);
    return CUDA_SUCCESS;
  };
  // What links two devices stays as it is.
  uint64_t result = 0;
  const uint64_t key = static_cast<uint64_t>(destination) << 32 | static_cast<uint32_t>(attribute);
  const CUresult error = device->links.Get(key, &result, ask);
  if (error == CUDA_SUCCESS) *value = static_cast<int>(result);
  return error;
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (supported == nullptr || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t* elements, CUarray_format format, unsigned channels,
                                                    CUdevice ordinal) {
  Device* device = nullptr;
  if (const CUresult error = FindDevice(ordinal, &device); error != CUDA_SUCCESS) return error;
  if (elements == nullptr || channels == 0 || channels > 4 || format == 0) return CUDA_ERROR_INVALID_VALUE;
  *elements = static_cast<size_t>(device->attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
  return CUDA_SUCCESS;
}
