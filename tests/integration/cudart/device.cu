// SPDX-License-Identifier: Apache-2.0
// What programs print about devices, and what they set: properties, attributes, limits, flags, versions, entry points.
#include <cstring>

#include "check.h"

int main() {
  int count = 0;
  OK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  int driver = 0;
  int runtime = 0;
  OK(cudaDriverGetVersion(&driver));
  OK(cudaRuntimeGetVersion(&runtime));
  EXPECT(driver >= 12000 && runtime / 1000 == CUDART_VERSION / 1000);
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT(properties.name[0] != '\0');
  EXPECT(properties.totalGlobalMem > 0 && properties.warpSize == 32 && properties.major >= 5);
  EXPECT(properties.maxThreadsPerBlock >= 512 && properties.multiProcessorCount > 0);
  EXPECT(properties.maxGridSize[0] > 0 && properties.sharedMemPerBlock >= 16384);
  int value = 0;
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  EXPECT(value == 32);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0));
  EXPECT_ERROR(cudaErrorInvalidDevice, cudaSetDevice(count));
  EXPECT_ERROR(cudaErrorInvalidDevice, cudaGetLastError());
  OK(cudaSetDevice(0));
  int device = -1;
  OK(cudaGetDevice(&device));
  EXPECT(device == 0);
  char bus[32] = "";
  OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
  OK(cudaDeviceGetByPCIBusId(&device, bus));
  EXPECT(device == 0);
  size_t free_bytes = 0;
  size_t total = 0;
  OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(total > 0 && free_bytes <= total);
  size_t limit = 0;
  OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
  EXPECT(limit > 0);
  OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  OK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit >= 16 << 20);
  cudaFuncCache cache;
  OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  OK(cudaDeviceGetCacheConfig(&cache));
  unsigned flags = 0;
  OK(cudaGetDeviceFlags(&flags));
  EXPECT((flags & cudaDeviceMapHost) != 0);
  int* mapped = nullptr;
  int* device_mapped = nullptr;
  OK(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped));
  // Devices of other machines do not reach this one's memory.
  const cudaError_t mapping = cudaHostGetDevicePointer(&device_mapped, mapped, 0);
  int can_map = 0;
  OK(cudaDeviceGetAttribute(&can_map, cudaDevAttrCanMapHostMemory, 0));
  EXPECT(can_map != 0 ? mapping == cudaSuccess && device_mapped != nullptr : mapping == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  OK(cudaFreeHost(mapped));
  static int ordinary[2048];
  OK(cudaHostRegister(ordinary, sizeof(ordinary), cudaHostRegisterDefault));
  OK(cudaHostUnregister(ordinary));
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &status));
  EXPECT(function != nullptr && status == cudaDriverEntryPointSuccess);
  OK(cudaGetDriverEntryPointByVersion("cuDoesNotExist", &function, 12000, cudaEnableDefault, &status));
  EXPECT(function == nullptr && status == cudaDriverEntryPointSymbolNotFound);
  EXPECT(std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
  return Done();
}
