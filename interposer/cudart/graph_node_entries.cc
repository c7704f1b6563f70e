// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Graph Management": nodes of each kind, in graphs and in executable graphs.
#include "interposer/cudart/copy.h"
#include "interposer/cudart/entry.h"
#include "interposer/cudart/graph_params.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

// `describe(copy)` fills the driver's description; `use(driver, copy)` hands it on.
template <typename Describe, typename Use>
cudaError_t WithCopy(Describe describe, Use use) {
  return InContext([&](const Driver& driver) {
    CUDA_MEMCPY3D copy;
    const cudaError_t error = describe(driver, &copy);
    return error == cudaSuccess ? FromDriver(use(driver, copy)) : error;
  });
}

auto BoxCopy(const cudaMemcpy3DParms* parameters) {
  return [parameters](const Driver& driver, CUDA_MEMCPY3D* copy) {
    return parameters == nullptr ? cudaErrorInvalidValue : ToDriverCopy(driver, *parameters, copy);
  };
}

auto LinearCopy(void* destination, const void* source, size_t count, cudaMemcpyKind kind) {
  return [=](const Driver&, CUDA_MEMCPY3D* copy) { return ToDriverCopy(destination, source, count, kind, copy); };
}

auto ToSymbolCopy(const void* symbol, const void* source, size_t count, size_t offset, cudaMemcpyKind kind) {
  return
      [=](const Driver&, CUDA_MEMCPY3D* copy) { return ToDriverSymbolCopy(symbol, source, count, offset, kind, copy); };
}

auto FromSymbolCopy(void* destination, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  return [=](const Driver&, CUDA_MEMCPY3D* copy) {
    return FromDriverSymbolCopy(destination, symbol, count, offset, kind, copy);
  };
}

auto AddCopyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count) {
  return [=](const Driver& driver, const CUDA_MEMCPY3D& copy) {
    return driver.cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, CurrentContext(driver));
  };
}

auto SetCopyNode(cudaGraphNode_t node) {
  return
      [=](const Driver& driver, const CUDA_MEMCPY3D& copy) { return driver.cuGraphMemcpyNodeSetParams(node, &copy); };
}

auto SetExecCopyNode(cudaGraphExec_t exec, cudaGraphNode_t node) {
  return [=](const Driver& driver, const CUDA_MEMCPY3D& copy) {
    return driver.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, CurrentContext(driver));
  };
}

template <typename Use>
cudaError_t WithKernelNode(const cudaKernelNodeParams* parameters, Use use) {
  return InContext([&](const Driver& driver) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    const cudaError_t error = ToDriverKernelNode(parameters, &kernel);
    return error == cudaSuccess ? FromDriver(use(driver, kernel)) : error;
  });
}

template <typename Use>
cudaError_t WithMemsetNode(const cudaMemsetParams* parameters, Use use) {
  return InContext([&](const Driver& driver) {
    CUDA_MEMSET_NODE_PARAMS fill;
    const cudaError_t error = ToDriverMemsetNode(parameters, &fill);
    return error == cudaSuccess ? FromDriver(use(driver, fill)) : error;
  });
}

template <typename Use>
cudaError_t WithNode(const cudaGraphNodeParams* parameters, Use use) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    CUgraphNodeParams same;
    const cudaError_t error = ToDriverNode(driver, *parameters, &same);
    return error == cudaSuccess ? FromDriver(use(driver, same)) : error;
  });
}

static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));

const CUDA_HOST_NODE_PARAMS* Same(const cudaHostNodeParams* parameters) {
  return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(parameters);
}

}  // namespace

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* parameters) {
  return WithKernelNode(parameters, [&](const Driver& driver, const CUDA_KERNEL_NODE_PARAMS& kernel) {
    return driver.cuGraphAddKernelNode(node, graph, dependencies, count, &kernel);
  });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    CUDA_KERNEL_NODE_PARAMS kernel{};
    const CUresult result = driver.cuGraphKernelNodeGetParams(node, &kernel);
    return result == CUDA_SUCCESS ? FromDriverKernelNode(driver, kernel, parameters) : FromDriver(result);
  });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  return WithKernelNode(parameters, [&](const Driver& driver, const CUDA_KERNEL_NODE_PARAMS& kernel) {
    return driver.cuGraphKernelNodeSetParams(node, &kernel);
  });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return WithKernelNode(parameters, [&](const Driver& driver, const CUDA_KERNEL_NODE_PARAMS& kernel) {
    return driver.cuGraphExecKernelNodeSetParams(exec, node, &kernel);
  });
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t destination, cudaGraphNode_t source) {
  return InContext([&](const Driver& driver) { return driver.cuGraphKernelNodeCopyAttributes(destination, source); });
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue* value) {
  return InContext([&](const Driver& driver) {
    return driver.cuGraphKernelNodeGetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute),
                                                reinterpret_cast<CUkernelNodeAttrValue*>(value));
  });
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
  return InContext([&](const Driver& driver) {
    return driver.cuGraphKernelNodeSetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute),
                                                reinterpret_cast<const CUkernelNodeAttrValue*>(value));
  });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* parameters) {
  return WithCopy(BoxCopy(parameters), AddCopyNode(node, graph, dependencies, count));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t dependency_count, void* destination, const void* source, size_t count,
                                     cudaMemcpyKind kind) {
  return WithCopy(LinearCopy(destination, source, count, kind),
                  AddCopyNode(node, graph, dependencies, dependency_count));
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t dependency_count,
                                           const void* symbol, const void* source, size_t count, size_t offset,
                                           cudaMemcpyKind kind) {
  return WithCopy(ToSymbolCopy(symbol, source, count, offset, kind),
                  AddCopyNode(node, graph, dependencies, dependency_count));
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t dependency_count,
                                             void* destination, const void* symbol, size_t count, size_t offset,
                                             cudaMemcpyKind kind) {
  return WithCopy(FromSymbolCopy(destination, symbol, count, offset, kind),
                  AddCopyNode(node, graph, dependencies, dependency_count));
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return cudaErrorInvalidValue;
    CUDA_MEMCPY3D copy{};
    const CUresult result = driver.cuGraphMemcpyNodeGetParams(node, &copy);
    return result == CUDA_SUCCESS ? FromDriverCopy(driver, copy, parameters) : FromDriver(result);
  });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
  return WithCopy(BoxCopy(parameters), SetCopyNode(node));
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* destination, const void* source, size_t count,
                                           cudaMemcpyKind kind) {
  return WithCopy(LinearCopy(destination, source, count, kind), SetCopyNode(node));
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* source,
                                                 size_t count, size_t offset, cudaMemcpyKind kind) {
  return WithCopy(ToSymbolCopy(symbol, source, count, offset, kind), SetCopyNode(node));
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* destination, const void* symbol,
                                                   size_t count, size_t offset, cudaMemcpyKind kind) {
  return WithCopy(FromSymbolCopy(destination, symbol, count, offset, kind), SetCopyNode(node));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters) {
  return WithCopy(BoxCopy(parameters), SetExecCopyNode(exec, node));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* destination,
                                               const void* source, size_t count, cudaMemcpyKind kind) {
  return WithCopy(LinearCopy(destination, source, count, kind), SetExecCopyNode(exec, node));
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* source, size_t count, size_t offset,
                                                     cudaMemcpyKind kind) {
  return WithCopy(ToSymbolCopy(symbol, source, count, offset, kind), SetExecCopyNode(exec, node));
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* destination,
                                                       const void* symbol, size_t count, size_t offset,
                                                       cudaMemcpyKind kind) {
  return WithCopy(FromSymbolCopy(destination, symbol, count, offset, kind), SetExecCopyNode(exec, node));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* parameters) {
  return WithMemsetNode(parameters, [&](const Driver& driver, const CUDA_MEMSET_NODE_PARAMS& fill) {
    return driver.cuGraphAddMemsetNode(node, graph, dependencies, count, &fill, CurrentContext(driver));
  });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS fill{};
    const CUresult result = driver.cuGraphMemsetNodeGetParams(node, &fill);
    if (result == CUDA_SUCCESS) {
      *parameters = {
          reinterpret_cast<void*>(fill.dst), fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
    }
    return result;
  });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  return WithMemsetNode(parameters, [&](const Driver& driver, const CUDA_MEMSET_NODE_PARAMS& fill) {
    return driver.cuGraphMemsetNodeSetParams(node, &fill);
  });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
  return WithMemsetNode(parameters, [&](const Driver& driver, const CUDA_MEMSET_NODE_PARAMS& fill) {
    return driver.cuGraphExecMemsetNodeSetParams(exec, node, &fill, CurrentContext(driver));
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t count, const cudaHostNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphAddHostNode(node, graph, dependencies, count, Same(parameters));
  });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphHostNodeGetParams(node, reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuGraphHostNodeSetParams(node, Same(parameters));
  });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE
                                 : driver.cuGraphExecHostNodeSetParams(exec, node, Same(parameters));
  });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t count, cudaGraph_t child) {
  return InContext(
      [&](const Driver& driver) { return driver.cuGraphAddChildGraphNode(node, graph, dependencies, count, child); });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
  return InContext([&](const Driver& driver) { return driver.cuGraphChildGraphNodeGetGraph(node, child); });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return InContext([&](const Driver& driver) { return driver.cuGraphExecChildGraphNodeSetParams(exec, node, child); });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) {
  return InContext([&](const Driver& driver) { return driver.cuGraphAddEmptyNode(node, graph, dependencies, count); });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                        size_t count, cudaEvent_t event) {
  return InContext(
      [&](const Driver& driver) { return driver.cuGraphAddEventRecordNode(node, graph, dependencies, count, event); });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return InContext([&](const Driver& driver) { return driver.cuGraphEventRecordNodeGetEvent(node, event); });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return InContext([&](const Driver& driver) { return driver.cuGraphEventRecordNodeSetEvent(node, event); });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return InContext([&](const Driver& driver) { return driver.cuGraphExecEventRecordNodeSetEvent(exec, node, event); });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                      size_t count, cudaEvent_t event) {
  return InContext(
      [&](const Driver& driver) { return driver.cuGraphAddEventWaitNode(node, graph, dependencies, count, event); });
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return InContext([&](const Driver& driver) { return driver.cuGraphEventWaitNodeGetEvent(node, event); });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return InContext([&](const Driver& driver) { return driver.cuGraphEventWaitNodeSetEvent(node, event); });
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return InContext([&](const Driver& driver) { return driver.cuGraphExecEventWaitNodeSetEvent(exec, node, event); });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, cudaMemAllocNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphAddMemAllocNode(node, graph, dependencies, count,
                                         reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* parameters) {
  return InContext([&](const Driver& driver) {
    if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphMemAllocNodeGetParams(node, reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(parameters));
  });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                    size_t count, void* pointer) {
  return InContext([&](const Driver& driver) {
    return driver.cuGraphAddMemFreeNode(node, graph, dependencies, count, Address(pointer));
  });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return InContext([&](const Driver& driver) {
    if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(pointer));
  });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  return WithNode(parameters, [&](const Driver& driver, CUgraphNodeParams& same) {
    return driver.cuGraphNodeSetParams(node, &same);
  });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  return WithNode(parameters, [&](const Driver& driver, CUgraphNodeParams& same) {
    return driver.cuGraphExecNodeSetParams(exec, node, &same);
  });
}

}  // extern "C"
