// SPDX-License-Identifier: Apache-2.0
// Memory and events that two processes of one user share (cuIpc*).
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/other_process.h"

namespace hawser {
namespace {

constexpr uint32_t kCount = 20000;  // No whole number of pages.
constexpr unsigned kShared = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

class CudaSharing : public CudaTest {
 protected:
  CUdeviceptr Allocate(uint32_t value) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, kCount * 4), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD32(memory, value, kCount), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return memory;
  }
  static CUipcMemHandle Export(CUdeviceptr memory) {
    CUipcMemHandle handle{};
    const CUresult result = cuIpcGetMemHandle(&handle, memory);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return handle;
  }
  static CUdeviceptr Import(const CUipcMemHandle& handle) {
    CUdeviceptr memory = 0;
    const CUresult result = cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return memory;
  }
  /// The first number that is not `value`; kCount: all are.
  static uint32_t Differs(CUdeviceptr memory, uint32_t value) {
    std::vector<uint32_t> all(kCount);
    const CUresult result = cuMemcpyDtoH(all.data(), memory, kCount * 4);
    EXPECT_EQ(result, CUDA_SUCCESS) << ErrorName(result);
    return static_cast<uint32_t>(
        std::find_if(all.begin(), all.end(), [value](uint32_t each) { return each != value; }) - all.begin());
  }
};

TEST_F(CudaSharing, TheDeviceSaysThatItCan) {
  int events = 0;
  HAWSER_CU(cuDeviceGetAttribute(&events, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, device_));
  EXPECT_EQ(events, 1);
  const CUdeviceptr memory = Allocate(1);
  unsigned capable = 0;
  HAWSER_CU(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory));
  EXPECT_EQ(capable, 1u);
}

TEST_F(CudaSharing, DISABLED_AddsToWhatItIsGiven) {
  const Talk starter = Starter();
  CUipcMemHandle handle;
  ASSERT_TRUE(starter.Receive(&handle));
  const CUdeviceptr memory = Import(handle);
  CUdeviceptr base = 0;
  size_t size = 0;
  HAWSER_CU(cuMemGetAddressRange(&base, &size, memory + 4096));
  EXPECT_EQ(base, memory);
  EXPECT_EQ(size, kCount * 4u);
  EXPECT_EQ(Differs(memory, 5), kCount);
  HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 7, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  starter.SayWord();
  ASSERT_TRUE(starter.AwaitWord());
  EXPECT_EQ(Differs(memory, 112), kCount);
  // Opened again it is the same, and stays until both are closed.
  EXPECT_EQ(Import(handle), memory);
  HAWSER_CU(cuIpcCloseMemHandle(memory));
  EXPECT_EQ(Differs(memory, 112), kCount);
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuIpcCloseMemHandle(memory));
  EXPECT_EQ(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  uint32_t value = 0;
  EXPECT_EQ(cuMemcpyDtoH(&value, memory, 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaSharing, BothProcessesSeeOneMemory) {
  const CUdeviceptr memory = Allocate(5);
  const CUipcMemHandle handle = Export(memory);
  const CUipcMemHandle again = Export(memory);
  EXPECT_EQ(std::memcmp(&handle, &again, sizeof(handle)), 0);
  EXPECT_EQ(Differs(memory, 5), kCount) << "what was there before is still there";
  OtherProcess other("CudaSharing.DISABLED_AddsToWhatItIsGiven");
  other.Send(handle);
  ASSERT_TRUE(other.AwaitWord());
  EXPECT_EQ(Differs(memory, 12), kCount);
  HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 100, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  other.SayWord();
  EXPECT_TRUE(other.Wait());
  EXPECT_EQ(Differs(memory, 112), kCount) << "closing it there changes nothing here";
  HAWSER_CU(cuMemFree(memory));
}

TEST_F(CudaSharing, WorkThatIsUnderWayIsNotLostByTheExport) {
  const CUdeviceptr memory = Allocate(0);
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUfunction add = Function("add");
  for (int i = 0; i < 50; ++i) HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
  (void)Export(memory);
  for (int i = 0; i < 50; ++i) HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Differs(memory, 100), kCount);
}

TEST_F(CudaSharing, AnExportChangesNothingInLargeMemory) {
  std::vector<uint32_t> there((5u << 18) + 77), back(there.size());
  for (uint32_t i = 0; i < there.size(); ++i) there[i] = i < 1u << 19 ? i * 2654435761u : 0;  // The rest is untouched.
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, there.size() * 4));
  HAWSER_CU(cuMemcpyHtoD(memory, there.data(), uint64_t{4} << 19));
  HAWSER_CU(cuMemsetD32(memory + (uint64_t{4} << 19), 0, there.size() - (1u << 19)));
  (void)Export(memory);
  HAWSER_CU(cuMemcpyDtoH(back.data(), memory, back.size() * 4));
  EXPECT_EQ(there, back);
}

TEST_F(CudaSharing, AnExportDoesNotWaitForAHostFunctionForEver) {
  const CUdeviceptr memory = Allocate(3);
  static std::atomic<bool> ran{false};
  ran = false;
  HAWSER_CU(cuLaunchHostFunc(
      nullptr,
      [](void*) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ran = true;
      },
      nullptr));
  (void)Export(memory);
  HAWSER_CU(cuCtxSynchronize());
  EXPECT_TRUE(ran);
  EXPECT_EQ(Differs(memory, 3), kCount);
}

TEST_F(CudaSharing, WhatCannotBeSharedIsRefused) {
  const CUdeviceptr memory = Allocate(1);
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(nullptr, memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, 12345), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcGetMemHandle(&handle, memory + 512), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr managed = 0;
  HAWSER_CU(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
  // Neither made up, nor of this process, nor of what is gone.
  CUdeviceptr opened = 0;
  std::memset(&handle, 0x5a, sizeof(handle));
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_HANDLE);
  handle = Export(memory);
  EXPECT_EQ(cuIpcOpenMemHandle(nullptr, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, handle, 6), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  CUevent event = nullptr;
  CUipcEventHandle event_handle{};
  HAWSER_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(cuIpcGetEventHandle(&event_handle, event), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  HAWSER_CU(cuEventCreate(&event, kShared));
  HAWSER_CU(cuIpcGetEventHandle(&event_handle, event));
  CUevent other = nullptr;
  EXPECT_EQ(cuIpcOpenEventHandle(&other, event_handle), CUDA_ERROR_INVALID_CONTEXT);
  std::memcpy(&event_handle, &handle, sizeof(handle));
  EXPECT_EQ(cuIpcOpenEventHandle(&other, event_handle), CUDA_ERROR_INVALID_HANDLE) << "it is one of memory";
}

TEST_F(CudaSharing, DISABLED_TriesAHandleOfFreedMemory) {
  CUipcMemHandle handle;
  ASSERT_TRUE(Starter().Receive(&handle));
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaSharing, AHandleEndsWithItsMemory) {
  const CUdeviceptr memory = Allocate(1);
  const CUipcMemHandle handle = Export(memory);
  HAWSER_CU(cuMemFree(memory));
  const CUdeviceptr next = Allocate(2);
  const CUipcMemHandle other_handle = Export(next);
  EXPECT_NE(std::memcmp(&handle, &other_handle, sizeof(handle)), 0);
  OtherProcess other("CudaSharing.DISABLED_TriesAHandleOfFreedMemory");
  other.Send(handle);
  EXPECT_TRUE(other.Wait());
}

struct Both {
  CUipcMemHandle memory;
  CUipcEventHandle there, back;
};

TEST_F(CudaSharing, DISABLED_AnswersRoundByRound) {
  const Talk starter = Starter();
  Both both;
  ASSERT_TRUE(starter.Receive(&both));
  const CUdeviceptr memory = Import(both.memory);
  CUevent there = nullptr, back = nullptr;
  HAWSER_CU(cuIpcOpenEventHandle(&there, both.there));
  HAWSER_CU(cuIpcOpenEventHandle(&back, both.back));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUfunction add = Function("add");
  while (starter.AwaitWord()) {
    HAWSER_CU(cuStreamWaitEvent(stream, there, 0));
    HAWSER_CU(LaunchAdd(add, memory, kCount, 1, stream));
    HAWSER_CU(cuEventRecord(back, stream));
    starter.SayWord();
  }
  HAWSER_CU(cuEventDestroy(there));
  HAWSER_CU(cuEventDestroy(back));
}

TEST_F(CudaSharing, EventsOrderTheWorkOfTwoProcesses) {
  const CUdeviceptr memory = Allocate(0);
  CUevent there = nullptr, back = nullptr;
  HAWSER_CU(cuEventCreate(&there, kShared));
  HAWSER_CU(cuEventCreate(&back, kShared));
  Both both;
  both.memory = Export(memory);
  HAWSER_CU(cuIpcGetEventHandle(&both.there, there));
  HAWSER_CU(cuIpcGetEventHandle(&both.back, back));
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUfunction add = Function("add");
  constexpr uint32_t kRounds = 30;
  {
    OtherProcess other("CudaSharing.DISABLED_AnswersRoundByRound");
    other.Send(both);
    for (uint32_t round = 0; round < kRounds; ++round) {
      // Nobody waits on the host: the events alone keep the two from adding at the same time.
      HAWSER_CU(LaunchAdd(add, memory, kCount, 100, stream));
      HAWSER_CU(cuEventRecord(there, stream));
      other.SayWord();
      ASSERT_TRUE(other.AwaitWord());
      HAWSER_CU(cuStreamWaitEvent(stream, back, 0));
    }
    HAWSER_CU(cuEventSynchronize(back));
    EXPECT_EQ(cuEventQuery(back), CUDA_SUCCESS) << "the last record is the other's, and it is done";
    HAWSER_CU(cuStreamSynchronize(stream));
    EXPECT_EQ(Differs(memory, kRounds * 101), kCount);
    other.CloseOutput();
    EXPECT_TRUE(other.Wait());
  }
}

TEST_F(CudaSharing, DISABLED_HoldsItsEventBack) {
  const Talk starter = Starter();
  // Memory and an event of ours; the event stands for a kernel that takes its time.
  const CUdeviceptr memory = Allocate(0);
  Both both{};
  both.memory = Export(memory);
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, kShared));
  HAWSER_CU(cuIpcGetEventHandle(&both.there, event));
  HAWSER_CU(cuMemsetD32(memory, 9, kCount));
  HAWSER_CU(cuCtxSynchronize());
  CUdeviceptr scratch = 0;
  HAWSER_CU(cuMemAlloc(&scratch, 4096));
  uint32_t rounds = 2000000000;
  void* parameters[] = {&scratch, &rounds};
  HAWSER_CU(cuLaunchKernel(Function("spin"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  HAWSER_CU(cuEventRecord(event, nullptr));
  starter.Send(both);
  (void)starter.AwaitWord();
  FAIL() << "nobody killed it";
}

TEST_F(CudaSharing, TheDeathOfTheExporterHurtsNobody) {
  Both both;
  OtherProcess other("CudaSharing.DISABLED_HoldsItsEventBack");
  ASSERT_TRUE(other.Receive(&both));
  const CUdeviceptr memory = Import(both.memory);
  EXPECT_EQ(Differs(memory, 9), kCount);
  CUevent event = nullptr;
  HAWSER_CU(cuIpcOpenEventHandle(&event, both.there));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  // Work of ours is behind its event, and other work uses its memory, when it dies.
  CUstream waiting = nullptr, working = nullptr;
  HAWSER_CU(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamCreate(&working, CU_STREAM_NON_BLOCKING));
  CUdeviceptr mine = 0;
  HAWSER_CU(cuMemAlloc(&mine, 4096));
  HAWSER_CU(cuStreamWaitEvent(waiting, event, 0));
  HAWSER_CU(cuMemsetD32Async(mine, 77, 1024, waiting));
  CUfunction add = Function("add");
  for (int i = 0; i < 20; ++i) HAWSER_CU(LaunchAdd(add, memory, kCount, 1, working));
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  other.Kill();
  for (int i = 0; i < 20; ++i) HAWSER_CU(LaunchAdd(add, memory, kCount, 1, working));
  HAWSER_CU(cuStreamSynchronize(working));
  EXPECT_EQ(Differs(memory, 49), kCount) << "the memory lives as long as somebody has it";
  HAWSER_CU(cuStreamSynchronize(waiting));
  HAWSER_CU(cuEventSynchronize(event));
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS) << "nobody will ever end it";
  uint32_t value = 0;
  HAWSER_CU(cuMemcpyDtoH(&value, mine, 4));
  EXPECT_EQ(value, 77u);
  HAWSER_CU(cuIpcCloseMemHandle(memory));
  HAWSER_CU(cuEventDestroy(event));
}

TEST_F(CudaSharing, AContextThatEndsClosesWhatItOpened) {
  Both both;
  OtherProcess other("CudaSharing.DISABLED_HoldsItsEventBack");
  ASSERT_TRUE(other.Receive(&both));
  const CUdeviceptr memory = Import(both.memory);
  EXPECT_EQ(Differs(memory, 9), kCount);
  HAWSER_CU(cuDevicePrimaryCtxReset(device_));
  HAWSER_CU(cuDevicePrimaryCtxRetain(&context_, device_));
  HAWSER_CU(cuCtxSetCurrent(context_));
  module_ = nullptr;
  EXPECT_EQ(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Differs(Import(both.memory), 9), kCount);
}

TEST_F(CudaSharing, DISABLED_WorksOnWhatItIsGivenForEver) {
  const Talk starter = Starter();
  CUipcMemHandle handle;
  ASSERT_TRUE(starter.Receive(&handle));
  const CUdeviceptr memory = Import(handle);
  uint32_t rounds = 2000000000;
  void* parameters[] = {const_cast<CUdeviceptr*>(&memory), &rounds};
  HAWSER_CU(cuLaunchKernel(Function("spin"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  starter.SayWord();
  (void)starter.AwaitWord();
  FAIL() << "nobody killed it";
}

TEST_F(CudaSharing, TheDeathOfAnOpenerHurtsNobody) {
  const CUdeviceptr memory = Allocate(3);
  // Shares its pages with nothing else: the victim's kernel goes on for a moment after its death.
  CUdeviceptr scratch = 0;
  HAWSER_CU(cuMemAlloc(&scratch, 4 << 20));
  const CUipcMemHandle handle = Export(memory);
  {
    OtherProcess victim("CudaSharing.DISABLED_WorksOnWhatItIsGivenForEver");
    victim.Send(Export(scratch));
    ASSERT_TRUE(victim.AwaitWord());
    victim.Kill();
  }
  HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 2, nullptr));
  EXPECT_EQ(Differs(memory, 5), kCount);
  HAWSER_CU(cuMemFree(scratch));
  // Others can have it as before.
  OtherProcess other("CudaSharing.DISABLED_AddsToWhatItIsGiven");
  other.Send(handle);
  ASSERT_TRUE(other.AwaitWord());
  EXPECT_EQ(Differs(memory, 12), kCount);
  HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 100, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  other.SayWord();
  EXPECT_TRUE(other.Wait());
}

constexpr uint32_t kLarge = (5u << 18) + 77;  // Several pieces of 2 MiB, and a bit.

struct Three {
  CUipcMemHandle small[2];
  CUipcMemHandle large;
};

TEST_F(CudaSharing, DISABLED_LooksAtNeighboursAndAtLargeMemory) {
  const Talk starter = Starter();
  Three three;
  ASSERT_TRUE(starter.Receive(&three));
  const CUdeviceptr small[] = {Import(three.small[0]), Import(three.small[1])}, large = Import(three.large);
  EXPECT_NE(small[0], small[1]);
  EXPECT_EQ(Differs(small[0], 7), kCount);
  EXPECT_EQ(Differs(small[1], 8), kCount);
  HAWSER_CU(cuIpcCloseMemHandle(small[0]));
  EXPECT_EQ(Differs(small[1], 8), kCount) << "closing one leaves the other";
  HAWSER_CU(cuMemsetD32(small[1], 80, kCount));
  std::vector<uint32_t> back(kLarge);
  HAWSER_CU(cuMemcpyDtoH(back.data(), large, back.size() * 4));
  for (uint32_t i = 0; i < kLarge; ++i) ASSERT_EQ(back[i], i * 2654435761u) << i;
  HAWSER_CU(LaunchAdd(Function("add"), large, kLarge, 1, nullptr));
  HAWSER_CU(cuCtxSynchronize());
  HAWSER_CU(cuIpcCloseMemHandle(large));
}

TEST_F(CudaSharing, NeighboursAndLargeMemoryAreEachWhatTheyAre) {
  const CUdeviceptr small[] = {Allocate(7), Allocate(8)};
  std::vector<uint32_t> values(kLarge);
  for (uint32_t i = 0; i < kLarge; ++i) values[i] = i * 2654435761u;
  CUdeviceptr large = 0;
  HAWSER_CU(cuMemAlloc(&large, values.size() * 4));
  HAWSER_CU(cuMemcpyHtoD(large, values.data(), values.size() * 4));
  Three three;
  three.small[0] = Export(small[0]);
  three.small[1] = Export(small[1]);
  three.large = Export(large);
  {
    OtherProcess other("CudaSharing.DISABLED_LooksAtNeighboursAndAtLargeMemory");
    other.Send(three);
    EXPECT_TRUE(other.Wait());
  }
  EXPECT_EQ(Differs(small[0], 7), kCount);
  EXPECT_EQ(Differs(small[1], 80), kCount);
  std::vector<uint32_t> back(kLarge);
  HAWSER_CU(cuMemcpyDtoH(back.data(), large, back.size() * 4));
  for (uint32_t i = 0; i < kLarge; ++i) ASSERT_EQ(back[i], values[i] + 1) << i;
  for (const CUdeviceptr each : {small[0], small[1], large}) HAWSER_CU(cuMemFree(each));
}

TEST_F(CudaSharing, DISABLED_TriesStolenHandles) {
  Both both;
  ASSERT_TRUE(Starter().Receive(&both));
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuIpcOpenMemHandle(&memory, both.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_HANDLE);
  CUevent event = nullptr;
  EXPECT_EQ(cuIpcOpenEventHandle(&event, both.there), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(memory, 0u);
  EXPECT_EQ(event, nullptr);
}

// Needs a server with two tenants: run by tests of its own (cuda.cmake).
TEST_F(CudaSharing, DISABLED_AnotherTenantHasNoUseForATokenThatItStole) {
  const char* const token = std::getenv("HAWSER_TEST_OTHER_TOKEN");
  ASSERT_NE(token, nullptr);
  const CUdeviceptr memory = Allocate(5);
  CUevent event = nullptr;
  HAWSER_CU(cuEventCreate(&event, kShared));
  Both both{};
  both.memory = Export(memory);
  HAWSER_CU(cuIpcGetEventHandle(&both.there, event));
  {
    OtherProcess thief("CudaSharing.DISABLED_TriesStolenHandles", {{"HAWSER_TOKEN", token}});
    thief.Send(both);
    EXPECT_TRUE(thief.Wait());
  }
  // One of ours has.
  OtherProcess other("CudaSharing.DISABLED_AddsToWhatItIsGiven");
  other.Send(both.memory);
  ASSERT_TRUE(other.AwaitWord());
  EXPECT_EQ(Differs(memory, 12), kCount);
}

TEST_F(CudaSharing, DISABLED_HasRoomForAnAllocationOrForAnother) {
  CUipcMemHandle handle;
  ASSERT_TRUE(Starter().Receive(&handle));
  CUdeviceptr mine = 0, opened = 0;
  HAWSER_CU(cuMemAlloc(&mine, 40u << 20));
  EXPECT_EQ(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_OUT_OF_MEMORY);
  HAWSER_CU(cuMemFree(mine));
  HAWSER_CU(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT_EQ(cuMemAlloc(&mine, 40u << 20), CUDA_ERROR_OUT_OF_MEMORY);
  HAWSER_CU(cuIpcCloseMemHandle(opened));
  HAWSER_CU(cuMemAlloc(&mine, 40u << 20));
}

// Needs a server that gives a session 64 MiB: run by a test of its own (cuda.cmake).
TEST_F(CudaSharing, DISABLED_OpenedMemoryCountsAgainstTheLimit) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 40u << 20));
  OtherProcess other("CudaSharing.DISABLED_HasRoomForAnAllocationOrForAnother");
  other.Send(Export(memory));
  EXPECT_TRUE(other.Wait());
}

}  // namespace
}  // namespace hawser
