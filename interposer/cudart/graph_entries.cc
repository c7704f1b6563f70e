// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Graph Management": graphs as a whole, their shape, and running them.
#include "interposer/cudart/entry.h"
#include "interposer/cudart/graph_params.h"
#include "interposer/cudart/versioned.h"

namespace hawser::cudart {
namespace {

static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));

const CUgraphEdgeData* Edges(const cudaGraphEdgeData* edges) { return reinterpret_cast<const CUgraphEdgeData*>(edges); }
CUgraphEdgeData* Edges(cudaGraphEdgeData* edges) { return reinterpret_cast<CUgraphEdgeData*>(edges); }

}  // namespace

cudaError_t GraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                 const cudaGraphEdgeData* edges, size_t count) {
  return InContext(
      [&](const Driver& driver) { return driver.cuGraphAddDependencies(graph, from, to, Edges(edges), count); });
}

cudaError_t GraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    const cudaGraphEdgeData* edges, size_t count) {
  return InContext(
      [&](const Driver& driver) { return driver.cuGraphRemoveDependencies(graph, from, to, Edges(edges), count); });
}

cudaError_t GraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                          size_t* count) {
  return InContext([&](const Driver& driver) {
    return count == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphGetEdges(graph, from, to, Edges(edges), count);
  });
}

cudaError_t GraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                     size_t* count) {
  return InContext([&](const Driver& driver) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphNodeGetDependencies(node, dependencies, Edges(edges), count);
  });
}

cudaError_t GraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
                                       size_t* count) {
  return InContext([&](const Driver& driver) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphNodeGetDependentNodes(node, dependents, Edges(edges), count);
  });
}

cudaError_t GraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (node == nullptr || parameters == nullptr) return cudaErrorInvalidValue;
    CUgraphNodeParams same;
    if (const cudaError_t error = ToDriverNode(driver, *parameters, &same); error != cudaSuccess) return error;
    const CUresult result = driver.cuGraphAddNode(node, graph, dependencies, Edges(edges), count, &same);
    // Two kinds of node answer in their parameters.
    if (result == CUDA_SUCCESS && parameters->type == cudaGraphNodeTypeMemAlloc) {
      parameters->alloc.dptr = reinterpret_cast<void*>(same.alloc.dptr);
    }
    if (result == CUDA_SUCCESS && parameters->type == cudaGraphNodeTypeConditional) {
      parameters->conditional.phGraph_out = same.conditional.phGraph_out;
    }
    return FromDriver(result);
  });
}

}  // namespace hawser::cudart

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return InContext([&](const Driver& driver) {
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphCreate(graph, flags);
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return InContext([&](const Driver& driver) { return driver.cuGraphDestroy(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return InContext([&](const Driver& driver) {
    return clone == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphClone(clone, graph);
  });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return InContext([&](const Driver& driver) { return driver.cuGraphNodeFindInClone(node, original, clone); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return InContext([&](const Driver& driver) {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto answer = CU_GRAPH_NODE_TYPE_EMPTY;
    const CUresult result = driver.cuGraphNodeGetType(node, &answer);
    if (result == CUDA_SUCCESS) *type = static_cast<cudaGraphNodeType>(answer);
    return result;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return InContext([&](const Driver& driver) {
    return count == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphGetNodes(graph, nodes, count);
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return InContext([&](const Driver& driver) {
    return count == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphGetRootNodes(graph, nodes, count);
  });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return InContext([&](const Driver& driver) { return driver.cuGraphDestroyNode(node); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return InContext([&](const Driver& driver) {
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphInstantiateWithFlags(exec, graph, flags);
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (exec == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto* same = reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(parameters);
    const CUstream given = same->hUploadStream;
    same->hUploadStream = Resolve(given);
    const CUresult result = driver.cuGraphInstantiateWithParams(exec, graph, same);
    same->hUploadStream = given;
    return result;
  });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return InContext([&](const Driver& driver) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cuuint64_t answer = 0;
    const CUresult result = driver.cuGraphExecGetFlags(exec, &answer);
    if (result == CUDA_SUCCESS) *flags = answer;
    return result;
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return InContext([&](const Driver& driver) {
    if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphExecUpdate(exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(info));
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return InContext([&](const Driver& driver) { return driver.cuGraphUpload(exec, Resolve(stream)); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return InContext([&](const Driver& driver) { return driver.cuGraphLaunch(exec, Resolve(stream)); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return InContext([&](const Driver& driver) { return driver.cuGraphExecDestroy(exec); });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return InContext([&](const Driver& driver) { return driver.cuGraphNodeSetEnabled(exec, node, enabled); });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return InContext([&](const Driver& driver) { return driver.cuGraphNodeGetEnabled(exec, node, enabled); });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  return InContext([&](const Driver& driver) {
    return path == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphDebugDotPrint(graph, path, flags);
  });
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned default_value, unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUgraphConditionalHandle answer = 0;
    const CUresult result =
        driver.cuGraphConditionalHandleCreate(&answer, graph, CurrentContext(driver), default_value, flags);
    if (result == CUDA_SUCCESS) *handle = answer;
    return result;
  });
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags) {
  return InContext([&](const Driver& driver) {
    if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuUserObjectCreate(object, pointer, destroy, references, flags);
  });
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return InContext([&](const Driver& driver) { return driver.cuUserObjectRetain(object, count); });
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return InContext([&](const Driver& driver) { return driver.cuUserObjectRelease(object, count); });
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  return InContext([&](const Driver& driver) { return driver.cuGraphRetainUserObject(graph, object, count, flags); });
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return InContext([&](const Driver& driver) { return driver.cuGraphReleaseUserObject(graph, object, count); });
}

cudaError_t cudaDeviceGraphMemTrim(int ordinal) {
  return WithDevice(ordinal,
                    [](Device& device) { return Runtime::Get().driver().cuDeviceGraphMemTrim(device.handle()); });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int ordinal, cudaGraphMemAttributeType attribute, void* value) {
  return WithDevice(ordinal, [&](Device& device) {
    return Runtime::Get().driver().cuDeviceGetGraphMemAttribute(device.handle(),
                                                                static_cast<CUgraphMem_attribute>(attribute), value);
  });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int ordinal, cudaGraphMemAttributeType attribute, void* value) {
  return WithDevice(ordinal, [&](Device& device) {
    return Runtime::Get().driver().cuDeviceSetGraphMemAttribute(device.handle(),
                                                                static_cast<CUgraphMem_attribute>(attribute), value);
  });
}

}  // extern "C"
