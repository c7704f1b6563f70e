// SPDX-License-Identifier: Apache-2.0
// What may not be done while streams are captured: said by the very call, and what it does to the capture
// (CUDA driver API, "Stream Management", and its CUDA_ERROR_STREAM_CAPTURE_*).
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

class CudaCaptures : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&blocking_, CU_STREAM_DEFAULT));
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    HAWSER_CU(cuMemAlloc(&memory_, sizeof(uint32_t)));
  }
  void Begin(CUstream stream) { HAWSER_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)); }
  /// Ends it. Success: with a graph, which is destroyed.
  static CUresult End(CUstream stream) {
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(stream, &graph);
    EXPECT_EQ(graph != nullptr, result == CUDA_SUCCESS);
    if (graph != nullptr) {
      EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    }
    return result;
  }
  CUresult Fill(CUstream stream) { return cuMemsetD32Async(memory_, 1, 1, stream); }

  CUstream blocking_ = nullptr;
  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(CudaCaptures, TheLegacyStreamIsBarredByBlockingStreams) {
  uint32_t word = 0;
  const std::vector<std::function<CUresult()>> uses = {
      [&] { return Fill(nullptr); },
      [&] { return cuMemsetD32(memory_, 1, 1); },
      [&] { return cuMemcpyDtoH(&word, memory_, sizeof(word)); },
      [&] { return cuEventRecord(event_, nullptr); },
      [&] { return cuStreamQuery(nullptr); },
      [&] { return cuStreamSynchronize(nullptr); },
  };
  for (const auto& use : uses) {
    Begin(blocking_);
    EXPECT_EQ(use(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(End(blocking_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    const CUresult free = use();
    EXPECT_TRUE(free == CUDA_SUCCESS || free == CUDA_ERROR_NOT_READY) << free;
  }
}

TEST_F(CudaCaptures, AskingAboutTheLegacyStreamHarmsNone) {
  CUstreamCaptureStatus status{};
  unsigned flags = 0;
  Begin(blocking_);
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  HAWSER_CU(cuStreamGetFlags(nullptr, &flags));
  EXPECT_EQ(End(blocking_), CUDA_SUCCESS);
  HAWSER_CU(cuStreamIsCapturing(nullptr, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(CudaCaptures, TheLegacyStreamIsFreeBesideNonBlockingStreams) {
  uint32_t word = 0;
  CUstreamCaptureStatus status{};
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  HAWSER_CU(Fill(nullptr));
  HAWSER_CU(cuStreamSynchronize(nullptr));
  HAWSER_CU(cuMemcpyDtoH(&word, memory_, sizeof(word)));
  EXPECT_EQ(word, 1u);
  HAWSER_CU(cuStreamIsCapturing(nullptr, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
}

TEST_F(CudaCaptures, EndingWhereItDidNotBeginBreaksIt) {
  Begin(stream_);
  EXPECT_EQ(End(other_), CUDA_ERROR_ILLEGAL_STATE);
  HAWSER_CU(cuEventRecord(event_, stream_));
  HAWSER_CU(cuStreamWaitEvent(other_, event_, 0));
  HAWSER_CU(Fill(other_));
  EXPECT_EQ(End(other_), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  HAWSER_CU(cuStreamSynchronize(stream_));
  HAWSER_CU(cuStreamSynchronize(other_));
}

TEST_F(CudaCaptures, NothingMoreIsCapturedByABrokenOne) {
  Begin(stream_);
  HAWSER_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(Fill(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  HAWSER_CU(Fill(other_));
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  HAWSER_CU(Fill(stream_));
}

TEST_F(CudaCaptures, WhatMayWaitForTheDeviceIsRefusedInGlobalMode) {
  static const char kModule[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
  CUdeviceptr memory = 0;
  void* host = nullptr;
  CUmodule module = nullptr, loaded = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR descriptor{8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  HAWSER_CU(cuModuleLoadData(&loaded, kModule));
  const std::vector<std::function<CUresult()>> calls = {
      [&] { return cuMemAlloc(&memory, 64); },
      [&] { return cuMemHostAlloc(&host, 64, 0); },
      [&] { return cuModuleLoadData(&module, kModule); },
      [&] { return cuModuleUnload(loaded); },
      [&] { return cuArrayCreate(&array, &descriptor); },
      [&] { return cuCtxSynchronize(); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(calls[i](), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << i;
    EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << i;
  }
  // A relaxed one does not mind, but for waiting.
  Begin(stream_);
  for (size_t i = 0; i + 1 < calls.size(); ++i) EXPECT_EQ(calls[i](), CUDA_SUCCESS) << i;
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
  HAWSER_CU(cuMemFree(memory));
  HAWSER_CU(cuMemFreeHost(host));
  HAWSER_CU(cuModuleUnload(module));
  HAWSER_CU(cuArrayDestroy(array));
}

// A server has one thread where the program has many: what one of them may do must not end what another one captures.
TEST_F(CudaCaptures, OfAnotherThreadARelaxedOneMayDoAll) {
  for (const CUstreamCaptureMode capture : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    HAWSER_CU(cuStreamBeginCapture(stream_, capture));
    HAWSER_CU(Fill(stream_));
    CUcontext context = nullptr;
    HAWSER_CU(cuCtxGetCurrent(&context));
    std::thread other([&] {
      HAWSER_CU(cuCtxSetCurrent(context));
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      HAWSER_CU(cuThreadExchangeStreamCaptureMode(&mode));
      CUdeviceptr memory = 0;
      uint32_t word = 0;
      std::vector<uint32_t> many(100'000, 7);
      HAWSER_CU(cuMemAlloc(&memory, many.size() * sizeof(uint32_t)));
      HAWSER_CU(cuMemcpyHtoDAsync(memory, many.data(), many.size() * sizeof(uint32_t), other_));
      HAWSER_CU(cuEventRecord(event_, other_));
      while (cuEventQuery(event_) == CUDA_ERROR_NOT_READY) {
      }
      HAWSER_CU(cuMemcpyDtoHAsync(&word, memory + 4, sizeof(word), other_));
      HAWSER_CU(cuStreamSynchronize(other_));
      EXPECT_EQ(word, 7u);
      HAWSER_CU(cuMemFree(memory));
    });
    other.join();
    EXPECT_EQ(End(stream_), CUDA_SUCCESS) << capture;
  }
}

// Memory that was freed may still wait for the device when a capture begins.
TEST_F(CudaCaptures, WhatWasFreedBeforeDoesNotEndThem) {
  for (int i = 0; i < 30; ++i) {
    CUdeviceptr memory = 0;
    constexpr size_t kSize = 4u << 20;
    HAWSER_CU(cuMemAlloc(&memory, kSize));
    HAWSER_CU(cuMemsetD8Async(memory, 1, kSize, other_));
    HAWSER_CU(cuMemFree(memory));
    HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    HAWSER_CU(Fill(stream_));
    ASSERT_EQ(End(stream_), CUDA_SUCCESS) << i;
    // What is freed within one goes afterwards.
    Begin(stream_);
    HAWSER_CU(cuMemAlloc(&memory, kSize));
    HAWSER_CU(cuMemFree(memory));
    HAWSER_CU(Fill(stream_));
    ASSERT_EQ(End(stream_), CUDA_SUCCESS) << i;
  }
}

TEST_F(CudaCaptures, WhatIsOutsideIsNotWaitedFor) {
  HAWSER_CU(cuEventRecord(event_, other_));
  Begin(stream_);
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// "As if the record had completed" (cuStreamWaitEvent): there is nothing outside that it would depend on.
TEST_F(CudaCaptures, EventsThatWereNeverRecordedAreNothingToWaitFor) {
  Begin(stream_);
  HAWSER_CU(cuStreamWaitEvent(stream_, event_, 0));
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
}

TEST_F(CudaCaptures, ExternalWaitsAreNodesAlsoForEventsThatWereNeverRecorded) {
  CUgraph graph = nullptr;
  size_t nodes = 0;
  Begin(stream_);
  HAWSER_CU(cuStreamWaitEvent(stream_, event_, CU_EVENT_WAIT_EXTERNAL));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  HAWSER_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 1u);
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_F(CudaCaptures, TwoDoNotBecomeOne) {
  Begin(stream_);
  Begin(other_);
  HAWSER_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(End(other_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CudaCaptures, TheirEventsStandForNothingAfterwards) {
  Begin(stream_);
  HAWSER_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_CAPTURED_EVENT);
  HAWSER_CU(cuEventRecord(event_, other_));
  HAWSER_CU(cuStreamWaitEvent(stream_, event_, 0));
  HAWSER_CU(cuStreamSynchronize(stream_));
}

TEST_F(CudaCaptures, TheLegacyStreamDoesNotJoin) {
  Begin(stream_);
  HAWSER_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event_, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace
}  // namespace hawser
