// SPDX-License-Identifier: Apache-2.0
// Entry points: devices.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "softcuda/driver/entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

/// Copies a text with its zero byte, cut to `length`.
CUresult CopyText(const std::string& text, char* to, int length) {
  if (to == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(to, static_cast<size_t>(length), "%s", text.c_str());
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(driver->devices.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  Device* found = nullptr;
  HAWSER_TRY(GetDevice(ordinal, &found));
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  return CopyText(device->name(), name, length);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *uuid = device->uuid();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice number) { return cuDeviceGetUuid(uuid, number); }

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = device->capacity();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return device->Attribute(attribute, value);
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice number) {
  HAWSER_TRY(cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number));
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number);
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop* properties, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  properties->maxThreadsPerBlock = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  properties->maxThreadsDim[0] = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  properties->maxThreadsDim[1] = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  properties->maxThreadsDim[2] = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  properties->maxGridSize[0] = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  properties->maxGridSize[1] = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  properties->maxGridSize[2] = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  properties->sharedMemPerBlock = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = device->Attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = device->Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = device->Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = device->Attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = device->Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int length, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  return CopyText(device->pci_bus_id(), id, length);
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // "[domain]:[bus]:[device].[function]", "[domain]:[bus]:[device]" or "[bus]:[device].[function]".
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  unsigned function = 0;
  if (std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = 0;
    if (std::sscanf(id, "%x:%x.%x", &bus, &slot, &function) != 3) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& candidate : driver->devices) {
    if (domain == 0 && slot == 0 && function == 0 && bus == static_cast<unsigned>(candidate->ordinal()) + 1) {
      *device = candidate->ordinal();
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t* width, CUarray_format format, unsigned channels,
                                                    CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (width == nullptr || ChannelBytes(format) == 0 || channels == 0 || channels > 4) return CUDA_ERROR_INVALID_VALUE;
  *width = static_cast<size_t>(device->Attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  if (supported == nullptr || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice number, CUdevice peer) {
  Device* device = nullptr;
  Device* other = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  HAWSER_TRY(GetDevice(peer, &other));
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = device == other ? 0 : 1;  // All of them live in one process.
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice number, CUdevice peer) {
  Device* device = nullptr;
  Device* other = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  HAWSER_TRY(GetDevice(peer, &other));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == other) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // extern "C"
