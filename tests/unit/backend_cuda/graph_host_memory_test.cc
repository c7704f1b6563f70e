// SPDX-License-Identifier: Apache-2.0
// Which copies come before and behind the functions of a graph. The driver is a few maps.
#include "server/backends/cuda/graph_host_memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace hawser::server::cuda_backend {
namespace {

using testing::UnorderedElementsAre;

/// Nodes are numbers from 1, graphs too.
struct FakeNode {
  CUgraphNodeType type{};
  const void* from = nullptr;
  void* to = nullptr;
  uint64_t callback = 0;
  int child = 0;
  bool loops = false;  ///< A conditional node, whose body is `child`.
};
struct FakeGraph {
  std::vector<int> nodes;
  std::vector<std::pair<int, int>> edges;
};
std::map<int, FakeNode> nodes;
std::map<int, FakeGraph> graphs;

CUgraphNode NodeOf(int number) { return reinterpret_cast<CUgraphNode>(static_cast<intptr_t>(number)); }
CUgraph GraphOf(int number) { return reinterpret_cast<CUgraph>(static_cast<intptr_t>(number)); }
FakeNode& At(CUgraphNode node) { return nodes.at(static_cast<int>(reinterpret_cast<intptr_t>(node))); }
FakeGraph& At(CUgraph graph) { return graphs.at(static_cast<int>(reinterpret_cast<intptr_t>(graph))); }

class GraphHostMemoryTest : public testing::Test {
 protected:
  GraphHostMemoryTest() {
    nodes.clear();
    graphs.clear();
    driver_.cuGraphGetNodes = [](CUgraph graph, CUgraphNode* to, size_t* count) {
      if (to != nullptr) std::transform(At(graph).nodes.begin(), At(graph).nodes.end(), to, NodeOf);
      *count = At(graph).nodes.size();
      return CUDA_SUCCESS;
    };
    driver_.cuGraphGetEdges = [](CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData*, size_t* count) {
      for (size_t i = 0; from != nullptr && i < At(graph).edges.size(); ++i) {
        from[i] = NodeOf(At(graph).edges[i].first);
        to[i] = NodeOf(At(graph).edges[i].second);
      }
      *count = At(graph).edges.size();
      return CUDA_SUCCESS;
    };
    driver_.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
      *type = At(node).type;
      return CUDA_SUCCESS;
    };
    driver_.cuGraphMemcpyNodeGetParams = [](CUgraphNode node, CUDA_MEMCPY3D* copy) {
      *copy = {};
      copy->srcMemoryType = At(node).from != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      copy->srcHost = At(node).from;
      copy->dstMemoryType = At(node).to != nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      copy->dstHost = At(node).to;
      return CUDA_SUCCESS;
    };
    driver_.cuGraphHostNodeGetParams = [](CUgraphNode node, CUDA_HOST_NODE_PARAMS* host) {
      *host = {nullptr, &At(node).callback};
      return CUDA_SUCCESS;
    };
    driver_.cuGraphChildGraphNodeGetGraph = [](CUgraphNode node, CUgraph* child) {
      *child = GraphOf(At(node).child);
      return CUDA_SUCCESS;
    };
  }
  /// A copy to the host into piece `piece`, from it, a function, a child graph, something else.
  int Read(int piece) { return Add({.type = CU_GRAPH_NODE_TYPE_MEMCPY, .to = &memory_[piece * 10 + 5]}); }
  int Write(int piece) { return Add({.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = &memory_[piece * 10]}); }
  int Function(uint64_t callback) { return Add({.type = CU_GRAPH_NODE_TYPE_HOST, .callback = callback}); }
  int Child(int graph) { return Add({.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph}); }
  int If(int body) { return Add({.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .child = body}); }
  int While(int body) { return Add({.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .child = body, .loops = true}); }
  int Other() { return Add({.type = CU_GRAPH_NODE_TYPE_EMPTY}); }
  static int Add(FakeNode node) {
    const int number = static_cast<int>(nodes.size()) + 1;
    nodes[number] = node;
    return number;
  }
  static int Chain(const std::vector<int>& in_order) {
    const int number = static_cast<int>(graphs.size()) + 1;
    graphs[number].nodes = in_order;
    for (size_t i = 1; i < in_order.size(); ++i) graphs[number].edges.emplace_back(in_order[i - 1], in_order[i]);
    return number;
  }
  static wire::Id Piece(size_t number) { return wire::Id(1, 1, static_cast<uint32_t>(number)); }
  GraphHostMemory Memory() {
    return GraphHostMemory(
        &driver_,
        [this](const void* address) {
          const auto offset = static_cast<const char*>(address) - memory_;
          return offset >= 0 && offset < static_cast<ptrdiff_t>(sizeof(memory_))
                     ? Piece(static_cast<size_t>(offset) / 10)
                     : wire::Id();
        },
        [](const CUDA_HOST_NODE_PARAMS& node) { return *static_cast<const uint64_t*>(node.userData); },
        [](CUgraphNode node) {
          return std::vector<GraphHostMemory::Body>{{GraphOf(At(node).child), At(node).loops}};
        });
  }
  /// "no", "yes", or the number of the graph's own node. Each piece stands for the same memory of the guest.
  std::string TooEarly(int graph) {
    GraphOrder::Extents extents;
    for (size_t piece = 0; piece < 10; ++piece) extents[Piece(piece).raw()] = {1000, 10};
    GraphHostMemory::Passing passing;
    EXPECT_EQ(Memory().FindPassing(GraphOf(graph), extents, &passing), CUDA_SUCCESS);
    if (passing.node != nullptr) return std::to_string(reinterpret_cast<intptr_t>(passing.node));
    return passing.too_early ? "yes" : "no";
  }
  /// "1: before 3", "1: behind 4", "2".
  std::vector<std::string> Find(int graph) {
    std::vector<cuda::HostNodeMemory> found;
    EXPECT_EQ(Memory().Find(GraphOf(graph), &found), CUDA_SUCCESS);
    std::vector<std::string> told;
    for (const cuda::HostNodeMemory& each : found) {
      std::string text = std::to_string(each.callback);
      if (each.staging) text += (each.after != 0 ? ": behind " : ": before ") + std::to_string(each.staging.index());
      told.push_back(text);
    }
    return told;
  }

  DriverTable driver_{};
  char memory_[100] = {};
};

TEST_F(GraphHostMemoryTest, TellsWhatComesBeforeAndBehind) {
  const int graph = Chain({Write(1), Read(2), Other(), Function(7), Other(), Write(3), Read(4)});
  EXPECT_THAT(Find(graph), UnorderedElementsAre("7: before 2", "7: behind 3"));
}

TEST_F(GraphHostMemoryTest, WhatIsInNoOrderIsNotTold) {
  const int read = Read(1), function = Function(7), write = Write(2), other = Function(8);
  const int graph = Chain({read, function});
  graphs[graph].nodes.push_back(write);
  graphs[graph].nodes.push_back(other);
  EXPECT_THAT(Find(graph), UnorderedElementsAre("7: before 1", "8"));
}

TEST_F(GraphHostMemoryTest, ChildGraphsAreInTheOrderOfTheirNodes) {
  const int child = Chain({Read(1), Function(7), Write(2)});
  const int graph = Chain({Read(3), Child(child), Function(8), Write(4)});
  EXPECT_THAT(Find(graph),
              UnorderedElementsAre("7: before 1", "7: before 3", "7: behind 2", "7: behind 4", "8: behind 4"));
}

TEST_F(GraphHostMemoryTest, WhatAFunctionHasFetchedIsNotFetchedAgain) {
  // It may have changed it.
  EXPECT_THAT(Find(Chain({Read(1), Function(7), Read(2), Function(8)})),
              UnorderedElementsAre("7: before 1", "8: before 2"));
  const int child = Chain({Read(3), Function(9), Read(4)});
  EXPECT_THAT(Find(Chain({Read(1), Child(child), Read(2), Function(8)})),
              UnorderedElementsAre("9: before 1", "9: before 3", "8: before 2", "8: before 4"));
}

TEST_F(GraphHostMemoryTest, NothingOfOtherMemory) {
  static char elsewhere[10];
  const int graph = Chain({Add({.type = CU_GRAPH_NODE_TYPE_MEMCPY, .to = elsewhere}), Function(7)});
  EXPECT_THAT(Find(graph), UnorderedElementsAre("7"));
}

TEST_F(GraphHostMemoryTest, ADriverThatLacksSomethingIsSaid) {
  driver_.cuGraphHostNodeGetParams = nullptr;
  const CUgraph graph = GraphOf(Chain({Other()}));
  std::vector<cuda::HostNodeMemory> found;
  EXPECT_EQ(Memory().Find(graph, &found), CUDA_ERROR_NOT_SUPPORTED);
  GraphHostMemory::Passing passing;
  EXPECT_EQ(Memory().FindPassing(graph, {}, &passing), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(GraphHostMemoryTest, BodiesAreInTheOrderOfTheirNodes) {
  // Whether they run or not: what they may leave out is there before.
  const int body = Chain({Write(2), Child(Chain({Read(3)}))});
  EXPECT_THAT(Find(Chain({Function(7), If(body), Function(8)})),
              UnorderedElementsAre("7: behind 2", "7: behind 3", "8: before 3"));
}

TEST_F(GraphHostMemoryTest, ACopyBehindAnotherOneIsTooEarly) {
  const int late = Write(2);
  EXPECT_EQ(TooEarly(Chain({Read(1), Other(), late})), std::to_string(late));
  EXPECT_EQ(TooEarly(Chain({Read(1), Function(7), Write(2)})), "no");
  EXPECT_EQ(TooEarly(Chain({Write(1), Read(2)})), "no") << "first taken, then brought";
}

TEST_F(GraphHostMemoryTest, WhatIsFilledIsToldInTheOrderOfTheCopies) {
  GraphOrder::Extents extents;
  for (const size_t piece : {1, 2, 3, 5, 6}) extents[Piece(piece).raw()] = {1000, 10};
  const int loop = While(Chain({Read(5), Read(3)}));
  const int graph = Chain({Read(6), Child(Chain({Read(2), Read(4)})), Write(7), loop, Read(1)});
  std::reverse(graphs[graph].nodes.begin(), graphs[graph].nodes.end());  // In whatever order they were added.
  GraphHostMemory::Passing passing;
  EXPECT_EQ(Memory().FindPassing(GraphOf(graph), extents, &passing), CUDA_SUCCESS);
  EXPECT_EQ(passing.filled, (std::vector<wire::Id>{Piece(6), Piece(2), Piece(5), Piece(3), Piece(1)}));
}

TEST_F(GraphHostMemoryTest, CopiesInChildGraphsAreTooEarlyToo) {
  EXPECT_EQ(TooEarly(Chain({Read(1), Child(Chain({Other(), Write(2)}))})), "yes");
  EXPECT_EQ(TooEarly(Chain({Child(Chain({Read(1)})), Child(Chain({Write(2)}))})), "yes");
  EXPECT_EQ(TooEarly(Chain({Child(Chain({Read(1)})), Function(7), Child(Chain({Write(2)}))})), "no");
  EXPECT_EQ(TooEarly(Chain({Read(1), Child(Chain({Function(7)})), Write(2)})), "no");
  const int late = Write(2);
  EXPECT_EQ(TooEarly(Chain({Child(Chain({Read(1)})), late})), std::to_string(late));
}

TEST_F(GraphHostMemoryTest, CopiesInBodiesAreTooEarlyToo) {
  EXPECT_EQ(TooEarly(Chain({Read(1), If(Chain({Write(2)}))})), "yes");
  EXPECT_EQ(TooEarly(Chain({Read(1), Function(7), If(Chain({Write(2)}))})), "no");
  EXPECT_EQ(TooEarly(Chain({If(Chain({Write(1), Read(2)}))})), "no");
  EXPECT_EQ(TooEarly(Chain({While(Chain({Write(1), Read(2)}))})), "yes") << "the next time round";
  EXPECT_EQ(TooEarly(Chain({If(Chain({Child(Chain({Read(1)}))})), Function(7), Write(2)})), "no");
}

}  // namespace
}  // namespace hawser::server::cuda_backend
