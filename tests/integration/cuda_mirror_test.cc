// SPDX-License-Identifier: Apache-2.0
// Memory that host and device share: managed allocations, managed variables of modules, registered and pinned memory
// that kernels use. What may be said of them is the same over every transport; whether host memory can be mapped at all
// is what the device says.
#include <cstring>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

constexpr uint32_t kCount = 5000;

const char* ManagedVariables() {
  return R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 number = 17;
.visible .global .attribute(.managed) .align 4 .b8 table[8192];

.visible .entry change(.param .u32 value)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<3>;
  ld.param.u32 %r1, [value];
  ld.global.u32 %r2, [number];
  add.u32 %r3, %r2, %r1;
  st.global.u32 [number], %r3;
  mov.u64 %d1, table;
  st.global.u32 [%d1+8188], %r3;
  ret;
}
)";
}

class CudaMirror : public CudaTest {
 protected:
  int Attribute(CUdevice_attribute attribute) const {
    int value = -1;
    EXPECT_EQ(cuDeviceGetAttribute(&value, attribute, device_), CUDA_SUCCESS);
    return value;
  }
  bool MapsHostMemory() const { return Attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) != 0; }
};

TEST_F(CudaMirror, ManagedMemoryIsOneForBothSides) {
  ASSERT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY), 1);
  const CUfunction add = Function("add");
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAllocManaged(&memory, kCount * 4, CU_MEM_ATTACH_GLOBAL));
  auto* host = reinterpret_cast<uint32_t*>(memory);
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kCount; ++i) host[i] = i + round;
    HAWSER_CU(LaunchAdd(add, memory, kCount, 5, nullptr));
    HAWSER_CU(LaunchAdd(add, memory, kCount, 6, nullptr));
    HAWSER_CU(cuCtxSynchronize());
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(host[i], i + round + 11) << i;
  }
  unsigned managed = 0;
  HAWSER_CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory + 4));
  EXPECT_EQ(managed, 1u);
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaMirror, EveryKindOfWaitShowsWhatTheDeviceWrote) {
  const CUfunction add = Function("add");
  CUstream stream = nullptr;
  CUevent event = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAllocManaged(&memory, kCount * 4, CU_MEM_ATTACH_GLOBAL));
  auto* host = reinterpret_cast<uint32_t*>(memory);
  host[kCount - 1] = 1;
  HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(host[kCount - 1], 2u);
  host[kCount - 1] *= 10;
  HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
  HAWSER_CU(cuEventRecord(event, stream));
  HAWSER_CU(cuEventSynchronize(event));
  EXPECT_EQ(host[kCount - 1], 21u);
  host[kCount - 1] *= 10;
  HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
  CUresult state = CUDA_ERROR_NOT_READY;
  while ((state = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  HAWSER_CU(state);
  EXPECT_EQ(host[kCount - 1], 211u);
  host[kCount - 1] *= 10;
  HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
  uint32_t seen = 0;
  HAWSER_CU(cuLaunchHostFunc(
      stream, [](void* data) { *static_cast<uint32_t*>(data) = 1; }, &seen));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(host[kCount - 1], 2111u);
  EXPECT_EQ(seen, 1u);
  HAWSER_CU(cuMemFree(memory));
  HAWSER_CU(cuEventDestroy(event));
  HAWSER_CU(cuStreamDestroy(stream));
}

TEST_F(CudaMirror, CopiesAndFillsSeeManagedMemory) {
  const CUfunction add = Function("add");
  CUdeviceptr managed = 0, device = 0;
  HAWSER_CU(cuMemAllocManaged(&managed, kCount * 4, CU_MEM_ATTACH_GLOBAL));
  HAWSER_CU(cuMemAlloc(&device, kCount * 4));
  auto* host = reinterpret_cast<uint32_t*>(managed);
  HAWSER_CU(cuMemsetD32(managed, 3, kCount));
  EXPECT_EQ(host[0] + host[kCount - 1], 6u);
  host[7] = 100;
  HAWSER_CU(cuMemcpy(device, managed, kCount * 4));
  HAWSER_CU(LaunchAdd(add, device, kCount, 1, nullptr));
  // The other way, past what the host has now.
  HAWSER_CU(cuMemcpyDtoH(host, device, kCount * 4));
  EXPECT_EQ(host[6], 4u);
  EXPECT_EQ(host[7], 101u);
  // Behind a kernel that nobody waited for.
  HAWSER_CU(LaunchAdd(add, managed, kCount, 1, nullptr));
  HAWSER_CU(cuMemcpyHtoD(device, host, kCount * 4));
  std::vector<uint32_t> result(kCount);
  HAWSER_CU(cuMemcpyDtoH(result.data(), device, kCount * 4));
  EXPECT_EQ(result[6], 5u);
  EXPECT_EQ(result[7], 102u);
  HAWSER_CU(cuMemFree(managed));
  HAWSER_CU(cuMemFree(device));
}

TEST_F(CudaMirror, ManagedVariablesHaveOneAddress) {
  CUlibrary library = nullptr;
  HAWSER_CU(cuLibraryLoadData(&library, ManagedVariables(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUdeviceptr number = 0, table = 0;
  size_t size = 0;
  HAWSER_CU(cuLibraryGetManaged(&number, &size, library, "number"));
  EXPECT_EQ(size, 4u);
  HAWSER_CU(cuLibraryGetManaged(&table, &size, library, "table"));
  EXPECT_EQ(size, 8192u);
  auto* host_number = reinterpret_cast<uint32_t*>(number);
  auto* host_table = reinterpret_cast<uint32_t*>(table);
  EXPECT_EQ(*host_number, 17u);
  *host_number = 20;
  CUkernel kernel = nullptr;
  HAWSER_CU(cuLibraryGetKernel(&kernel, library, "change"));
  uint32_t value = 5;
  void* parameters[] = {&value};
  for (int i = 0; i < 2; ++i) {
    HAWSER_CU(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  }
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(*host_number, 30u);
  EXPECT_EQ(host_table[2047], 30u);
  EXPECT_EQ(host_table[2046], 0u);
  unsigned managed = 0;
  HAWSER_CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, number));
  EXPECT_EQ(managed, 1u);
  HAWSER_CU(cuLibraryUnload(library));
}

TEST_F(CudaMirror, PinnedMemoryIsMappedWhereTheDeviceSaysSo) {
  const CUfunction add = Function("add");
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemHostAlloc(reinterpret_cast<void**>(&host), kCount * 4, CU_MEMHOSTALLOC_DEVICEMAP));
  for (uint32_t i = 0; i < kCount; ++i) host[i] = i;
  CUdeviceptr device = 0;
  const CUresult mapped = cuMemHostGetDevicePointer(&device, host, 0);
  if (!MapsHostMemory()) {
    EXPECT_EQ(mapped, CUDA_ERROR_INVALID_VALUE) << ErrorName(mapped);
  } else {
    HAWSER_CU(mapped);
    HAWSER_CU(LaunchAdd(add, device, kCount, 5, nullptr));
    HAWSER_CU(cuCtxSynchronize());
    EXPECT_EQ(host[0], 5u);
    EXPECT_EQ(host[kCount - 1], kCount + 4);
    // Complete when it returns, as for all memory that the host can look at.
    HAWSER_CU(cuMemsetD8(device, 0xab, kCount * 4));
    EXPECT_EQ(host[kCount - 1], 0xababababu);
  }
  HAWSER_CU(cuMemFreeHost(host));
}

TEST_F(CudaMirror, RegisteredMemoryIsMappedWhereTheDeviceSaysSo) {
  const CUfunction add = Function("add");
  std::vector<uint32_t> memory(kCount + 2, 7);
  for (int round = 0; round < 3; ++round) {
    std::fill(memory.begin(), memory.end(), 7);
    HAWSER_CU(cuMemHostRegister(&memory[1], kCount * 4, CU_MEMHOSTREGISTER_DEVICEMAP));
    EXPECT_EQ(cuMemHostRegister(&memory[1], kCount * 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr device = 0;
    const CUresult mapped = cuMemHostGetDevicePointer(&device, &memory[1], 0);
    if (!MapsHostMemory()) {
      EXPECT_EQ(mapped, CUDA_ERROR_INVALID_VALUE) << ErrorName(mapped);
    } else {
      HAWSER_CU(mapped);
      HAWSER_CU(LaunchAdd(add, device, kCount, 5, nullptr));
      HAWSER_CU(cuCtxSynchronize());
      EXPECT_EQ(memory[1], 12u);
      // Without waiting in between: other parts of it are the host's.
      HAWSER_CU(LaunchAdd(add, device, 100, 1, nullptr));
      memory[2000] = 50;
      HAWSER_CU(LaunchAdd(add, device, kCount, 1, nullptr));
      // Giving it back waits for the device.
      HAWSER_CU(cuMemHostUnregister(&memory[1]));
      EXPECT_EQ(memory[1], 14u);
      EXPECT_EQ(memory[2000], 51u);
      EXPECT_EQ(memory[kCount], 13u);
      HAWSER_CU(cuMemHostRegister(&memory[1], kCount * 4, 0));
    }
    EXPECT_EQ(memory[0], 7u);
    EXPECT_EQ(memory[kCount + 1], 7u);
    HAWSER_CU(cuMemHostUnregister(&memory[1]));
    EXPECT_EQ(cuMemHostUnregister(&memory[1]), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  }
}

TEST_F(CudaMirror, WhatADeviceSaysOfSharingCanBeReliedUpon) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 64));
  unsigned shareable = 1;
  HAWSER_CU(cuPointerGetAttribute(&shareable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory));
  CUipcMemHandle handle;
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory), shareable != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
  if (Attribute(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED) == 0) {
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_ERROR_NOT_SUPPORTED);
  }
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaMirror, AContextsEndTakesItsManagedMemoryWithIt) {
  CUcontext context = nullptr;
  HAWSER_CU(cuCtxCreate(&context, nullptr, 0, device_));
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAllocManaged(&memory, kCount * 4, CU_MEM_ATTACH_GLOBAL));
  *reinterpret_cast<uint32_t*>(memory) = 1;
  HAWSER_CU(cuCtxDestroy(context));
  HAWSER_CU(cuCtxSetCurrent(context_));
  HAWSER_CU(cuMemAllocManaged(&memory, kCount * 4, CU_MEM_ATTACH_GLOBAL));
  *reinterpret_cast<uint32_t*>(memory) = 2;
  HAWSER_CU(LaunchAdd(Function("add"), memory, 1, 5, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(memory), 7u);
  HAWSER_CU(cuMemFree(memory));
}

}  // namespace
}  // namespace hawser
