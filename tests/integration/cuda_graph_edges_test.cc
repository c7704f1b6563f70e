// SPDX-License-Identifier: Apache-2.0
// Data of edges: what says the same as an edge without any is taken everywhere; what says more does not travel.
#include <cuda.h>

#include <cstdint>
#include <cstdlib>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

class CudaGraphEdges : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    HAWSER_CU(cuGraphCreate(&graph_, 0));
    HAWSER_CU(cuGraphAddEmptyNode(&nodes_[0], graph_, nullptr, 0));
    HAWSER_CU(cuGraphAddEmptyNode(&nodes_[1], graph_, nullptr, 0));
    HAWSER_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    HAWSER_CU(cuMemAlloc(&memory_, sizeof(uint32_t)));
    programmatic_.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    programmatic_.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  }
  void TearDown() override {
    if (graph_ != nullptr) (void)cuGraphDestroy(graph_);
    CudaTest::TearDown();
  }
  size_t Edges() const {
    size_t count = 0;
    EXPECT_EQ(cuGraphGetEdges(graph_, nullptr, nullptr, nullptr, &count), CUDA_SUCCESS);
    return count;
  }
  /// The software device looks at no data of edges.
  static bool ThroughServer() { return std::getenv("HAWSER_TEST_SERVER_PID") != nullptr; }

  CUgraph graph_ = nullptr;
  CUgraphNode nodes_[2] = {};
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
  const CUgraphEdgeData ordinary_[2] = {};
  CUgraphEdgeData programmatic_{};
};

TEST_F(CudaGraphEdges, OrdinaryOnesAreAddedAndRemoved) {
  HAWSER_CU(cuGraphAddDependencies(graph_, &nodes_[0], &nodes_[1], ordinary_, 1));
  EXPECT_EQ(Edges(), 1u);
  HAWSER_CU(cuGraphRemoveDependencies(graph_, &nodes_[0], &nodes_[1], ordinary_, 1));
  EXPECT_EQ(Edges(), 0u);
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUgraphNode node = nullptr;
  HAWSER_CU(cuGraphAddNode(&node, graph_, nodes_, ordinary_, 2, &parameters));
  EXPECT_EQ(Edges(), 2u);
}

TEST_F(CudaGraphEdges, CapturesTakeOrdinaryOnes) {
  HAWSER_CU(cuStreamBeginCaptureToGraph(stream_, graph_, &nodes_[0], ordinary_, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
  HAWSER_CU(cuStreamUpdateCaptureDependencies(stream_, &nodes_[1], ordinary_, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  HAWSER_CU(cuMemsetD32Async(memory_, 1, 1, stream_));
  HAWSER_CU(cuStreamEndCapture(stream_, nullptr));
  EXPECT_EQ(Edges(), 2u) << "from both nodes to the one that was captured";
}

TEST_F(CudaGraphEdges, OthersDoNotTravel) {
  if (!ThroughServer()) GTEST_SKIP() << "the software device takes them for ordinary ones";
  EXPECT_EQ(cuGraphAddDependencies(graph_, &nodes_[0], &nodes_[1], &programmatic_, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphRemoveDependencies(graph_, &nodes_[0], &nodes_[1], &programmatic_, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuStreamBeginCaptureToGraph(stream_, graph_, &nodes_[0], &programmatic_, 1, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_ERROR_NOT_SUPPORTED);
  HAWSER_CU(cuStreamBeginCaptureToGraph(stream_, graph_, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream_, nodes_, &programmatic_, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES),
            CUDA_ERROR_NOT_SUPPORTED);
  HAWSER_CU(cuStreamEndCapture(stream_, nullptr));
  EXPECT_EQ(Edges(), 0u);
}

}  // namespace
}  // namespace hawser
