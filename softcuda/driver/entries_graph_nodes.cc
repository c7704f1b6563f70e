// SPDX-License-Identifier: Apache-2.0
// Entry points: nodes of graphs by kind.
#include "softcuda/driver/conditional.h"
#include "softcuda/driver/graph_entry.h"
#include "softcuda/driver/node_params.h"
#include "softcuda/driver/occupancy.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

/// Adds a node made from parameters.
template <typename P>
CUresult Add(CUgraphNode* to, CUgraph graph, const CUgraphNode* before, size_t count, const P* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HAWSER_TRY(ToWork(*params, &work));
  return AddNode(to, graph, before, count, work);
}

template <typename P>
CUresult Set(CUgraphNode node, const P* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HAWSER_TRY(ToWork(*params, &work));
  return SetNode(node, std::move(work));
}

template <typename P>
CUresult SetInExecutable(CUgraphExec executable, CUgraphNode node, const P* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HAWSER_TRY(ToWork(*params, &work));
  return SetExecutableNode(executable, node, std::move(work));
}

CUresult AddEvent(CUgraphNode* to, CUgraph graph, const CUgraphNode* before, size_t count, CUevent event, bool record) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  Work work;
  HAWSER_TRY(EventWork(event, record, &work));
  return AddNode(to, graph, before, count, work);
}

CUresult SetEvent(CUgraphNode node, CUevent event, bool record) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  Work work;
  HAWSER_TRY(EventWork(event, record, &work));
  return SetNode(node, std::move(work));
}

CUresult SetEventInExecutable(CUgraphExec executable, CUgraphNode node, CUevent event, bool record) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  Work work;
  HAWSER_TRY(EventWork(event, record, &work));
  return SetExecutableNode(executable, node, std::move(work));
}

/// Whether kernel nodes have it. All but "cooperative" and the size of clusters change nothing here, and read as
/// nought.
CUresult CheckAttribute(CUkernelNodeAttrID attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return CUDA_ERROR_NOT_SUPPORTED;  // Kernels change no graphs here.
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult SetCluster(const std::array<uint32_t, 3>& cluster, KernelWork* work) {
  const ContextPtr owner = work->function->context.lock();
  return owner == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : ChooseCluster(*owner->device(), cluster, work);
}

CUresult AddConditional(CUgraphNode* to, CUgraph handle, const CUgraphNode* before, size_t count,
                        CUDA_CONDITIONAL_NODE_PARAMS* params) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<NodePtr> dependencies;
  HAWSER_TRY(FindNodes(before, count, &dependencies));
  NodePtr node;
  HAWSER_TRY(AddConditionalNode(graph, dependencies, params, &node));
  *to = Handle(*node);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                         const CUDA_KERNEL_NODE_PARAMS* params) {
  return Add(node, graph, before, count, params);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = Newer(*params);
  return Add(node, graph, before, count, &newer);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* params) {
  NodePtr node;
  KernelWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = KernelParams(node.get());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  NodePtr node;
  KernelWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = Older(KernelParams(node.get()));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return Set(node, params);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = Newer(*params);
  return Set(node, &newer);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS* params) {
  return SetInExecutable(executable, node, params);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS newer = Newer(*params);
  return SetInExecutable(executable, node, &newer);
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                               CUkernelNodeAttrValue* value) {
  NodePtr node;
  KernelWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckAttribute(attribute));
  *value = {};
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = work->cooperative ? 1 : 0;
  if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && work->explicit_cluster) {
    value->clusterDim.x = work->cluster[0];
    value->clusterDim.y = work->cluster[1];
    value->clusterDim.z = work->cluster[2];
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                               const CUkernelNodeAttrValue* value) {
  NodePtr node;
  KernelWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HAWSER_TRY(CheckAttribute(attribute));
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) work->cooperative = value->cooperative != 0;
  if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    return SetCluster({value->clusterDim.x, value->clusterDim.y, value->clusterDim.z}, work);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  NodePtr target;
  NodePtr source;
  KernelWork* target_work = nullptr;
  KernelWork* source_work = nullptr;
  HAWSER_TRY(GetWork(to, &target, &target_work));
  HAWSER_TRY(GetWork(from, &source, &source_work));
  target_work->cooperative = source_work->cooperative;
  return source_work->explicit_cluster ? SetCluster(source_work->cluster, target_work) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                      const CUDA_MEMCPY3D* params, CUcontext) {
  return Add(node, graph, before, count, params);
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  NodePtr node;
  CopyWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = work->copy;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) { return Set(node, params); }

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                                CUcontext) {
  return SetInExecutable(executable, node, params);
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return Add(node, graph, before, count, params);
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* params) {
  NodePtr node;
  MemsetWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = work->set;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return Set(node, params);
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return SetInExecutable(executable, node, params);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* params) {
  return Add(node, graph, before, count, params);
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* params) {
  NodePtr node;
  HostWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {work->function, work->data};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return Set(node, params);
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                              const CUDA_HOST_NODE_PARAMS* params) {
  return SetInExecutable(executable, node, params);
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count) {
  return AddNode(node, graph, before, count, EmptyWork{});
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                          CUgraph child) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  Work work;
  HAWSER_TRY(ChildGraphWork(child, &work));
  return AddNode(node, graph, before, count, work);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  NodePtr node;
  ChildWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (work->graph->handle == 0) {  // Of a captured launch, or inside of a child.
    work->graph->is_child = true;
    GetDriver()->graphs.Add(work->graph);
  }
  *graph = reinterpret_cast<CUgraph>(work->graph->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const GraphPtr graph = driver->graphs.Find(child);
  GraphPtr copy = graph == nullptr || graph->HasConditionals() ? nullptr : graph->Clone();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetExecutableNode(executable, node, ChildWork{std::move(copy)});
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                           CUevent event) {
  return AddEvent(node, graph, before, count, event, true);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* event) {
  NodePtr node;
  EventRecordWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(work->event->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) { return SetEvent(node, event, true); }

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return SetEventInExecutable(executable, node, event, true);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                         CUevent event) {
  return AddEvent(node, graph, before, count, event, false);
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* event) {
  NodePtr node;
  EventWaitWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = reinterpret_cast<CUevent>(work->event->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) { return SetEvent(node, event, false); }

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return SetEventInExecutable(executable, node, event, false);
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                        CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HAWSER_TRY(AllocationWork(params, &work));
  return AddNode(node, graph, before, count, work);
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  NodePtr node;
  AllocWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = work->params;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                       CUdeviceptr address) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  Work work;
  HAWSER_TRY(ReleaseWork(address, &work));
  return AddNode(node, graph, before, count, work);
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  NodePtr node;
  FreeWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *address = work->address;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return Add(node, graph, before, count, params);
}

CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  NodePtr node;
  MemoryOperationsWork* work = nullptr;
  HAWSER_TRY(GetWork(handle, &node, &work));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *params = {};
  params->count = static_cast<unsigned>(work->operations.size());
  params->paramArray = work->operations.data();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return Set(node, params);
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return SetInExecutable(executable, node, params);
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData*,
                                   size_t count, CUgraphNodeParams* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return AddConditional(node, graph, before, count, &params->conditional);
  }
  Work work;
  HAWSER_TRY(ToWork(params, &work));
  return AddNode(node, graph, before, count, work);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                                CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(node, graph, before, nullptr, count, params);
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HAWSER_TRY(ToWork(params, &work));
  return SetNode(node, std::move(work));
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraphNodeParams* params) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  HAWSER_TRY(ToWork(params, &work));
  return SetExecutableNode(executable, node, std::move(work));
}

}  // extern "C"
