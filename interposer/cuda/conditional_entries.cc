// SPDX-License-Identifier: Apache-2.0
// Conditions of graphs, and the nodes that ask for them.
#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

constexpr unsigned kMostBodies = 4096;

CUresult Check(CUgraph graph) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckObject(graph, Kind::kGraph) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// The context that is named, or the current one.
CUresult ContextOf(CUcontext named, CUctx_st** context) {
  if (named == nullptr) return CurrentContext(context);
  *context = named;
  return CheckObject(named, Kind::kContext);
}

bool GoodSize(const CUDA_CONDITIONAL_NODE_PARAMS& params) {
  switch (params.type) {
    case CU_GRAPH_COND_TYPE_IF:
      return params.size == 1 || params.size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
      return params.size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return params.size != 0;
    default:
      return false;
  }
}

}  // namespace

namespace hawser::cu {

CUresult AddConditionalNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            CUDA_CONDITIONAL_NODE_PARAMS* params) {
  if (const CUresult error = Check(graph); error != CUDA_SUCCESS) return error;
  if (result == nullptr || !GoodSize(*params)) return CUDA_ERROR_INVALID_VALUE;
  if (params->size > kMostBodies) return CUDA_ERROR_NOT_SUPPORTED;
  CUctx_st* context = nullptr;
  if (const CUresult error = ContextOf(params->ctx, &context); error != CUDA_SUCCESS) return error;
  std::vector<wire::Id> before;
  if (const CUresult error = NodeIds(dependencies, count, &before); error != CUDA_SUCCESS) return error;
  CUgraphNode node = NewNode(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL);
  std::vector<wire::Id> bodies;
  for (unsigned i = 0; i < params->size; ++i) {
    CUgraph body = NewGraph();
    body->is_child = true;
    bodies.push_back(body->id);
    node->bodies.push_back(body);
  }
  cuda::AddConditionalNode message;
  message.node = node->id;
  message.graph = graph->id;
  message.dependencies = wire::ArrayView<wire::Id>(before.data(), before.size());
  message.context = context->id;
  message.condition = params->handle;
  message.type = params->type;
  message.bodies = wire::ArrayView<wire::Id>(bodies.data(), bodies.size());
  if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) {
    ForgetNode(node);
    return error;
  }
  params->phGraph_out = node->bodies.data();
  *result = node;
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext named,
                                                unsigned int initial, unsigned int flags) {
  if (const CUresult error = Check(graph); error != CUDA_SUCCESS) return error;
  if (handle == nullptr || (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUctx_st* context = nullptr;
  if (const CUresult error = ContextOf(named, &context); error != CUDA_SUCCESS) return error;
  cuda::CreateCondition message;
  message.graph = graph->id;
  message.context = context->id;
  message.initial = initial;
  message.flags = flags;
  Answer<cuda::Value> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  *handle = answer->value;
  return CUDA_SUCCESS;
}
