// SPDX-License-Identifier: Apache-2.0
// cuGraph*Node*: nodes one by one.
#include <algorithm>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/node_commands.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

wire::ArrayView<wire::Id> View(const std::vector<wire::Id>& ids) { return {ids.data(), ids.size()}; }

CUresult EventNode(CUgraphNodeType type, CUevent event, NodeMessage* to) {
  if (const CUresult error = CheckObject(event, Kind::kEvent); error != CUDA_SUCCESS) return error;
  to->parameters.kind = type;
  to->parameters.event = event->id;
  to->event = event;
  to->sure = !event->interprocess();
  return CUDA_SUCCESS;
}

/// Lists of nodes. `total`: how many there are.
CUresult List(uint32_t which, CUgraph graph, CUgraphNode node, std::vector<CUgraphNode>* nodes,
              std::vector<CUgraphNode>* to) {
  for (size_t names = 16;;) {
    NodeNames given(names);
    cuda::GetNodes message;
    message.list = which;
    message.graph = graph->id;
    if (node != nullptr) message.node = node->id;
    message.names = given.names();
    Answer<cuda::Nodes> answer;
    if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
    const auto take = [&](const wire::ArrayView<wire::Id>& ids, std::vector<CUgraphNode>* into) {
      into->clear();
      for (size_t i = 0; i < ids.size(); ++i) {
        given.Used(ids[i]);
        into->push_back(NodeOf(graph, ids[i]));
      }
    };
    take(answer->nodes, nodes);
    if (to != nullptr) take(answer->to, to);
    if (nodes->size() >= answer->total || answer->total > 65536 || names > 65536) return CUDA_SUCCESS;
    names = 2 * size_t{answer->total};
  }
}

/// Answers as the API does: with an array as many as fit, without one their number.
CUresult Give(const std::vector<CUgraphNode>& nodes, CUgraphNode* result, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (result != nullptr) {
    for (size_t i = 0; i < *count; ++i) result[i] = i < nodes.size() ? nodes[i] : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return CUDA_SUCCESS;
}

CUresult Neighbours(uint32_t which, CUgraphNode node, CUgraphNode* result, size_t* count) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  std::vector<CUgraphNode> nodes;
  if (const CUresult error = List(which, node->graph, node, &nodes, nullptr); error != CUDA_SUCCESS) return error;
  return Give(nodes, result, count);
}

CUresult Connect(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count, bool add) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  std::vector<wire::Id> from_ids;
  std::vector<wire::Id> to_ids;
  if (const CUresult error = NodeIds(from, count, &from_ids); error != CUDA_SUCCESS) return error;
  if (const CUresult error = NodeIds(to, count, &to_ids); error != CUDA_SUCCESS) return error;
  cuda::SetDependencies message;
  message.graph = graph->id;
  message.from = View(from_ids);
  message.to = View(to_ids);
  message.add = add ? 1 : 0;
  return AskStatus(Client::Get().session(), message);
}

CUresult Edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> sources;
  std::vector<CUgraphNode> targets;
  if (const CUresult error = List(2, graph, nullptr, &sources, &targets); error != CUDA_SUCCESS) return error;
  size_t room = *count;
  if (const CUresult error = Give(sources, from, count); error != CUDA_SUCCESS) return error;
  return Give(targets, to, from != nullptr ? &room : count);
}

/// CUDA_KERNEL_NODE_PARAMS of CUDA 11, whose fields the newer one begins with.
CUDA_KERNEL_NODE_PARAMS Newer(const CUDA_KERNEL_NODE_PARAMS_v1& from) {
  CUDA_KERNEL_NODE_PARAMS to{};
  to.func = from.func;
  to.gridDimX = from.gridDimX;
  to.gridDimY = from.gridDimY;
  to.gridDimZ = from.gridDimZ;
  to.blockDimX = from.blockDimX;
  to.blockDimY = from.blockDimY;
  to.blockDimZ = from.blockDimZ;
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
  return to;
}

}  // namespace

// ---------------------------------------------------------------------- adding

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = KernelNode(*params, &message);
  return error != CUDA_SUCCESS ? error : AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = Newer(*params);
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &newer);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_MEMCPY3D* params, CUcontext context) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = CopyNode(*params, context, &message);
  return error != CUDA_SUCCESS ? error : AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = MemsetNode(*params, context, &message);
  return error != CUDA_SUCCESS ? error : AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  CUresult error = HostNode(*params, &message);
  if (error != CUDA_SUCCESS) return error;
  error = AddNode(node, graph, dependencies, count, message);
  if (error == CUDA_SUCCESS) (*node)->host = *params;
  return error;
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, CUgraph child) {
  if (const CUresult error = CheckGraph(child); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  message.parameters.kind = CU_GRAPH_NODE_TYPE_GRAPH;
  message.parameters.graph = child->id;
  HostCopies& copies = message.inner_copies;
  GraphFunctions functions;
  {
    std::lock_guard lock(child->mutex);
    copies = child->host_copies;
    functions = child->host_functions;
  }
  if (const CUresult error = AddNode(node, graph, dependencies, count, message); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(graph->mutex);
  graph->host_copies.insert(graph->host_copies.end(), copies.begin(), copies.end());
  graph->host_functions.insert(graph->host_functions.end(), functions.begin(), functions.end());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  NodeMessage message;
  message.parameters.kind = CU_GRAPH_NODE_TYPE_EMPTY;
  message.sure = true;
  return AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                           size_t count, CUevent event) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  const CUresult error = EventNode(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &message);
  return error != CUDA_SUCCESS ? error : AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                         size_t count, CUevent event) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  const CUresult error = EventNode(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &message);
  return error != CUDA_SUCCESS ? error : AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                       CUdeviceptr address) {
  NodeMessage message;
  message.parameters.kind = CU_GRAPH_NODE_TYPE_MEM_FREE;
  message.parameters.address = address;
  return AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies,
                                        size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (result == nullptr || params == nullptr || params->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      Client::Get().device(params->poolProps.location.id) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<wire::Id> ids;
  if (const CUresult error = NodeIds(dependencies, count, &ids); error != CUDA_SUCCESS) return error;
  CUgraphNode node = NewNode(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  cuda::AddAllocationNode message;
  message.node = node->id;
  message.graph = graph->id;
  message.dependencies = View(ids);
  message.device = static_cast<uint32_t>(params->poolProps.location.id);
  message.size = params->bytesize;
  Answer<cuda::Address> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) {
    ForgetNode(node);
    return error;
  }
  params->dptr = answer->address;
  PointerRange range;
  range.begin = answer->address;
  range.size = params->bytesize;
  range.kind = PointerKind::kPool;
  range.graph = true;
  range.device = params->poolProps.location.id;
  Client::Get().pointers().Add(range);
  node->own = true;
  node->allocation = *params;
  if (params->accessDescs != nullptr) {
    node->access.assign(params->accessDescs, params->accessDescs + params->accessDescCount);
  }
  node->allocation.accessDescs = node->access.data();
  node->allocation.accessDescCount = node->access.size();
  *result = node;
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------- changing

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = KernelNode(*params, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, nullptr, message);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = Newer(*params);
  return cuGraphKernelNodeSetParams_v2(node, &newer);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = KernelNode(*params, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = Newer(*params);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &newer);
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = CopyNode(*params, nullptr, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, nullptr, message);
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                                CUcontext context) {
  if (params == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = CopyNode(*params, context, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = MemsetNode(*params, nullptr, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, nullptr, message);
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  if (params == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = MemsetNode(*params, context, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  if (const CUresult error = HostNode(*params, &message); error != CUDA_SUCCESS) return error;
  const CUresult error = SetNode(node, nullptr, message);
  if (error == CUDA_SUCCESS) node->host = *params;
  return error;
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  const CUresult error = HostNode(*params, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  const CUresult error = EventNode(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, nullptr, message);
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  NodeMessage message;
  const CUresult error = EventNode(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, nullptr, message);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = EventNode(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = EventNode(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckGraph(child); error != CUDA_SUCCESS) return error;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  message.parameters.kind = CU_GRAPH_NODE_TYPE_GRAPH;
  message.parameters.graph = child->id;
  return SetNode(node, exec, message);
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(exec, Kind::kGraphExec); error != CUDA_SUCCESS) return error;
  return EnableNode(node, exec, enabled != 0);
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int* enabled) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(exec, Kind::kGraphExec); error != CUDA_SUCCESS) return error;
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(exec->mutex);
  *enabled = exec->disabled.count(node->id.raw()) == 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode node) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  cuda::Release message;
  message.object = node->id;
  const CUresult error = FromWire(Client::Get().session()->Send(message));
  ForgetNode(node);
  return error;
}

// ---------------------------------------------------------------------- looking

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!node->described) {
    cuda::DescribeNode message;
    message.node = node->id;
    Answer<cuda::NodeReply> answer;
    if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
    node->type = static_cast<CUgraphNodeType>(answer->parameters.kind);
    node->described = true;
  }
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (params == nullptr || node->host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = node->host;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::DescribeNode message;
  message.node = node->id;
  Answer<cuda::NodeReply> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  const cuda::NodeParameters& from = answer->parameters;
  if (from.kind != CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  *params = {};
  params->dst = from.address;
  params->pitch = from.pitch;
  params->value = from.value;
  params->elementSize = from.element;
  params->width = from.width;
  params->height = from.height;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode* result, size_t* count) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  std::vector<CUgraphNode> nodes;
  if (const CUresult error = List(0, graph, nullptr, &nodes, nullptr); error != CUDA_SUCCESS) return error;
  return Give(nodes, result, count);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph graph, CUgraphNode* result, size_t* count) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  std::vector<CUgraphNode> nodes;
  if (const CUresult error = List(1, graph, nullptr, &nodes, nullptr); error != CUDA_SUCCESS) return error;
  return Give(nodes, result, count);
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return Edges(graph, from, to, count);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                    size_t* count) {
  const CUresult error = Edges(graph, from, to, count);
  if (error == CUDA_SUCCESS && data != nullptr && from != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  return error;
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* result, size_t* count) {
  return Neighbours(3, node, result, count);
}
CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* result, size_t* count) {
  return Neighbours(4, node, result, count);
}
CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* result, CUgraphEdgeData* data,
                                               size_t* count) {
  const CUresult error = Neighbours(3, node, result, count);
  if (error == CUDA_SUCCESS && data != nullptr && result != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  return error;
}
CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* result, CUgraphEdgeData* data,
                                                 size_t* count) {
  const CUresult error = Neighbours(4, node, result, count);
  if (error == CUDA_SUCCESS && data != nullptr && result != nullptr) std::fill_n(data, *count, CUgraphEdgeData{});
  return error;
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return Connect(graph, from, to, count, /*add=*/true);
}
CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           size_t count) {
  return Connect(graph, from, to, count, /*add=*/false);
}
CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           const CUgraphEdgeData* data, size_t count) {
  const CUresult error = CheckEdges(data, count);
  return error != CUDA_SUCCESS ? error : Connect(graph, from, to, count, /*add=*/true);
}
CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                              const CUgraphEdgeData* data, size_t count) {
  const CUresult error = CheckEdges(data, count);
  return error != CUDA_SUCCESS ? error : Connect(graph, from, to, count, /*add=*/false);
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* result, CUgraphNode original, CUgraph clone) {
  if (const CUresult error = CheckNode(original); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckGraph(clone); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode node = NewNode(clone, original->type);
  node->described = original->described;
  node->host = original->host;
  node->host_copy = original->host_copy;
  cuda::FindNodeInClone message;
  message.node = node->id;
  message.original = original->id;
  message.clone = clone->id;
  if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) {
    ForgetNode(node);
    return error;
  }
  *result = node;
  return CUDA_SUCCESS;
}
