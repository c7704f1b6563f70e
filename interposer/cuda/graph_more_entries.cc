// SPDX-License-Identifier: Apache-2.0
// Parameters of nodes by the general union, memory of graphs, objects whose life graphs prolong.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

struct CUuserObject_st {
  void* data;
  CUhostFn destroy;
  std::atomic<unsigned> references;
};

namespace {

CUDA_KERNEL_NODE_PARAMS Kernel(const CUgraphNodeParams& from) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = from.kernel.func;
  kernel.kern = from.kernel.kern;
  kernel.ctx = from.kernel.ctx;
  kernel.gridDimX = from.kernel.gridDimX;
  kernel.gridDimY = from.kernel.gridDimY;
  kernel.gridDimZ = from.kernel.gridDimZ;
  kernel.blockDimX = from.kernel.blockDimX;
  kernel.blockDimY = from.kernel.blockDimY;
  kernel.blockDimZ = from.kernel.blockDimZ;
  kernel.sharedMemBytes = from.kernel.sharedMemBytes;
  kernel.kernelParams = from.kernel.kernelParams;
  kernel.extra = from.kernel.extra;
  return kernel;
}

CUDA_MEMSET_NODE_PARAMS Memset(const CUgraphNodeParams& from) {
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = from.memset.dst;
  memset.pitch = from.memset.pitch;
  memset.value = from.memset.value;
  memset.elementSize = from.memset.elementSize;
  memset.width = from.memset.width;
  memset.height = from.memset.height;
  return memset;
}

CUDA_BATCH_MEM_OP_NODE_PARAMS Batch(const CUgraphNodeParams& params) {
  return {params.memOp.ctx, params.memOp.count, params.memOp.paramArray, params.memOp.flags};
}

CUDA_HOST_NODE_PARAMS Host(const CUgraphNodeParams& from) {
  CUDA_HOST_NODE_PARAMS host{};
  host.fn = from.host.fn;
  host.userData = from.host.userData;
  return host;
}

/// References that graphs hold: the last one's end runs the destructor.
CUresult Drop(CUuserObject object, unsigned count) {
  unsigned references = object->references.load();
  do {
    if (count == 0 || count > references) return CUDA_ERROR_INVALID_VALUE;
  } while (!object->references.compare_exchange_weak(references, references - count));
  if (references == count) {
    // Not on a thread of the application, as the API has it.
    Client::Get().session()->PostCallback([object] {
      object->destroy(object->data);
      delete object;
    });
  }
  return CUDA_SUCCESS;
}

template <typename Holder>
void DropAll(Holder& holder) {
  std::map<CUuserObject, unsigned> objects;
  {
    std::lock_guard lock(holder.mutex);
    objects.swap(holder.user_objects);
  }
  for (const auto& [object, count] : objects) (void)Drop(object, count);
}

}  // namespace

namespace hawser::cu {

void DropUserObjects(CUgraph_st* graph) { DropAll(*graph); }
void DropUserObjects(CUgraphExec_st* exec) { DropAll(*exec); }

void ShareUserObjects(CUgraph_st* graph, CUgraphExec_st* exec) {
  std::map<CUuserObject, unsigned> objects;
  {
    std::lock_guard lock(graph->mutex);
    objects = graph->user_objects;
    for (const auto& [object, count] : objects) object->references.fetch_add(count);
  }
  std::lock_guard lock(exec->mutex);
  for (const auto& [object, count] : objects) exec->user_objects[object] += count;
}

}  // namespace hawser::cu

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                   const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckEdges(edges, count); error != CUDA_SUCCESS) return error;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS kernel = Kernel(*params);
      return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return cuGraphAddMemcpyNode(node, graph, dependencies, count, &params->memcpy.copyParams, params->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS memset = Memset(*params);
      return cuGraphAddMemsetNode(node, graph, dependencies, count, &memset, params->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = Host(*params);
      return cuGraphAddHostNode(node, graph, dependencies, count, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return cuGraphAddChildGraphNode(node, graph, dependencies, count, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return cuGraphAddEmptyNode(node, graph, dependencies, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return cuGraphAddEventWaitNode(node, graph, dependencies, count, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuGraphAddEventRecordNode(node, graph, dependencies, count, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return cuGraphAddMemFreeNode(node, graph, dependencies, count, params->free.dptr);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
      alloc.poolProps = params->alloc.poolProps;
      alloc.accessDescs = params->alloc.accessDescs;
      alloc.accessDescCount = params->alloc.accessDescCount;
      alloc.bytesize = params->alloc.bytesize;
      const CUresult error = cuGraphAddMemAllocNode(node, graph, dependencies, count, &alloc);
      params->alloc.dptr = alloc.dptr;
      return error;
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return AddConditionalNode(node, graph, dependencies, count, &params->conditional);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = Batch(*params);
      return cuGraphAddBatchMemOpNode(node, graph, dependencies, count, &batch);
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS kernel = Kernel(*params);
      return cuGraphKernelNodeSetParams_v2(node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return cuGraphMemcpyNodeSetParams(node, &params->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS memset = Memset(*params);
      return cuGraphMemsetNodeSetParams(node, &memset);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = Host(*params);
      return cuGraphHostNodeSetParams(node, &host);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return cuGraphEventWaitNodeSetEvent(node, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuGraphEventRecordNodeSetEvent(node, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = Batch(*params);
      return cuGraphBatchMemOpNodeSetParams(node, &batch);
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS kernel = Kernel(*params);
      return cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return cuGraphExecMemcpyNodeSetParams(exec, node, &params->memcpy.copyParams, params->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS memset = Memset(*params);
      return cuGraphExecMemsetNodeSetParams(exec, node, &memset, params->memset.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = Host(*params);
      return cuGraphExecHostNodeSetParams(exec, node, &host);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return cuGraphExecChildGraphNodeSetParams(exec, node, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return cuGraphExecEventWaitNodeSetEvent(exec, node, params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuGraphExecEventRecordNodeSetEvent(exec, node, params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = Batch(*params);
      return cuGraphExecBatchMemOpNodeSetParams(exec, node, &batch);
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* result, void* data, CUhostFn destroy, unsigned int references,
                                    unsigned int flags) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || destroy == nullptr || references == 0 || references > INT32_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
  *result = new CUuserObject_st{data, destroy, {references}};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (object == nullptr || count == 0 || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  object->references.fetch_add(count);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return object == nullptr ? CUDA_ERROR_INVALID_VALUE : Drop(object, count);
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (object == nullptr || count == 0 || count > INT32_MAX || flags > CU_GRAPH_USER_OBJECT_MOVE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->references.fetch_add(count);
  std::lock_guard lock(graph->mutex);
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  {
    std::lock_guard lock(graph->mutex);
    const auto found = graph->user_objects.find(object);
    if (found == graph->user_objects.end() || found->second < count) return CUDA_ERROR_INVALID_VALUE;
    found->second -= count;
    if (found->second == 0) graph->user_objects.erase(found);
  }
  return Drop(object, count);
}
