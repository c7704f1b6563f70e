// SPDX-License-Identifier: Apache-2.0
// Memory that host and device share: managed allocations, managed variables of modules, registered and pinned memory
// that kernels use. What may be said of them is the same over every transport.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/held_stream.h"

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

const char* FillBetween() {
  return R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 begin, .param .u64 end, .param .u32 value)
{
  .reg .pred %p;
  .reg .b32 %r;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [begin];
  ld.param.u64 %d2, [end];
  ld.param.u32 %r, [value];
NEXT:
  setp.eq.u64 %p, %d1, %d2;
  @%p ret;
  st.global.u32 [%d1], %r;
  add.u64 %d1, %d1, 4;
  bra NEXT;
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
  // The order of the function and of what waited for it goes over the server, where ThreadSanitizer does not see it.
  std::atomic<uint32_t> seen = 0;
  HAWSER_CU(cuLaunchHostFunc(
      stream, [](void* data) { *static_cast<std::atomic<uint32_t>*>(data) = 1; }, &seen));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(host[kCount - 1], 2111u);
  EXPECT_EQ(seen, 1u);
  HAWSER_CU(cuMemFree(memory));
  HAWSER_CU(cuEventDestroy(event));
  HAWSER_CU(cuStreamDestroy(stream));
}

TEST_F(CudaMirror, TheHostWritesWhatKernelsOfOtherStreamsDoNotUse) {
  const CUfunction add = Function("add");
  CUstream one = nullptr, other = nullptr;
  HAWSER_CU(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUdeviceptr busy = 0, memory = 0, hosts = 0;
  HAWSER_CU(cuMemAlloc(&busy, 4));
  HAWSER_CU(cuMemAllocManaged(&memory, kCount * 4, CU_MEM_ATTACH_GLOBAL));
  HAWSER_CU(cuMemAllocManaged(&hosts, kCount * 4, CU_MEM_ATTACH_HOST));
  HAWSER_CU(cuStreamAttachMemAsync(one, memory, 0, CU_MEM_ATTACH_SINGLE));
  HAWSER_CU(cuStreamSynchronize(one));
  auto* host = reinterpret_cast<uint32_t*>(memory);
  for (uint32_t round = 0; round < 3; ++round) {
    // Kernels are under way, as far as anybody knows.
    HAWSER_CU(LaunchAdd(add, busy, 1, 1, other));
    for (uint32_t i = 0; i < kCount; ++i) host[i] = i + round;
    HAWSER_CU(LaunchAdd(add, memory, kCount, 5, one));
    HAWSER_CU(cuStreamSynchronize(one));
    for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(host[i], i + round + 5) << i;
  }
  // It becomes a stream's after the host has written it.
  host = reinterpret_cast<uint32_t*>(hosts);
  HAWSER_CU(LaunchAdd(add, busy, 1, 1, other));
  for (uint32_t i = 0; i < kCount; ++i) host[i] = i;
  HAWSER_CU(cuStreamAttachMemAsync(one, hosts, 0, CU_MEM_ATTACH_SINGLE));
  HAWSER_CU(LaunchAdd(add, hosts, kCount, 5, one));
  HAWSER_CU(cuStreamSynchronize(one));
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(host[i], i + 5) << i;
  HAWSER_CU(cuStreamSynchronize(other));
  for (const CUdeviceptr each : {busy, memory, hosts}) HAWSER_CU(cuMemFree(each));
  HAWSER_CU(cuStreamDestroy(one));
  HAWSER_CU(cuStreamDestroy(other));
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

TEST_F(CudaMirror, PinnedMemoryIsMapped) {
  ASSERT_EQ(Attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY), 1);
  const CUfunction add = Function("add");
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemHostAlloc(reinterpret_cast<void**>(&host), kCount * 4, CU_MEMHOSTALLOC_DEVICEMAP));
  for (uint32_t i = 0; i < kCount; ++i) host[i] = i;
  CUdeviceptr device = 0;
  HAWSER_CU(cuMemHostGetDevicePointer(&device, host, 0));
  HAWSER_CU(LaunchAdd(add, device, kCount, 5, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(host[0], 5u);
  EXPECT_EQ(host[kCount - 1], kCount + 4);
  // Complete when it returns, as for all memory that the host can look at.
  HAWSER_CU(cuMemsetD8(device, 0xab, kCount * 4));
  EXPECT_EQ(host[kCount - 1], 0xababababu);
  CUdeviceptr again = 0;
  HAWSER_CU(cuMemHostGetDevicePointer(&again, host + 7, 0));
  EXPECT_EQ(again, device + 28);
  HAWSER_CU(cuMemFreeHost(host));
}

// Unified addressing: nobody asks what the device calls pinned memory.
TEST_F(CudaMirror, KernelsTakeTheHostsAddressOfPinnedMemory) {
  const CUfunction add = Function("add");
  uint32_t* host = nullptr;
  uint32_t* other = nullptr;
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host), kCount * 4));
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&other), kCount * 4));
  const auto address = reinterpret_cast<CUdeviceptr>(host);
  CUdeviceptr told = 0;
  HAWSER_CU(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address));
  EXPECT_EQ(told, address);
  std::fill(host, host + kCount, 1);
  std::fill(other, other + kCount, 2);
  for (uint32_t round = 1; round <= 3; ++round) {
    HAWSER_CU(LaunchAdd(add, address + 4, kCount - 1, 5, nullptr));
    HAWSER_CU(cuCtxSynchronize());
    ASSERT_EQ(host[0], round);
    ASSERT_EQ(host[1], 1 + 5 * round);
    ASSERT_EQ(host[kCount - 1], 1 + 5 * round);
    host[0] = round + 1;
  }
  // As bytes that are the application's own, which stay as they are.
  struct {
    CUdeviceptr memory;
    uint32_t count, value;
  } bytes = {reinterpret_cast<CUdeviceptr>(other), kCount, 7};
  size_t size = sizeof(bytes);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  HAWSER_CU(cuLaunchKernel(add, (kCount + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(bytes.memory, reinterpret_cast<CUdeviceptr>(other));
  // Copies come after the kernels before them, and fills take the same address.
  std::vector<uint32_t> seen(kCount);
  CUdeviceptr device = 0;
  HAWSER_CU(cuMemAlloc(&device, kCount * 4));
  HAWSER_CU(cuMemcpyHtoDAsync(device, other, kCount * 4, nullptr));
  HAWSER_CU(cuMemcpyDtoH(seen.data(), device, kCount * 4));
  EXPECT_EQ(seen, std::vector<uint32_t>(kCount, 9));
  HAWSER_CU(cuMemsetD32(reinterpret_cast<CUdeviceptr>(other), 77, kCount));
  EXPECT_EQ(other[kCount - 1], 77u);
  HAWSER_CU(cuMemFree(device));
  HAWSER_CU(cuMemFreeHost(other));
  HAWSER_CU(cuMemFreeHost(host));
  // What the device had of it was given back: as often as one likes.
  for (int i = 0; i < 20; ++i) {
    HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host), 1u << 20));
    host[3] = 40;
    HAWSER_CU(LaunchAdd(add, reinterpret_cast<CUdeviceptr>(host), 4, 2, nullptr));
    HAWSER_CU(cuStreamSynchronize(nullptr));
    ASSERT_EQ(host[3], 42u);
    HAWSER_CU(cuMemFreeHost(host));
  }
}

TEST_F(CudaMirror, GraphsTakeTheHostsAddressOfPinnedMemory) {
  const CUfunction add = Function("add");
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host), kCount * 4));
  auto memory = reinterpret_cast<CUdeviceptr>(host);
  uint32_t count = kCount, value = 3;
  void* parameters[] = {&memory, &count, &value};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = add;
  kernel.gridDimX = (kCount + 127) / 128;
  kernel.blockDimX = 128;
  kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  CUgraph graph = nullptr, captured = nullptr;
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  HAWSER_CU(LaunchAdd(add, memory, kCount, 20, stream));
  HAWSER_CU(cuStreamEndCapture(stream, &captured));
  CUgraphExec first = nullptr, second = nullptr;
  HAWSER_CU(cuGraphInstantiateWithFlags(&first, graph, 0));
  HAWSER_CU(cuGraphInstantiateWithFlags(&second, captured, 0));
  std::fill(host, host + kCount, 100);
  HAWSER_CU(cuGraphLaunch(first, stream));
  HAWSER_CU(cuGraphLaunch(second, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(host[0], 123u);
  EXPECT_EQ(host[kCount - 1], 123u);
  HAWSER_CU(cuGraphExecDestroy(first));
  HAWSER_CU(cuGraphExecDestroy(second));
  HAWSER_CU(cuGraphDestroy(captured));
  HAWSER_CU(cuGraphDestroy(graph));
  HAWSER_CU(cuStreamDestroy(stream));
  HAWSER_CU(cuMemFreeHost(host));
}

// Also the address where it ends, which begins nothing.
TEST_F(CudaMirror, LoopsEndWherePinnedMemoryDoes) {
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  HAWSER_CU(cuModuleLoadData(&module, FillBetween()));
  HAWSER_CU(cuModuleGetFunction(&fill, module, "fill"));
  // Several, which the system places beside each other: none ends where another begins.
  std::vector<uint32_t*> all(6);
  for (uint32_t*& host : all) HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host), 8192));
  for (uint32_t* const host : all) {
    auto begin = reinterpret_cast<CUdeviceptr>(host) + 4;
    auto end = reinterpret_cast<CUdeviceptr>(host) + 8192;
    uint32_t value = 31;
    void* parameters[] = {&begin, &end, &value};
    host[0] = 1;
    HAWSER_CU(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    HAWSER_CU(cuCtxSynchronize());
    EXPECT_EQ(host[0], 1u);
    EXPECT_EQ(host[1], 31u);
    EXPECT_EQ(host[2047], 31u);
  }
  for (uint32_t* const host : all) HAWSER_CU(cuMemFreeHost(host));
}

// The memory may be another context's, and outlive the one whose kernels used it.
TEST_F(CudaMirror, PinnedMemoryOutlivesTheContextThatUsedIt) {
  uint32_t* host = nullptr;
  HAWSER_CU(cuMemHostAlloc(reinterpret_cast<void**>(&host), kCount * 4, CU_MEMHOSTALLOC_PORTABLE));
  host[1] = 10;
  CUcontext context = nullptr;
  HAWSER_CU(cuCtxCreate(&context, nullptr, 0, device_));
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  HAWSER_CU(cuModuleLoadData(&module, Kernels()));
  HAWSER_CU(cuModuleGetFunction(&add, module, "add"));
  HAWSER_CU(LaunchAdd(add, reinterpret_cast<CUdeviceptr>(host), 2, 1, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(host[1], 11u);
  HAWSER_CU(cuCtxDestroy(context));
  HAWSER_CU(cuCtxSetCurrent(context_));
  HAWSER_CU(LaunchAdd(Function("add"), reinterpret_cast<CUdeviceptr>(host), 2, 1, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_EQ(host[1], 12u);
  HAWSER_CU(cuMemFreeHost(host));
}

TEST_F(CudaMirror, RegisteredMemoryIsMapped) {
  const CUfunction add = Function("add");
  std::vector<uint32_t> memory(kCount + 2, 7);
  for (int round = 0; round < 3; ++round) {
    std::fill(memory.begin(), memory.end(), 7);
    HAWSER_CU(cuMemHostRegister(&memory[1], kCount * 4, CU_MEMHOSTREGISTER_DEVICEMAP));
    EXPECT_EQ(cuMemHostRegister(&memory[1], kCount * 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr device = 0;
    HAWSER_CU(cuMemHostGetDevicePointer(&device, &memory[1], 0));
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
    EXPECT_EQ(memory[0], 7u);
    EXPECT_EQ(memory[kCount + 1], 7u);
    HAWSER_CU(cuMemHostUnregister(&memory[1]));
    EXPECT_EQ(cuMemHostUnregister(&memory[1]), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  }
}

class CudaMirroredCopies : public CudaMirror {
 protected:
  void SetUp() override {
    CudaMirror::SetUp();
    HAWSER_CU(cuMemHostRegister(host_.data(), host_.size(), CU_MEMHOSTREGISTER_DEVICEMAP));
    CUdeviceptr mirrored = 0;  // From here on it is.
    HAWSER_CU(cuMemHostGetDevicePointer(&mirrored, host_.data(), 0));
    HAWSER_CU(cuMemAlloc(&from_, host_.size()));
    HAWSER_CU(cuMemAlloc(&to_, host_.size()));
    HAWSER_CU(cuMemsetD8(from_, 7, host_.size()));
    HAWSER_CU(cuMemsetD8(to_, 0, host_.size()));
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_DEFAULT));
    copy_.srcMemoryType = CU_MEMORYTYPE_HOST, copy_.srcHost = host_.data(), copy_.srcPitch = 16;
    copy_.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy_.dstDevice = to_, copy_.dstPitch = 16;
    copy_.WidthInBytes = 8, copy_.Height = 4, copy_.Depth = 1;
  }
  void TearDown() override {
    HAWSER_CU(cuStreamDestroy(stream_));
    HAWSER_CU(cuMemFree(from_));
    HAWSER_CU(cuMemFree(to_));
    HAWSER_CU(cuMemHostUnregister(host_.data()));
    CudaMirror::TearDown();
  }
  /// The first half of each row is `inner`, the rest `outer`.
  static void Expect(const std::vector<unsigned char>& bytes, int inner, int outer) {
    for (size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i % 16 < 8 ? inner : outer) << i;
  }
  void ExpectCopied() {
    std::vector<unsigned char> back(host_.size());
    HAWSER_CU(cuStreamSynchronize(stream_));
    HAWSER_CU(cuMemcpyDtoH(back.data(), to_, back.size()));
    Expect(back, 7, 0);
    Expect(host_, 7, 7);
  }

  std::vector<unsigned char> host_ = std::vector<unsigned char>(64, 1);
  CUdeviceptr from_ = 0, to_ = 0;
  CUstream stream_ = nullptr;
  CUDA_MEMCPY3D copy_{};
};

TEST_F(CudaMirroredCopies, ARectangleSeesWhatAnEarlierCopyBroughtThere) {
  HAWSER_CU(cuMemcpyDtoHAsync(host_.data(), from_, host_.size(), stream_));
  HAWSER_CU(cuMemcpy3DAsync(&copy_, stream_));
  ExpectCopied();
}

TEST_F(CudaMirroredCopies, WhatAStreamWritesThereStays) {
  int can = 0;
  HAWSER_CU(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device_));
  if (can == 0) GTEST_SKIP() << "the device writes no values";
  CUdeviceptr mirrored = 0;
  HAWSER_CU(cuMemHostGetDevicePointer(&mirrored, host_.data(), 0));
  HAWSER_CU(cuStreamWriteValue32(stream_, mirrored + 8, 0x05050505, CU_STREAM_WRITE_VALUE_DEFAULT));
  HAWSER_CU(cuMemcpyDtoDAsync(to_, mirrored, host_.size(), stream_));
  std::vector<unsigned char> expected(host_.size(), 1), back(host_.size());
  std::fill_n(expected.begin() + 8, 4, 5);
  HAWSER_CU(cuStreamSynchronize(stream_));
  HAWSER_CU(cuMemcpyDtoH(back.data(), to_, back.size()));
  EXPECT_EQ(back, expected);
  EXPECT_EQ(host_, expected);
}

TEST_F(CudaMirroredCopies, ANodeOfAGraphToo) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy_, context_));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  HAWSER_CU(cuMemcpyDtoHAsync(host_.data(), from_, host_.size(), stream_));
  HAWSER_CU(cuGraphLaunch(executable, stream_));
  ExpectCopied();
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaMirroredCopies, ARectangleThatComesBackWaits) {
  copy_.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy_.srcDevice = from_;
  copy_.dstMemoryType = CU_MEMORYTYPE_HOST, copy_.dstHost = host_.data();
  HAWSER_CU(cuMemcpy3D(&copy_));
  Expect(host_, 7, 1);
}

TEST_F(CudaMirroredCopies, HostAndDeviceWriteNextToEachOther) {
  CUdeviceptr mirrored = 0;
  HAWSER_CU(cuMemHostGetDevicePointer(&mirrored, host_.data(), 0));
  HAWSER_CU(cuMemsetD32Async(mirrored + 8, 0x05050505, 1, stream_));
  HAWSER_CU(cuMemsetD32Async(mirrored + 16, 0x05050505, 1, stream_));
  std::fill_n(host_.begin() + 12, 4, 6);
  HAWSER_CU(cuStreamSynchronize(stream_));
  std::vector<unsigned char> expected(host_.size(), 1);
  std::fill_n(expected.begin() + 8, 12, 5);
  std::fill_n(expected.begin() + 12, 4, 6);
  EXPECT_EQ(host_, expected);
}

TEST_F(CudaMirroredCopies, WhatIsBehindAFunctionSeesWhatItWrote) {
  CUdeviceptr mirrored = 0;
  HAWSER_CU(cuMemHostGetDevicePointer(&mirrored, host_.data(), 0));
  HeldStream held;
  held.Hold(stream_);
  const auto write = [](void* bytes) { std::memset(bytes, 7, 64); };
  HAWSER_CU(cuLaunchHostFunc(stream_, write, host_.data()));
  HAWSER_CU(cuMemcpyDtoDAsync(to_, mirrored, host_.size(), stream_));
  held.Go();
  std::vector<unsigned char> back(host_.size());
  HAWSER_CU(cuStreamSynchronize(stream_));
  HAWSER_CU(cuMemcpyDtoH(back.data(), to_, back.size()));
  Expect(back, 7, 7);
}

TEST_F(CudaMirroredCopies, ANodeBehindAFunctionToo) {
  CUgraph graph = nullptr;
  CUgraphNode function = nullptr, node = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_HOST_NODE_PARAMS write{};
  write.fn = [](void* bytes) { std::memset(bytes, 7, 64); };
  write.userData = host_.data();
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddHostNode(&function, graph, nullptr, 0, &write));
  HAWSER_CU(cuGraphAddMemcpyNode(&node, graph, &function, 1, &copy_, context_));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  HAWSER_CU(cuGraphLaunch(executable, stream_));
  ExpectCopied();
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaMirroredCopies, ARectangleToPageableMemoryIsAWait) {
  CUdeviceptr mirrored = 0;
  HAWSER_CU(cuMemHostGetDevicePointer(&mirrored, host_.data(), 0));
  std::vector<unsigned char> pageable(64);
  copy_.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy_.srcDevice = from_;
  copy_.dstMemoryType = CU_MEMORYTYPE_HOST, copy_.dstHost = pageable.data();
  HAWSER_CU(cuMemsetD8Async(mirrored, 9, host_.size(), stream_));
  HAWSER_CU(cuMemcpy3DAsync(&copy_, stream_));
  Expect(pageable, 7, 0);
  Expect(host_, 9, 9);
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
