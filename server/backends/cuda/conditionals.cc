// SPDX-License-Identifier: Apache-2.0
// Conditional nodes of graphs, and the ends of graphs that are parts of nodes.
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr size_t kMaxConditions = 1u << 16;
constexpr unsigned kMaxDepth = 128;  // Of bodies in bodies: whoever looks at them does so recursively.

}  // namespace

int32_t CudaBackend::CreateCondition(const cuda::Call& call, const cuda::CreateCondition& message) {
  cuda::Value reply;
  const Graph* graph = Use<Graph>(message.graph, &reply.status);
  const Context* context = graph != nullptr ? Enter(message.context, &reply.status) : nullptr;
  if (context != nullptr) {
    if (driver_.cuGraphConditionalHandleCreate == nullptr) {
      reply.status = kNotSupported;
    } else if (conditions_.size() >= kMaxConditions) {
      reply.status = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
      CUgraphConditionalHandle handle = 0;
      reply.status = driver_.cuGraphConditionalHandleCreate(&handle, graph->native, context->native, message.initial,
                                                            message.flags);
      if (reply.status == 0) {
        reply.value = handle;
        conditions_.insert(handle);
        objects_->Table<Graph>().Find(message.graph)->conditions.push_back(handle);
      }
    }
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::AddConditionalNode(const cuda::Call& call, const cuda::AddConditionalNode& message) {
  int32_t status = 0;
  const auto answer = [&](int32_t result) {
    reason_.clear();
    return ReplyStatus(call, result);
  };
  const Graph* graph = Use<Graph>(message.graph, &status);
  if (graph == nullptr) return answer(status);
  const Context* context = Enter(message.context, &status);
  if (context == nullptr) return answer(status);
  std::vector<CUgraphNode> dependencies;
  if (status = UseNodes(message.dependencies, &dependencies); status != 0) return answer(status);
  if (driver_.cuGraphAddNode == nullptr) return answer(kNotSupported);
  const unsigned depth = graph->depth + 1;
  if (depth > kMaxDepth) return answer(Explain(kNotSupported, "conditional nodes are nested too deeply"));
  if (conditions_.count(message.condition) == 0) {
    return answer(Explain(CUDA_ERROR_INVALID_VALUE, "the condition is not the session's"));
  }
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  parameters.conditional.handle = message.condition;
  parameters.conditional.type = static_cast<CUgraphConditionalNodeType>(message.type);
  parameters.conditional.size = static_cast<unsigned>(message.bodies.size());
  parameters.conditional.ctx = context->native;
  Node node;
  node.graph = message.graph;
  status = driver_.cuGraphAddNode(&node.native, graph->native, dependencies.data(), nullptr, dependencies.size(),
                                  &parameters);
  if (status != 0) return answer(status);
  for (uint32_t i = 0; i < message.bodies.size() && status == 0; ++i) {
    Graph body;
    body.inner = true;
    body.loops = message.type == CU_GRAPH_COND_TYPE_WHILE;
    body.depth = depth;
    body.native = parameters.conditional.phGraph_out[i];
    status = Keep(message.bodies[i], std::move(body));
    if (status == 0) node.inner.push_back(message.bodies[i]);
  }
  const CUgraphNode native = node.native;
  if (status == 0) status = Keep(message.node, node);
  if (status != 0) {  // Names that were in use.
    EndInnerGraphs(node);
    if (driver_.cuGraphDestroyNode != nullptr) (void)driver_.cuGraphDestroyNode(native);
    return answer(status);
  }
  objects_->Table<Graph>().Find(message.graph)->names[native] = message.node;
  return answer(0);
}

void CudaBackend::EndInnerGraphs(const Node& node) {
  for (const wire::Id inner : node.inner) {
    // A wrong guest may have taken the name for something else meanwhile.
    const Graph* graph = objects_->Table<Graph>().Find(inner);
    if (graph == nullptr || !graph->inner) continue;
    EndNodes(inner);
    objects_->Table<Graph>().Erase(inner);
  }
}

void CudaBackend::EndNodes(wire::Id graph) {
  const Graph* ended = objects_->Table<Graph>().Find(graph);
  if (ended == nullptr) return;
  for (const uint64_t handle : ended->conditions) conditions_.erase(handle);
  std::vector<Node> with_graphs;
  objects_->Table<Node>().ForEach([&](wire::Id node, Node& object) {
    if (object.graph != graph) return;
    if (!object.inner.empty()) with_graphs.push_back(std::move(object));
    objects_->Table<Node>().Erase(node);
  });
  for (const Node& node : with_graphs) EndInnerGraphs(node);
}

}  // namespace hawser::server::cuda_backend
