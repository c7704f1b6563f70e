// SPDX-License-Identifier: Apache-2.0
// Copies and functions of graphs that are changed afterwards, again and again: in the graph, in an executable graph
// alone, whoever made the node.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

class CudaGraphChanges : public CudaTest {
 protected:
  static constexpr uint32_t kCount = 1024;
  static constexpr size_t kBytes = kCount * sizeof(uint32_t);
  using Words = std::vector<uint32_t>;

  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&from_, kBytes));
    HAWSER_CU(cuMemAlloc(&to_, kBytes));
    HAWSER_CU(cuMemsetD32Async(from_, 7, kCount, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    HAWSER_CU(cuGraphCreate(&graph_, 0));
  }
  void TearDown() override {
    if (executable_ != nullptr) HAWSER_CU(cuGraphExecDestroy(executable_));
    HAWSER_CU(cuGraphDestroy(graph_));
    CudaTest::TearDown();
  }
  CUDA_MEMCPY3D ToHost(Words& words, uint32_t count = kCount) const {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from_;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = words.data();
    copy.WidthInBytes = count * sizeof(uint32_t);
    copy.Height = copy.Depth = 1;
    return copy;
  }
  CUDA_MEMCPY3D ToDevice(const Words& words) const {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = words.data();
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to_;
    copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    return copy;
  }
  CUgraphNode Add(const CUDA_MEMCPY3D& copy, CUgraphNode behind = nullptr) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph_, &behind, behind != nullptr ? 1 : 0, &copy, context_), CUDA_SUCCESS);
    return node;
  }
  CUgraphNode Add(CUhostFn function, Words& words, CUgraphNode behind) {
    CUgraphNode node = nullptr;
    const CUDA_HOST_NODE_PARAMS call{function, &words};
    EXPECT_EQ(cuGraphAddHostNode(&node, graph_, &behind, 1, &call), CUDA_SUCCESS);
    return node;
  }
  void MakeGraphOf(const CUDA_MEMCPY3D& copy, CUgraph* graph) const {
    CUgraphNode node = nullptr;
    HAWSER_CU(cuGraphCreate(graph, 0));
    HAWSER_CU(cuGraphAddMemcpyNode(&node, *graph, nullptr, 0, &copy, context_));
  }
  static bool ThroughServer() { return std::getenv("HAWSER_TEST_SERVER_PID") != nullptr; }
  /// Waits until there is a one.
  CUgraphNode AddGate(CUdeviceptr word) {
    CUstreamBatchMemOpParams wait{};
    wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait.waitValue.address = word, wait.waitValue.value = 1, wait.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
    batch.ctx = context_, batch.count = 1, batch.paramArray = &wait;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddBatchMemOpNode(&node, graph_, nullptr, 0, &batch), CUDA_SUCCESS);
    return node;
  }
  void Instantiate() { HAWSER_CU(cuGraphInstantiate(&executable_, graph_, 0)); }
  void Change(CUgraphNode node, const CUDA_MEMCPY3D& copy) {
    HAWSER_CU(cuGraphExecMemcpyNodeSetParams(executable_, node, &copy, context_));
  }
  /// A graph in which the executable one is launched.
  CUgraph CapturedLaunch() {
    CUgraph outer = nullptr;
    EXPECT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphLaunch(executable_, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamEndCapture(stream_, &outer), CUDA_SUCCESS);
    return outer;
  }
  void Launch() {
    HAWSER_CU(cuGraphLaunch(executable_, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
  }
  Words OnDevice() {
    Words found(kCount);
    EXPECT_EQ(cuMemcpyDtoHAsync(found.data(), to_, kBytes, stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    return found;
  }
  static void AddTen(void* data) {
    for (uint32_t& word : *static_cast<Words*>(data)) word += 10;
  }
  static void AddHundred(void* data) {
    for (uint32_t& word : *static_cast<Words*>(data)) word += 100;
  }

  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  CUdeviceptr from_ = 0, to_ = 0;
  const Words ones_ = Words(kCount, 1), sevens_ = Words(kCount, 7);
};

TEST_F(CudaGraphChanges, MemoryThatACopyNoLongerWritesIsTheProgramsAgain) {
  Words first = ones_, second = ones_, third = ones_;
  const CUgraphNode node = Add(ToHost(first));
  Instantiate();
  Launch();
  EXPECT_EQ(first, sevens_);
  Change(node, ToHost(second));
  Launch();
  EXPECT_EQ(second, sevens_);
  first = second = ones_;
  Change(node, ToHost(third));
  Launch();
  EXPECT_EQ(first, ones_);
  EXPECT_EQ(second, ones_);
  EXPECT_EQ(third, sevens_);
}

TEST_F(CudaGraphChanges, OfCopiesThatWereCaptured) {
  Words first = ones_, second = ones_, third = ones_;
  HAWSER_CU(cuGraphDestroy(graph_));
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuMemcpyDtoHAsync(first.data(), from_, kBytes, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph_));
  CUgraphNode node = nullptr;
  size_t count = 1;
  HAWSER_CU(cuGraphGetNodes(graph_, &node, &count));
  ASSERT_EQ(count, 1u);
  Instantiate();
  Change(node, ToHost(second));
  Launch();
  EXPECT_EQ(first, ones_);
  EXPECT_EQ(second, sevens_);
  // And of the graph itself, for those that are instantiated from now on.
  const CUDA_MEMCPY3D copy = ToHost(third);
  HAWSER_CU(cuGraphMemcpyNodeSetParams(node, &copy));
  HAWSER_CU(cuGraphExecDestroy(executable_));
  Instantiate();
  second = ones_;
  Launch();
  EXPECT_EQ(first, ones_);
  EXPECT_EQ(second, ones_);
  EXPECT_EQ(third, sevens_);
}

TEST_F(CudaGraphChanges, TheLaterOfTwoCopiesIntoTheSameMemoryStaysTheLater) {
  Words words = ones_, other = ones_;
  CUdeviceptr nines = 0;
  HAWSER_CU(cuMemAlloc(&nines, kBytes));
  HAWSER_CU(cuMemsetD32Async(nines, 9, kCount, stream_));
  const CUgraphNode first = Add(ToHost(words));
  CUDA_MEMCPY3D later = ToHost(words, kCount / 2);
  later.srcDevice = nines;
  Add(later, first);
  Instantiate();
  Words expected = sevens_;
  std::fill_n(expected.begin(), kCount / 2, 9u);
  for (int round = 0; round < 3; ++round) {
    Change(first, round == 1 ? ToHost(other) : ToHost(words));
    words = ones_;
    Launch();
    if (round == 1) {
      std::fill_n(words.begin() + kCount / 2, kCount / 2, 7u);
      EXPECT_EQ(other, sevens_);
    }
    EXPECT_EQ(words, expected);
  }
  HAWSER_CU(cuMemFree(nines));
}

TEST_F(CudaGraphChanges, LaunchesThatWereMadeBeforeDoNotSeeThem) {
  Words words = ones_, other = ones_;
  const CUgraphNode brought = Add(ToHost(words));
  const CUgraphNode call = Add(AddTen, words, brought);
  const CUgraphNode taken = Add(ToDevice(words), call);
  Instantiate();
  const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  HAWSER_CU(cuLaunchHostFunc(stream_, wait, nullptr));
  HAWSER_CU(cuGraphLaunch(executable_, stream_));
  Change(brought, ToHost(other));
  Change(taken, ToDevice(other));
  EXPECT_EQ(OnDevice(), Words(kCount, 17));
  EXPECT_EQ(words, Words(kCount, 17));
  EXPECT_EQ(other, ones_);
}

TEST_F(CudaGraphChanges, ACopyThatIsNotEnabledLeavesMemoryAlone) {
  Words words = ones_, other = ones_;
  const CUgraphNode first = Add(ToHost(words));
  const CUgraphNode call = Add(AddTen, other, first);
  Add(ToHost(other), call);
  Instantiate();
  Launch();
  for (const bool enabled : {false, true}) {
    HAWSER_CU(cuGraphNodeSetEnabled(executable_, first, enabled ? 1 : 0));
    words = other = ones_;
    Launch();
    EXPECT_EQ(words, enabled ? sevens_ : ones_);
    EXPECT_EQ(other, sevens_);
  }
}

TEST_F(CudaGraphChanges, OneOfSeveralFunctionsBehindACopyFetchesIt) {
  // They are in no order, so each may be the first; what it does is not undone by the other one's fetching.
  Words words = ones_, other = ones_;
  const CUgraphNode brought = Add(ToHost(words));
  Add(AddTen, words, brought);
  Add(AddTen, other, brought);
  Add(AddHundred, words, brought);
  Instantiate();
  for (uint32_t round = 1; round < 5; ++round) {
    words = ones_;
    Launch();
    EXPECT_EQ(words, Words(kCount, 117));
    EXPECT_EQ(other, Words(kCount, 1 + 10 * round));
  }
}

TEST_F(CudaGraphChanges, ANewFunctionStandsBetweenTheCopiesToo) {
  Words words = ones_;
  const CUgraphNode brought = Add(ToHost(words));
  const CUgraphNode call = Add(AddTen, words, brought);
  Add(ToDevice(words), call);
  Instantiate();
  Launch();
  EXPECT_EQ(OnDevice(), Words(kCount, 17));
  const CUDA_HOST_NODE_PARAMS other{AddHundred, &words};
  for (int round = 0; round < 2; ++round) {
    HAWSER_CU(cuGraphExecHostNodeSetParams(executable_, call, &other));
    Launch();
    EXPECT_EQ(OnDevice(), Words(kCount, 107));
    EXPECT_EQ(words, Words(kCount, 107));
  }
}

TEST_F(CudaGraphChanges, AFunctionFindsWhatAChangedCopyBrings) {
  Words words = ones_, other = ones_;
  const CUgraphNode brought = Add(ToHost(words));
  const CUgraphNode call = Add(AddTen, other, brought);
  const CUgraphNode taken = Add(ToDevice(words), call);
  Instantiate();
  Launch();
  EXPECT_EQ(OnDevice(), sevens_);
  for (int round = 0; round < 2; ++round) {
    Change(brought, ToHost(other));
    Change(taken, ToDevice(other));
    other = words = ones_;
    Launch();
    EXPECT_EQ(OnDevice(), Words(kCount, 17));
    EXPECT_EQ(other, Words(kCount, 17));
    EXPECT_EQ(words, ones_);
  }
}

TEST_F(CudaGraphChanges, ACopyThatRunsOutlivesItsGraph) {
  CUdeviceptr word = 0, other = 0;
  HAWSER_CU(cuMemAlloc(&word, sizeof(uint32_t)));
  HAWSER_CU(cuMemAlloc(&other, kBytes));
  HAWSER_CU(cuMemsetD32(word, 0, 1));
  (void)Add(ToDevice(ones_), AddGate(word));
  Instantiate();
  HAWSER_CU(cuGraphLaunch(executable_, stream_));
  // It is under way, and waits.
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  HAWSER_CU(cuGraphExecDestroy(executable_));
  HAWSER_CU(cuGraphDestroy(graph_));

  HAWSER_CU(cuGraphCreate(&graph_, 0));
  CUDA_MEMCPY3D copy = ToDevice(sevens_);
  copy.dstDevice = other;
  (void)Add(copy);
  Instantiate();
  CUstream second = nullptr;
  HAWSER_CU(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuGraphLaunch(executable_, second));
  HAWSER_CU(cuStreamSynchronize(second));
  HAWSER_CU(cuStreamWriteValue32(second, word, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(OnDevice(), ones_);
  HAWSER_CU(cuStreamDestroy(second));
  HAWSER_CU(cuMemFree(other));
  HAWSER_CU(cuMemFree(word));
}

TEST_F(CudaGraphChanges, ALaunchThatIsCapturedTakesItsCopiesAlong) {
  Words words = ones_;
  (void)Add(ToDevice(words), Add(AddTen, words, Add(ToHost(words))));
  Instantiate();
  CUgraphExec outer_executable = nullptr;
  const CUgraph outer = CapturedLaunch();
  HAWSER_CU(cuGraphInstantiate(&outer_executable, outer, 0));
  for (int round = 0; round < 2; ++round) {
    words = ones_;
    HAWSER_CU(cuGraphLaunch(outer_executable, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    EXPECT_EQ(words, Words(kCount, 17));
    EXPECT_EQ(OnDevice(), Words(kCount, 17));
  }
  HAWSER_CU(cuGraphExecDestroy(outer_executable));
  HAWSER_CU(cuGraphDestroy(outer));
}

TEST_F(CudaGraphChanges, LaterOnesAreNotForALaunchThatWasCaptured) {
  const CUgraphNode node = Add(ToDevice(ones_));
  Instantiate();
  CUgraphExec outer_executable = nullptr;
  const CUgraph outer = CapturedLaunch();
  Change(node, ToDevice(sevens_));
  HAWSER_CU(cuGraphInstantiate(&outer_executable, outer, 0));
  HAWSER_CU(cuGraphLaunch(outer_executable, stream_));
  EXPECT_EQ(OnDevice(), ones_);
  Launch();
  EXPECT_EQ(OnDevice(), sevens_);
  HAWSER_CU(cuGraphExecDestroy(outer_executable));
  HAWSER_CU(cuGraphDestroy(outer));
}

TEST_F(CudaGraphChanges, AGraphInsideOfAChildKeepsItsCopiesAndFunctions) {
  Words words = ones_;
  (void)Add(ToDevice(words), Add(AddTen, words, Add(ToHost(words))));
  CUgraph middle = nullptr;
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphCreate(&middle, 0));
  HAWSER_CU(cuGraphAddChildGraphNode(&node, middle, nullptr, 0, graph_));
  HAWSER_CU(cuGraphDestroy(graph_));
  HAWSER_CU(cuGraphCreate(&graph_, 0));
  HAWSER_CU(cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, middle));
  HAWSER_CU(cuGraphDestroy(middle));
  Instantiate();
  for (int round = 0; round < 2; ++round) {
    words = ones_;
    Launch();
    EXPECT_EQ(words, Words(kCount, 17));
    EXPECT_EQ(OnDevice(), Words(kCount, 17));
  }
}

TEST_F(CudaGraphChanges, ACopyWithinTheHostIsCapturedToo) {
  Words first = ones_, second = ones_;
  HAWSER_CU(cuGraphDestroy(graph_));
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuMemcpyDtoHAsync(first.data(), from_, kBytes, stream_));
  HAWSER_CU(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(second.data()), reinterpret_cast<CUdeviceptr>(first.data()),
                          kBytes, stream_));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, second.data(), kBytes, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph_));
  EXPECT_EQ(second, ones_);
  Instantiate();
  for (int round = 0; round < 2; ++round) {
    first = second = ones_;
    Launch();
    EXPECT_EQ(first, sevens_);
    EXPECT_EQ(second, sevens_);
    EXPECT_EQ(OnDevice(), sevens_);
  }
}

TEST_F(CudaGraphChanges, ACopyTakesWhatAnotherOneBrought) {
  Words words = ones_;
  (void)Add(ToDevice(words), Add(ToHost(words)));
  Instantiate();
  for (int round = 0; round < 2; ++round) {
    words = ones_;
    Launch();
    EXPECT_EQ(words, sevens_);
    EXPECT_EQ(OnDevice(), sevens_);
  }
}

TEST_F(CudaGraphChanges, ACopyWhoseOrderFollows) {
  Words words = ones_;
  const CUgraphNode brings = Add(ToHost(words)), takes = Add(ToDevice(words));
  CUgraphNode between = nullptr;
  HAWSER_CU(cuGraphAddEmptyNode(&between, graph_, nullptr, 0));
  const CUgraphNode from[] = {brings, between}, to[] = {between, takes};
  HAWSER_CU(cuGraphAddDependencies(graph_, from, to, nullptr, 2));
  for (const bool of_clone : {true, false}) {
    CUgraph clone = nullptr;
    HAWSER_CU(cuGraphClone(&clone, graph_));
    HAWSER_CU(cuGraphInstantiate(&executable_, of_clone ? clone : graph_, 0));
    for (int round = 0; round < 2; ++round) {
      words = ones_;
      Launch();
      EXPECT_EQ(words, sevens_);
      EXPECT_EQ(OnDevice(), sevens_) << (of_clone ? "of the clone" : "of the graph");
    }
    // An update asks for the same.
    HAWSER_CU(cuMemsetD32(to_, 1, kCount));
    CUgraphExecUpdateResultInfo info{};
    HAWSER_CU(cuGraphExecUpdate(executable_, of_clone ? clone : graph_, &info));
    words = ones_;
    Launch();
    EXPECT_EQ(OnDevice(), sevens_);
    HAWSER_CU(cuGraphExecDestroy(std::exchange(executable_, nullptr)));
    HAWSER_CU(cuGraphDestroy(clone));
  }
}

TEST_F(CudaGraphChanges, ACopyWhoseMemoryFollows) {
  Words words = ones_, others = ones_;
  const CUgraphNode takes = Add(ToDevice(others), Add(ToHost(words)));
  const CUDA_MEMCPY3D changed = ToDevice(words);
  HAWSER_CU(cuGraphMemcpyNodeSetParams(takes, &changed));
  Instantiate();
  Launch();
  EXPECT_EQ(OnDevice(), sevens_);
}

TEST_F(CudaGraphChanges, ACopyInAChildGraph) {
  Words words = ones_;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  MakeGraphOf(ToDevice(words), &child);
  const CUgraphNode brings = Add(ToHost(words));
  HAWSER_CU(cuGraphAddChildGraphNode(&node, graph_, &brings, 1, child));
  HAWSER_CU(cuGraphDestroy(child));
  Instantiate();
  Launch();
  EXPECT_EQ(words, sevens_);
  EXPECT_EQ(OnDevice(), sevens_);
}

TEST_F(CudaGraphChanges, FunctionsKnowForWhichOfTwoExecutablesTheyRun) {
  // Made of one graph, one of them changed: the function finds what the copy before it has brought, wherever that is.
  struct Both {
    Words* words;
    Words* others;
    std::vector<std::pair<uint32_t, uint32_t>> seen;
  };
  Words words = ones_, others = ones_;
  Both both{&words, &others, {}};
  const CUgraphNode copy = Add(ToHost(words));
  CUgraphNode node = nullptr;
  const CUDA_HOST_NODE_PARAMS look{[](void* data) {
                                     Both& look_at = *static_cast<Both*>(data);
                                     look_at.seen.emplace_back(look_at.words->front(), look_at.others->front());
                                   },
                                   &both};
  HAWSER_CU(cuGraphAddHostNode(&node, graph_, &copy, 1, &look));
  CUgraphExec changed = nullptr;
  Instantiate();
  HAWSER_CU(cuGraphInstantiate(&changed, graph_, 0));
  const CUDA_MEMCPY3D elsewhere = ToHost(others);
  HAWSER_CU(cuGraphExecMemcpyNodeSetParams(changed, copy, &elsewhere, context_));
  std::vector<std::pair<uint32_t, uint32_t>> expected;
  uint32_t value = 10;
  for (const bool other : {true, false, false, true, false, true, true}) {
    HAWSER_CU(cuMemsetD32Async(from_, ++value, kCount, stream_));
    HAWSER_CU(cuGraphLaunch(other ? changed : executable_, stream_));
    const auto before = expected.empty() ? std::pair<uint32_t, uint32_t>(1, 1) : expected.back();
    expected.emplace_back(other ? before.first : value, other ? value : before.second);
  }
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(both.seen, expected);
  EXPECT_EQ(words.back(), expected.back().first);
  EXPECT_EQ(others.back(), expected.back().second);
  HAWSER_CU(cuGraphExecDestroy(changed));
}

TEST_F(CudaGraphChanges, FunctionsOfTwoGraphsFindWhatTheSameChildBrought) {
  struct Seen {
    Words* words;
    uint32_t value;
  };
  Words words = ones_;
  CUgraph child = nullptr;
  MakeGraphOf(ToHost(words), &child);
  Seen seen[2] = {{&words, 0}, {&words, 0}};
  CUgraph graphs[2] = {};
  CUgraphExec executables[2] = {};
  for (int i = 0; i < 2; ++i) {
    HAWSER_CU(cuGraphCreate(&graphs[i], 0));
    CUgraphNode brings = nullptr, looks = nullptr;
    HAWSER_CU(cuGraphAddChildGraphNode(&brings, graphs[i], nullptr, 0, child));
    const CUDA_HOST_NODE_PARAMS look{
        [](void* data) { static_cast<Seen*>(data)->value = static_cast<Seen*>(data)->words->front(); }, &seen[i]};
    HAWSER_CU(cuGraphAddHostNode(&looks, graphs[i], &brings, 1, &look));
    HAWSER_CU(cuGraphInstantiate(&executables[i], graphs[i], 0));
  }
  for (uint32_t round = 0; round < 6; ++round) {
    const uint32_t i = round % 3 == 0 ? 0 : 1;
    HAWSER_CU(cuMemsetD32Async(from_, 20 + round, kCount, stream_));
    HAWSER_CU(cuGraphLaunch(executables[i], stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    EXPECT_EQ(seen[i].value, 20 + round) << "round " << round;
  }
  for (int i = 0; i < 2; ++i) {
    HAWSER_CU(cuGraphExecDestroy(executables[i]));
    HAWSER_CU(cuGraphDestroy(graphs[i]));
  }
  HAWSER_CU(cuGraphDestroy(child));
}

TEST_F(CudaGraphChanges, ACopyInAChildGraphWhoseOrderFollows) {
  Words words = ones_;
  CUgraph child = nullptr;
  CUgraphNode node = nullptr;
  MakeGraphOf(ToDevice(words), &child);
  HAWSER_CU(cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child));
  const CUgraphNode brings = Add(ToHost(words));
  HAWSER_CU(cuGraphAddDependencies(graph_, &brings, &node, nullptr, 1));
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  const CUresult made = cuGraphInstantiateWithParams(&executable_, graph_, &how);
  if (ThroughServer()) {  // docs/differences.md: never older data, in silence.
    EXPECT_EQ(made, CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(how.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
    HAWSER_CU(cuGraphRemoveDependencies(graph_, &brings, &node, nullptr, 1));
    Instantiate();
    return;
  }
  ASSERT_EQ(made, CUDA_SUCCESS);
  Launch();
  EXPECT_EQ(OnDevice(), sevens_);
}

TEST_F(CudaGraphChanges, WhatTheLaterCopyBringsStaysWhereTheirOrderFollows) {
  Words words = ones_;
  HAWSER_CU(cuMemsetD32(to_, 9, kCount));
  CUDA_MEMCPY3D last = ToHost(words, kCount / 2);
  last.srcDevice = to_;
  const CUgraphNode later = Add(last), first = Add(ToHost(words));
  HAWSER_CU(cuGraphAddDependencies(graph_, &first, &later, nullptr, 1));
  for (const bool function : {false, true}) {
    if (function) {
      // The function fetches in that order too.
      CUgraph graph = nullptr;
      HAWSER_CU(cuGraphClone(&graph, graph_));
      HAWSER_CU(cuGraphDestroy(std::exchange(graph_, graph)));
      CUgraphNode node = nullptr;
      size_t count = 2;
      CUgraphNode nodes[2] = {};
      HAWSER_CU(cuGraphGetNodes(graph_, nodes, &count));
      const CUDA_HOST_NODE_PARAMS call{[](void*) {}, nullptr};
      HAWSER_CU(cuGraphAddHostNode(&node, graph_, nodes, count, &call));
    }
    words = ones_;
    Instantiate();
    Launch();
    EXPECT_EQ(std::count(words.begin(), words.end(), 9u), kCount / 2);
    EXPECT_EQ(std::count(words.begin(), words.end(), 7u), kCount / 2);
    HAWSER_CU(cuGraphExecDestroy(std::exchange(executable_, nullptr)));
  }
}

TEST_F(CudaGraphChanges, MemoryThatIsTakenFirstNeedsNothingBetween) {
  // Worked on in place: what would hand over would be a wait in each launch.
  Words words = ones_;
  const CUgraphNode takes = Add(ToDevice(words)), brings = Add(ToHost(words));
  HAWSER_CU(cuGraphAddDependencies(graph_, &takes, &brings, nullptr, 1));
  Instantiate();
  size_t count = 0;
  HAWSER_CU(cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 2u);
  Launch();
  EXPECT_EQ(OnDevice(), ones_);
  EXPECT_EQ(words, sevens_);
}

TEST_F(CudaGraphChanges, ACopyThatIsCapturedToo) {
  Words words = ones_;
  HAWSER_CU(cuGraphDestroy(graph_));
  HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  HAWSER_CU(cuMemcpyDtoHAsync(words.data(), from_, kBytes, stream_));
  HAWSER_CU(cuMemcpyHtoDAsync(to_, words.data(), kBytes, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, &graph_));
  Instantiate();
  Launch();
  EXPECT_EQ(words, sevens_);
  EXPECT_EQ(OnDevice(), sevens_);
}

TEST_F(CudaGraphChanges, AFunctionThatIsStillToRunOutlivesItsGraph) {
  CUdeviceptr word = 0;
  HAWSER_CU(cuMemAlloc(&word, sizeof(uint32_t)));
  HAWSER_CU(cuMemsetD32(word, 0, 1));
  Words words = ones_, others = ones_;
  const CUgraphNode function = Add(AddTen, words, AddGate(word));
  Instantiate();
  HAWSER_CU(cuGraphLaunch(executable_, stream_));
  // Of this launch it is the first one all the same.
  const CUDA_HOST_NODE_PARAMS other{AddTen, &others};
  HAWSER_CU(cuGraphExecHostNodeSetParams(executable_, function, &other));
  HAWSER_CU(cuGraphExecDestroy(executable_));
  HAWSER_CU(cuGraphDestroy(graph_));
  executable_ = nullptr;
  CUstream second = nullptr;
  HAWSER_CU(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuStreamWriteValue32(second, word, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  HAWSER_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(words, Words(kCount, 11));
  EXPECT_EQ(others, ones_);
  HAWSER_CU(cuGraphCreate(&graph_, 0));
  HAWSER_CU(cuStreamDestroy(second));
  HAWSER_CU(cuMemFree(word));
}

TEST_F(CudaGraphChanges, GraphsThatHaveEndedLeaveNothing) {
  // All of them together would be more than a session may have of memory that stands for the host's.
  constexpr size_t kLarge = size_t{32} << 20;
  std::vector<unsigned char> host(kLarge);
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kLarge));
  for (int round = 0; round < 40; ++round) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    HAWSER_CU(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    HAWSER_CU(cuMemcpyDtoHAsync(host.data(), memory, kLarge, stream_));
    HAWSER_CU(cuLaunchHostFunc(
        stream_, [](void*) {}, nullptr));
    HAWSER_CU(cuMemcpyHtoDAsync(memory, host.data(), kLarge, stream_));
    HAWSER_CU(cuStreamEndCapture(stream_, &graph));
    HAWSER_CU(cuGraphInstantiate(&executable, graph, 0));
    HAWSER_CU(cuGraphLaunch(executable, stream_));
    HAWSER_CU(cuStreamSynchronize(stream_));
    HAWSER_CU(cuGraphExecDestroy(executable));
    HAWSER_CU(cuGraphDestroy(graph));
  }
  HAWSER_CU(cuMemFree(memory));
}

}  // namespace
}  // namespace hawser
