// SPDX-License-Identifier: Apache-2.0
// Whoever ends a context finds its work done: functions have run, and data has come (CUDA driver API, "Context
// Management", cuCtxDestroy; "Primary Context Management").
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

enum class End : uint8_t { kDestroy, kReset, kRelease };

class CudaContextEnds : public CudaTest, public testing::WithParamInterface<End> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (GetParam() == End::kDestroy) HAWSER_CU(cuCtxCreate(&own_, nullptr, 0, device_));
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  CUresult EndIt() {
    switch (GetParam()) {
      case End::kDestroy:
        return cuCtxDestroy(own_);
      case End::kReset:
        return cuDevicePrimaryCtxReset(device_);
      default: {
        const CUresult result = cuDevicePrimaryCtxRelease(device_);
        context_ = nullptr;  // Nothing is left to end.
        return result;
      }
    }
  }
  static void CUDA_CB RunsLong(void* data) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    *static_cast<std::atomic<bool>*>(data) = true;
  }

  CUcontext own_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_P(CudaContextEnds, FunctionsHaveRun) {
  std::atomic<bool> first = false, second = false;
  HAWSER_CU(cuLaunchHostFunc(stream_, RunsLong, &first));
  HAWSER_CU(cuLaunchHostFunc(stream_, RunsLong, &second));
  HAWSER_CU(EndIt());
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST_P(CudaContextEnds, FunctionsOfGraphsHaveRun) {
  std::atomic<bool> done = false;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  const CUDA_HOST_NODE_PARAMS call{RunsLong, &done};
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddHostNode(&node, graph, nullptr, 0, &call));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  HAWSER_CU(cuGraphLaunch(executable, stream_));
  // The launch goes on without them.
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
  HAWSER_CU(EndIt());
  EXPECT_TRUE(done);
}

TEST_P(CudaContextEnds, DataHasCome) {
  constexpr uint32_t kCount = 4u << 20;
  std::vector<uint32_t> words(kCount);
  HAWSER_CU(cuMemHostRegister(words.data(), kCount * sizeof(uint32_t), 0));
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * sizeof(uint32_t)));
  HAWSER_CU(cuMemsetD32Async(memory, 7, kCount, stream_));
  HAWSER_CU(cuMemcpyDtoHAsync(words.data(), memory, kCount * sizeof(uint32_t), stream_));
  HAWSER_CU(EndIt());
  EXPECT_EQ(words, std::vector<uint32_t>(kCount, 7u));
}

TEST_P(CudaContextEnds, KernelsHavePrinted) {
  constexpr char kText[] = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[7] = {104, 101, 108, 108, 111, 10, 0};

.visible .entry say()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  mov.u64 %rd1, text;
  cvta.global.u64 %rd2, %rd1;
  mov.u64 %rd3, 0;
  {
  .param .b64 format;
  st.param.b64 [format], %rd2;
  .param .b64 values;
  st.param.b64 [values], %rd3;
  .param .b32 printed;
  call.uni (printed), vprintf, (format, values);
  ld.param.b32 %r1, [printed];
  }
  ret;
}
)";
  CUmodule module = nullptr;
  CUfunction say = nullptr;
  HAWSER_CU(cuModuleLoadData(&module, kText));
  HAWSER_CU(cuModuleGetFunction(&say, module, "say"));
  testing::internal::CaptureStdout();
  const CUresult launched = cuLaunchKernel(say, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr);
  const CUresult ended = EndIt();
  (void)std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello\n");
  EXPECT_EQ(launched, CUDA_SUCCESS);
  EXPECT_EQ(ended, CUDA_SUCCESS);
}

std::string NameOf(const testing::TestParamInfo<End>& end) {
  switch (end.param) {
    case End::kDestroy:
      return "Destroy";
    case End::kReset:
      return "Reset";
    default:
      return "Release";
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaContextEnds, testing::Values(End::kDestroy, End::kReset, End::kRelease), NameOf);

}  // namespace
}  // namespace hawser
