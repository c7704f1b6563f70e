// SPDX-License-Identifier: Apache-2.0
// Copies to the device of what something before them in their stream has yet to put into the host's memory.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/held_stream.h"

namespace hawser {
namespace {

/// How the program got the memory.
enum class Memory { kPinned, kRegistered };

class CudaLateWrites : public CudaTest,
                       public testing::WithParamInterface<std::tuple<Memory, uint32_t>>,
                       protected HeldStream {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    count_ = std::get<1>(GetParam());
    size_ = count_ * sizeof(uint32_t);
    if (std::get<0>(GetParam()) == Memory::kPinned) {
      HAWSER_CU(cuMemAllocHost(reinterpret_cast<void**>(&host_), size_));
    } else {
      pageable_.resize(count_);
      host_ = pageable_.data();
      HAWSER_CU(cuMemHostRegister(host_, size_, 0));
    }
    std::fill_n(host_, count_, 1u);
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&from_, size_));
    HAWSER_CU(cuMemAlloc(&to_, size_));
    HAWSER_CU(cuMemsetD32(from_, 7, count_));
    HAWSER_CU(cuMemsetD32(to_, 0, count_));
    HAWSER_CU(cuCtxSynchronize());
  }
  void TearDown() override {
    Go();
    if (host_ != nullptr && pageable_.empty()) (void)cuMemFreeHost(host_);
    if (!pageable_.empty()) (void)cuMemHostUnregister(host_);
    CudaTest::TearDown();
  }
  /// Puts `value` into the memory when the stream gets there.
  void Fill(CUstream stream, uint32_t value) {
    value_ = value;
    const auto fill = [](void* data) {
      auto* const test = static_cast<CudaLateWrites*>(data);
      std::fill_n(test->host_, test->count_, test->value_);
    };
    HAWSER_CU(cuLaunchHostFunc(stream, fill, this));
  }
  static void AddTen(void* data) {
    auto* const test = static_cast<CudaLateWrites*>(data);
    for (uint32_t i = 0; i < test->count_; ++i) test->host_[i] += 10;
  }
  void Expect(CUdeviceptr memory, uint32_t value, CUstream stream) {
    std::vector<uint32_t> found(count_);
    HAWSER_CU(cuMemcpyDtoHAsync(found.data(), memory, size_, stream));
    HAWSER_CU(cuStreamSynchronize(stream));
    EXPECT_EQ(found, std::vector<uint32_t>(count_, value));
  }

  uint32_t count_ = 0, value_ = 0;
  size_t size_ = 0;
  uint32_t* host_ = nullptr;
  std::vector<uint32_t> pageable_;
  CUstream stream_ = nullptr, other_ = nullptr;
  CUdeviceptr from_ = 0, to_ = 0;
};

TEST_P(CudaLateWrites, BehindACopyToTheHost) {
  Hold(stream_);
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  Go();
  Expect(to_, 7, stream_);
  EXPECT_EQ(std::vector<uint32_t>(host_, host_ + count_), std::vector<uint32_t>(count_, 7));
}

TEST_P(CudaLateWrites, BehindACopyThatIsUnderWay) {
  // Nothing holds the stream: how far it has come is its own affair.
  for (uint32_t round = 0; round < 20; ++round) {
    HAWSER_CU(cuMemsetD32Async(from_, round, count_, stream_));
    HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
    HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
    Expect(to_, round, stream_);
  }
}

TEST_P(CudaLateWrites, BehindACopyInAnotherStream) {
  CUevent copied = nullptr;
  HAWSER_CU(cuEventCreate(&copied, CU_EVENT_DISABLE_TIMING));
  Hold(other_);
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, other_));
  HAWSER_CU(cuEventRecord(copied, other_));
  HAWSER_CU(cuStreamWaitEvent(stream_, copied, 0));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  Go();
  Expect(to_, 7, stream_);
  HAWSER_CU(cuEventDestroy(copied));
}

TEST_P(CudaLateWrites, BehindACopyBeforeTheDefaultStream) {
  // Which comes after all in the one stream, and before all in the other.
  CUstream before = nullptr, behind = nullptr;
  CUdeviceptr something = 0;
  HAWSER_CU(cuStreamCreate(&before, CU_STREAM_DEFAULT));
  HAWSER_CU(cuStreamCreate(&behind, CU_STREAM_DEFAULT));
  HAWSER_CU(cuMemAlloc(&something, 4));
  for (uint32_t round = 0; round < 20; ++round) {
    HAWSER_CU(cuMemsetD32Async(from_, round, count_, before));
    HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, before));
    HAWSER_CU(cuMemsetD32Async(something, 0, 1, nullptr));
    HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, behind));
    Expect(to_, round, behind);
  }
  HAWSER_CU(cuMemFree(something));
}

TEST_P(CudaLateWrites, BehindAFunction) {
  Hold(stream_);
  Fill(stream_, 9);
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  HAWSER_CU(cuMemcpyHtoDAsync(from_, host_, size_, stream_));
  Go();
  Expect(to_, 9, stream_);
  Expect(from_, 9, stream_);
}

TEST_P(CudaLateWrites, OfRows) {
  Hold(stream_);
  Fill(stream_, 9);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host_;
  copy.srcPitch = size_ / 4;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to_;
  copy.dstPitch = size_ / 4;
  copy.WidthInBytes = size_ / 8;  // The left half of each.
  copy.Height = 4;
  HAWSER_CU(cuMemcpy2DAsync(&copy, stream_));
  Go();
  HAWSER_CU(cuStreamSynchronize(stream_));
  std::vector<uint32_t> found(count_), wanted(count_);
  for (uint32_t i = 0; i < count_; ++i) wanted[i] = i % (count_ / 4) < count_ / 8 ? 9 : 0;
  HAWSER_CU(cuMemcpyDtoH(found.data(), to_, size_));
  EXPECT_EQ(found, wanted);
}

TEST_P(CudaLateWrites, OfGraphs) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  Hold(stream_);
  Fill(stream_, 9);
  HAWSER_CU(cuGraphLaunch(executable, stream_));
  Go();
  Expect(to_, 9, stream_);
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_P(CudaLateWrites, OfGraphsBehindTheirLaunchInAnotherStream) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  Hold(stream_);
  HAWSER_CU(cuGraphLaunch(executable, stream_));
  HAWSER_CU(cuGraphLaunch(executable, other_));
  EXPECT_EQ(cuStreamQuery(other_), CUDA_ERROR_NOT_READY);
  Go();
  Expect(to_, 7, other_);
  // And in turns, as often as one likes.
  for (uint32_t round = 10; round < 30; ++round) {
    CUstream stream = round % 3 == 0 ? stream_ : other_;
    HAWSER_CU(cuMemsetD32Async(from_, round, count_, stream_));
    HAWSER_CU(cuGraphLaunch(executable, stream_));
    HAWSER_CU(cuGraphLaunch(executable, stream));
    Expect(to_, round, stream);
    EXPECT_EQ(std::vector<uint32_t>(host_, host_ + count_), std::vector<uint32_t>(count_, round));
  }
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_P(CudaLateWrites, OfGraphsFromOrdinaryMemory) {
  // What a node reads it reads when it is its turn, however the program got the memory.
  std::vector<uint32_t> ordinary(count_, 1);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = ordinary.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to_;
  copy.WidthInBytes = size_;
  copy.Height = copy.Depth = 1;
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context_));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  Hold(stream_);
  std::pair<uint32_t*, uint32_t> filled{ordinary.data(), count_};
  const auto fill = [](void* data) {
    const auto& [memory, count] = *static_cast<std::pair<uint32_t*, uint32_t>*>(data);
    std::fill_n(memory, count, 9u);
  };
  HAWSER_CU(cuLaunchHostFunc(stream_, fill, &filled));
  HAWSER_CU(cuGraphLaunch(executable, stream_));
  Go();
  Expect(to_, 9, stream_);
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_P(CudaLateWrites, ReadsIntoTheSameMemoryLandInTheirOrder) {
  // One travels within a reply, the other does not, in both orders.
  const uint32_t little = std::min<uint32_t>(count_, 250);
  HAWSER_CU(cuMemsetD32Async(to_, 9, count_, stream_));
  std::vector<uint32_t> expected(count_, 7);
  std::fill_n(expected.begin(), little, 9u);
  Hold(stream_);
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
  HAWSER_CU(cuMemcpyDtoHAsync(host_, to_, little * sizeof(uint32_t), stream_));
  Go();
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(std::vector<uint32_t>(host_, host_ + count_), expected);
  HAWSER_CU(cuMemcpyDtoHAsync(host_, to_, little * sizeof(uint32_t), stream_));
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
  // The reply is looked at when somebody waits; what came beside it has long been there.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(std::vector<uint32_t>(host_, host_ + count_), std::vector<uint32_t>(count_, 7));
}

TEST_P(CudaLateWrites, FunctionsOfGraphsStandBetweenTheirCopies) {
  // There and back by nodes, and once more by what comes behind the launch.
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
  HAWSER_CU(cuLaunchHostFunc(stream_, AddTen, this));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  CUdeviceptr behind = 0;
  HAWSER_CU(cuMemAlloc(&behind, size_));
  for (uint32_t round = 0; round < 3; ++round) {
    HAWSER_CU(cuMemsetD32Async(from_, round, count_, stream_));
    HAWSER_CU(cuGraphLaunch(executable, stream_));
    HAWSER_CU(cuMemcpyHtoDAsync(behind, host_, size_, stream_));
    Expect(to_, round + 10, stream_);
    Expect(behind, round + 10, stream_);
    EXPECT_EQ(std::vector<uint32_t>(host_, host_ + count_), std::vector<uint32_t>(count_, round + 10));
  }
  HAWSER_CU(cuMemFree(behind));
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_P(CudaLateWrites, FunctionsOfGraphsAreBehindCopiesBeforeTheGraph) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode node = nullptr;
  const CUDA_HOST_NODE_PARAMS call{AddTen, this};
  HAWSER_CU(cuGraphCreate(&graph, 0));
  HAWSER_CU(cuGraphAddHostNode(&node, graph, nullptr, 0, &call));
  HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
  for (uint32_t round = 0; round < 20; ++round) {
    HAWSER_CU(cuMemsetD32Async(from_, round, count_, stream_));
    HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
    HAWSER_CU(cuGraphLaunch(executable, stream_));
    HAWSER_CU(cuGraphLaunch(executable, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    ASSERT_EQ(std::vector<uint32_t>(host_, host_ + count_), std::vector<uint32_t>(count_, round + 20));
  }
  HAWSER_CU(cuGraphExecDestroy(executable));
  HAWSER_CU(cuGraphDestroy(graph));
}

TEST_P(CudaLateWrites, CopiesThatWaitAreLateToo) {
  // In the legacy stream, behind one that it waits for; pinned or not.
  CUstream blocking = nullptr;
  HAWSER_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Hold(blocking);
  Fill(blocking, 9);
  std::thread goes([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    Go();
  });
  const CUresult copied = cuMemcpyHtoD(to_, host_, size_);
  goes.join();
  HAWSER_CU(copied);
  Expect(to_, 9, stream_);
}

TEST_P(CudaLateWrites, AFunctionOfAnotherStreamDoesNotHoldThem) {
  Hold(other_);
  HAWSER_CU(cuMemcpyDtoHAsync(host_, from_, size_, stream_));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  auto waited = std::async(std::launch::async, [this] {
    const CUresult current = cuCtxSetCurrent(context_);
    return current != CUDA_SUCCESS ? current : cuStreamSynchronize(stream_);
  });
  const bool held = waited.wait_for(std::chrono::seconds(30)) != std::future_status::ready;
  Go();
  EXPECT_FALSE(held);
  HAWSER_CU(waited.get());
  Expect(to_, 7, stream_);
}

TEST_P(CudaLateWrites, MemoryIsFreedBehindThem) {
  Hold(stream_);
  Fill(stream_, 9);
  HAWSER_CU(cuMemcpyHtoDAsync(to_, host_, size_, stream_));
  std::thread goes([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    Go();
  });
  CUresult freed = CUDA_SUCCESS;
  if (pageable_.empty()) {
    freed = cuMemFreeHost(host_);
  } else {
    // Whoever unregisters memory has waited for what uses it.
    HAWSER_CU(cuStreamSynchronize(stream_));
    freed = cuMemHostUnregister(host_);
    pageable_.clear();
  }
  host_ = nullptr;
  goes.join();
  HAWSER_CU(freed);
  Expect(to_, 9, stream_);
}

INSTANTIATE_TEST_SUITE_P(All, CudaLateWrites,
                         testing::Combine(testing::Values(Memory::kPinned, Memory::kRegistered),
                                          testing::Values(64u, 1u << 20)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) == Memory::kPinned ? "Pinned" : "Registered") +
                                  std::to_string(std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace hawser
