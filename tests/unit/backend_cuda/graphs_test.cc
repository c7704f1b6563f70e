// SPDX-License-Identifier: Apache-2.0
// Graphs as a guest without manners asks for them: conditional nodes and drawings, over a driver that believes
// everything and counts what lives.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <set>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

struct FakeGraphs {
  std::set<CUgraph> graphs;     ///< With the bodies of nodes.
  std::set<CUgraphNode> nodes;  ///< Conditional ones.
  std::map<CUgraphNode, std::vector<CUgraph>> bodies;
  std::vector<CUgraph> handed;                                              ///< What the caller's array points to.
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;                         ///< Of every node.
  std::map<CUgraphNode, std::map<int, CUlaunchAttributeValue>> attributes;  ///< As they were set.
  int asked = 0;  ///< How often something was asked about attributes.
  uint64_t last = 0;

  template <typename Handle>
  Handle Next() {
    return reinterpret_cast<Handle>(0x1000 + ++last);
  }
  void EndBodies(CUgraphNode node) {
    for (CUgraph body : bodies[node]) graphs.erase(body);
    bodies.erase(node);
  }
};
FakeGraphs* g_graphs = nullptr;  // The table's functions have no context.

void AddTo(DriverTable* table) {
  table->cuGraphCreate = [](CUgraph* graph, unsigned) {
    g_graphs->graphs.insert(*graph = g_graphs->Next<CUgraph>());
    return CUDA_SUCCESS;
  };
  table->cuGraphDestroy = [](CUgraph graph) {
    return g_graphs->graphs.erase(graph) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  table->cuGraphInstantiateWithParams = [](CUgraphExec* exec, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*) {
    *exec = g_graphs->Next<CUgraphExec>();
    return CUDA_SUCCESS;
  };
  table->cuGraphExecDestroy = [](CUgraphExec) { return CUDA_SUCCESS; };
  table->cuGraphClone = [](CUgraph* clone, CUgraph) {
    g_graphs->graphs.insert(*clone = g_graphs->Next<CUgraph>());
    return CUDA_SUCCESS;
  };
  table->cuGraphConditionalHandleCreate = [](CUgraphConditionalHandle* handle, CUgraph, CUcontext, unsigned, unsigned) {
    *handle = ++g_graphs->last;
    return CUDA_SUCCESS;
  };
  table->cuGraphAddNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                             CUgraphNodeParams* parameters) {
    if (parameters->conditional.size == 0) return CUDA_ERROR_INVALID_VALUE;
    *node = g_graphs->Next<CUgraphNode>();
    g_graphs->nodes.insert(*node);
    g_graphs->handed.clear();
    for (unsigned i = 0; i < parameters->conditional.size; ++i) {
      g_graphs->handed.push_back(g_graphs->Next<CUgraph>());
      g_graphs->graphs.insert(g_graphs->handed.back());
    }
    g_graphs->bodies[*node] = g_graphs->handed;
    parameters->conditional.phGraph_out = g_graphs->handed.data();
    return CUDA_SUCCESS;
  };
  table->cuGraphDestroyNode = [](CUgraphNode node) {
    g_graphs->EndBodies(node);
    return g_graphs->nodes.erase(node) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  table->cuGraphAddEmptyNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t) {
    *node = g_graphs->Next<CUgraphNode>();
    g_graphs->nodes.insert(*node);
    return CUDA_SUCCESS;
  };
  table->cuGraphNodeGetType = [](CUgraphNode, CUgraphNodeType* type) {
    *type = g_graphs->type;
    return CUDA_SUCCESS;
  };
  table->cuGraphMemAllocNodeGetParams = [](CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
    params->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    params->bytesize = 4711;
    params->dptr = 0xabc0000;
    return CUDA_SUCCESS;
  };
  table->cuGraphKernelNodeSetAttribute = [](CUgraphNode node, CUkernelNodeAttrID id,
                                            const CUkernelNodeAttrValue* value) {
    ++g_graphs->asked;
    g_graphs->attributes[node][id] = *value;
    return CUDA_SUCCESS;
  };
  table->cuGraphKernelNodeGetAttribute = [](CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue* value) {
    ++g_graphs->asked;
    *value = g_graphs->attributes[node][id];
    return CUDA_SUCCESS;
  };
  table->cuGraphKernelNodeCopyAttributes = [](CUgraphNode to, CUgraphNode from) {
    ++g_graphs->asked;
    g_graphs->attributes[to] = g_graphs->attributes[from];
    return CUDA_SUCCESS;
  };
  table->cuGraphDebugDotPrint = [](CUgraph graph, const char* path, unsigned flags) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "w"), &std::fclose);
    if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
    std::fprintf(file.get(), "digraph %d { flags_%u }\n", g_graphs->graphs.count(graph) != 0, flags);
    return CUDA_SUCCESS;
  };
}

class Graphs : public ::testing::Test {
 protected:
  void SetUp() override {
    g_graphs = &fake_;
    Session::Options options;
    options.adjust = &AddTo;
    session_ = std::make_unique<Session>(options);
    context_ = session_->NewContext();
    graph_ = NewGraph();
    condition_ = NewCondition(graph_);
  }
  void TearDown() override {
    session_.reset();
    g_graphs = nullptr;
  }
  wire::Id NewGraph() {
    cuda::CreateGraph create;
    create.graph = session_->NewId(cuda::Handle::kGraph);
    EXPECT_EQ(session_->Do(create), 0);
    return create.graph;
  }
  uint64_t NewCondition(wire::Id graph) {
    cuda::CreateCondition create;
    create.graph = graph;
    create.context = context_;
    const auto reply = session_->Ask<cuda::Value>(create);
    EXPECT_EQ(reply->status, 0);
    return reply->value;
  }
  /// A conditional node of `graph_` with so many bodies.
  cuda::AddConditionalNode Conditional(size_t bodies) {
    bodies_.clear();
    for (size_t i = 0; i < bodies; ++i) bodies_.push_back(session_->NewId(cuda::Handle::kGraph));
    return Conditional();
  }
  cuda::AddConditionalNode Conditional() {
    cuda::AddConditionalNode add;
    add.node = session_->NewId(cuda::Handle::kNode);
    add.graph = graph_;
    add.context = context_;
    add.condition = condition_;
    add.bodies = wire::ArrayView<wire::Id>(bodies_.data(), bodies_.size());
    return add;
  }
  int32_t Add(const cuda::AddConditionalNode& add) { return session_->Ask<cuda::Status>(add)->status; }
  wire::Id NewNode() {
    cuda::AddNode add;
    add.node = session_->NewId(cuda::Handle::kNode);
    add.graph = graph_;
    add.parameters.kind = CU_GRAPH_NODE_TYPE_EMPTY;
    EXPECT_EQ(session_->Ask<cuda::Status>(add)->status, 0);
    return add.node;
  }
  int32_t Set(wire::Id node, const cuda::LaunchAttribute& attribute) {
    cuda::SetNodeAttribute set;
    set.node = node;
    set.attribute = attribute;
    return session_->Ask<cuda::Status>(set)->status;
  }
  cuda::NodeAttribute Attribute(wire::Id node, uint32_t id) {
    cuda::GetNodeAttribute get;
    get.node = node;
    get.id = id;
    return session_->Ask<cuda::NodeAttribute>(get).message;
  }
  int32_t Copy(wire::Id to, wire::Id from) {
    cuda::CopyNodeAttributes copy;
    copy.to = to;
    copy.from = from;
    return session_->Ask<cuda::Status>(copy)->status;
  }
  int32_t Release(wire::Id object) {
    cuda::Release release;
    release.object = object;
    return session_->Do(release);
  }

  FakeGraphs fake_;
  std::unique_ptr<Session> session_;
  wire::Id context_, graph_;
  uint64_t condition_ = 0;
  std::vector<wire::Id> bodies_;
};

TEST_F(Graphs, ANodeEndsWithItsBodies) {
  const cuda::AddConditionalNode add = Conditional(2);
  ASSERT_EQ(Add(add), 0);
  EXPECT_EQ(fake_.graphs.size(), 3u);
  // A body is a graph like others, but not the guest's to end: only its name goes.
  (void)NewCondition(bodies_[0]);
  EXPECT_EQ(Release(bodies_[1]), 0);
  EXPECT_EQ(fake_.graphs.size(), 3u);
  EXPECT_EQ(Release(add.node), 0);
  EXPECT_EQ(fake_.graphs.size(), 1u);
  EXPECT_TRUE(fake_.nodes.empty());
  cuda::CreateCondition in_ended;
  in_ended.graph = bodies_[0];
  in_ended.context = context_;
  EXPECT_NE(session_->Ask<cuda::Value>(in_ended)->status, 0);
}

TEST_F(Graphs, ConditionsThatTheServerDidNotGiveAreRefused) {
  cuda::AddConditionalNode add = Conditional(1);
  for (const uint64_t made_up : {uint64_t{0}, condition_ + 1, ~uint64_t{0}}) {
    add.condition = made_up;
    EXPECT_EQ(Add(add), CUDA_ERROR_INVALID_VALUE);
  }
  // Nor one whose graph has ended.
  const wire::Id other = NewGraph();
  add.condition = NewCondition(other);
  EXPECT_EQ(Release(other), 0);
  EXPECT_EQ(Add(add), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(fake_.nodes.empty()) << "the driver was not asked";
}

TEST_F(Graphs, NamesInUseLeaveNothingBehind) {
  const cuda::AddConditionalNode good = Conditional(1);
  ASSERT_EQ(Add(good), 0);
  const size_t graphs = fake_.graphs.size();
  // The same name twice; the graph's own; a body's of another node; a node's name that is taken.
  const wire::Id fresh = session_->NewId(cuda::Handle::kGraph);
  const wire::Id taken = bodies_[0];
  for (const std::vector<wire::Id>& names :
       {std::vector<wire::Id>{fresh, fresh}, std::vector<wire::Id>{fresh, graph_}, std::vector<wire::Id>{taken}}) {
    bodies_ = names;
    EXPECT_NE(Add(Conditional()), 0);
    EXPECT_EQ(fake_.graphs.size(), graphs);
    EXPECT_EQ(fake_.nodes.size(), 1u);
  }
  cuda::AddConditionalNode same = Conditional(1);
  same.node = good.node;
  EXPECT_NE(Add(same), 0);
  EXPECT_EQ(fake_.graphs.size(), graphs);
  // The first one and its body are as they were, and the fresh name's slot is free for the next generation.
  bodies_ = {wire::Id(fresh.type(), fresh.generation() + 1, fresh.index())};
  EXPECT_EQ(Add(Conditional()), 0);
  (void)NewCondition(taken);
}

TEST_F(Graphs, IdsOfOtherKindsEndTheSession) {
  cuda::AddConditionalNode add = Conditional(1);
  add.graph = context_;
  (void)session_->Do(add);
  EXPECT_TRUE(session_->last().malformed);
  add = Conditional(1);
  add.context = graph_;
  (void)session_->Do(add);
  EXPECT_TRUE(session_->last().malformed);
  add = Conditional(1);
  bodies_[0] = add.node;
  (void)session_->Do(Conditional());
  EXPECT_TRUE(session_->last().malformed);
  EXPECT_TRUE(fake_.nodes.empty());
}

TEST_F(Graphs, NodesThatDoNotExistAreRefused) {
  cuda::AddConditionalNode add = Conditional(1);
  const wire::Id nobody = session_->NewId(cuda::Handle::kNode);
  add.dependencies = wire::ArrayView<wire::Id>(&nobody, 1);
  EXPECT_NE(Add(add), 0);
  EXPECT_TRUE(fake_.nodes.empty());
}

TEST_F(Graphs, BodiesInBodiesEndSomewhere) {
  int depth = 0;
  for (; depth < 1000; ++depth) {
    const cuda::AddConditionalNode add = Conditional(1);
    if (Add(add) != 0) break;
    graph_ = bodies_[0];
    condition_ = NewCondition(graph_);
  }
  EXPECT_GT(depth, 100);
  EXPECT_LT(depth, 1000);
}

TEST_F(Graphs, NodesHaveAttributes) {
  const wire::Id node = NewNode();
  const wire::Id other = NewNode();
  cuda::LaunchAttribute cooperative;
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.number = 1;
  EXPECT_EQ(Set(node, cooperative), 0);
  cuda::LaunchAttribute priority;
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.number = static_cast<uint64_t>(int64_t{-3});
  EXPECT_EQ(Set(node, priority), 0);
  cuda::LaunchAttribute window;
  window.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  window.address = session_->NewMemory(context_, 4096) + 1024;
  window.number = 2048;
  window.x = 0x3f000000;  // 0.5
  window.y = CU_ACCESS_PROPERTY_PERSISTING;
  window.z = CU_ACCESS_PROPERTY_STREAMING;
  EXPECT_EQ(Set(node, window), 0);
  EXPECT_EQ(Attribute(other, CU_LAUNCH_ATTRIBUTE_COOPERATIVE).attribute.number, 0u);
  EXPECT_EQ(Copy(other, node), 0);
  for (const wire::Id id : {node, other}) {
    EXPECT_EQ(Attribute(id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE).attribute.number, 1u);
    EXPECT_EQ(Attribute(id, CU_LAUNCH_ATTRIBUTE_PRIORITY).attribute.number, priority.number);
    const cuda::NodeAttribute same = Attribute(id, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
    EXPECT_EQ(same.status, 0);
    EXPECT_EQ(same.attribute.id, window.id);
    EXPECT_EQ(same.attribute.address, window.address);
    EXPECT_EQ(same.attribute.number, window.number);
    EXPECT_EQ(same.attribute.x, window.x);
    EXPECT_EQ(same.attribute.y, window.y);
    EXPECT_EQ(same.attribute.z, window.z);
  }
}

TEST_F(Graphs, AttributesThatNodesMayNotHaveAreRefused) {
  const wire::Id node = NewNode();
  cuda::LaunchAttribute attribute;
  // Memory of others, and windows that go on too long.
  attribute.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  attribute.address = session_->NewMemory(context_, 4096);
  for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}}) {
    attribute.number = size;
    EXPECT_EQ(Set(node, attribute), CUDA_ERROR_INVALID_VALUE);
  }
  attribute.address = 0x1234;
  attribute.number = 16;
  EXPECT_EQ(Set(node, attribute), CUDA_ERROR_INVALID_VALUE);
  // Those that nobody knows.
  for (const uint32_t id : {0u, 1000u, ~0u}) {
    attribute = {};
    attribute.id = id;
    EXPECT_EQ(Set(node, attribute), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Attribute(node, id).status, CUDA_ERROR_INVALID_VALUE);
  }
  // One with a handle that means nothing here.
  attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  EXPECT_EQ(Set(node, attribute), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Attribute(node, attribute.id).status, CUDA_ERROR_NOT_SUPPORTED);
  // A node would outlive the event.
  cuda::CreateEvent event;
  event.event = session_->NewId(cuda::Handle::kEvent);
  event.context = context_;
  EXPECT_EQ(session_->Do(event), 0);
  for (const uint32_t id :
       {uint32_t{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT}, uint32_t{CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}}) {
    attribute = {};
    attribute.id = id;
    attribute.event = event.event;
    EXPECT_EQ(Set(node, attribute), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Attribute(node, id).status, CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(fake_.asked, 0) << "the driver was not asked";
}

TEST_F(Graphs, OnlyKernelNodesHaveAttributes) {
  const wire::Id node = NewNode();
  const wire::Id nobody = session_->NewId(cuda::Handle::kNode);
  cuda::LaunchAttribute cooperative;
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  EXPECT_EQ(Set(nobody, cooperative), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Attribute(nobody, cooperative.id).status, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Copy(node, nobody), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Copy(nobody, node), CUDA_ERROR_INVALID_VALUE);
  fake_.type = CU_GRAPH_NODE_TYPE_MEMSET;
  EXPECT_EQ(Set(node, cooperative), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Attribute(node, cooperative.id).status, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Copy(node, node), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fake_.asked, 0) << "the driver was not asked";
  cuda::CopyNodeAttributes copy;
  copy.to = node;
  copy.from = graph_;
  (void)session_->Do(copy);
  EXPECT_TRUE(session_->last().malformed);
}

TEST_F(Graphs, AnAllocationsNodeSaysWhatItAllocates) {
  fake_.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  cuda::DescribeNode describe;
  describe.node = NewNode();
  const auto reply = session_->Ask<cuda::NodeReply>(describe);
  EXPECT_EQ(reply->status, 0);
  EXPECT_EQ(reply->parameters.kind, uint32_t{CU_GRAPH_NODE_TYPE_MEM_ALLOC});
  EXPECT_EQ(reply->parameters.size, 4711u);
  EXPECT_EQ(reply->parameters.address, 0xabc0000u);
  EXPECT_EQ(reply->parameters.device, 0u);
}

// A guest that adds nodes without an answer should know that they are right. One that is wrong has no graph.
TEST_F(Graphs, AGraphThatLacksANodeIsNotInstantiated) {
  const auto instantiate = [this] {
    cuda::InstantiateGraph message;
    message.exec = session_->NewId(cuda::Handle::kGraphExec);
    message.graph = graph_;
    message.context = context_;
    return session_->Ask<cuda::InstantiateResult>(message)->status;
  };
  const auto clone = [this] {
    cuda::CloneGraph message;
    message.graph = graph_;
    message.clone = session_->NewId(cuda::Handle::kGraph);
    return session_->Ask<cuda::Status>(message)->status;
  };
  cuda::PlaceNode place;
  place.node = session_->NewId(cuda::Handle::kNode);
  place.graph = graph_;
  place.parameters.context = context_;
  place.parameters.kind = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_EQ(session_->Do(place), 0);
  EXPECT_EQ(instantiate(), 0);
  EXPECT_EQ(clone(), 0);
  const wire::Id good = place.node;
  place.node = session_->NewId(cuda::Handle::kNode);
  place.parameters.kind = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  place.parameters.event = session_->NewId(cuda::Handle::kEvent);
  EXPECT_EQ(session_->Do(place), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(instantiate(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(clone(), CUDA_ERROR_INVALID_HANDLE);
  // What is behind it is no more there than it is; the others are.
  const wire::Id ids[] = {place.node, good};
  cuda::PlaceNode next;
  next.node = session_->NewId(cuda::Handle::kNode);
  next.graph = graph_;
  next.parameters.kind = CU_GRAPH_NODE_TYPE_EMPTY;
  next.dependencies = wire::ArrayView<wire::Id>(ids, 2);
  EXPECT_EQ(session_->Do(next), CUDA_ERROR_INVALID_HANDLE);
  next.node = session_->NewId(cuda::Handle::kNode);
  next.dependencies = wire::ArrayView<wire::Id>(ids + 1, 1);
  EXPECT_EQ(session_->Do(next), 0);
}

TEST_F(Graphs, ADrawingIsAText) {
  cuda::DrawGraph draw;
  draw.graph = graph_;
  draw.flags = 5;
  const auto drawing = session_->Ask<cuda::Drawing>(draw);
  EXPECT_EQ(drawing->status, 0);
  EXPECT_EQ(drawing->text, "digraph 1 { flags_5 }\n");
  draw.graph = session_->NewId(cuda::Handle::kGraph);
  const auto nothing = session_->Ask<cuda::Drawing>(draw);
  EXPECT_NE(nothing->status, 0);
  EXPECT_EQ(nothing->text, "");
}

}  // namespace
}  // namespace hawser::server::cuda_backend
