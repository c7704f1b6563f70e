// SPDX-License-Identifier: Apache-2.0
// What graphs look like, and what their nodes do: as it was given for nodes that this process made itself, else as the
// server knows it.
#include <cstdio>
#include <memory>
#include <string_view>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult CheckKind(CUgraphNode node, CUgraphNodeType type) {
  CUgraphNodeType actual{};
  if (const CUresult error = cuGraphNodeGetType(node, &actual); error != CUDA_SUCCESS) return error;
  return actual == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult GetEvent(CUgraphNode node, CUgraphNodeType type, CUevent* event) {
  if (const CUresult error = CheckKind(node, type); error != CUDA_SUCCESS) return error;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = node->event;
  return node->event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::DrawGraph message;
  message.graph = graph->id;
  message.flags = flags;
  Answer<cuda::Drawing> drawing;
  if (const CUresult error = drawing.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "we"), &std::fclose);
  const std::string_view text = drawing->text;
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckKind(node, CU_GRAPH_NODE_TYPE_KERNEL); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!node->own) {
    static std::atomic_flag said;
    return RefuseOnce("cuGraphKernelNodeGetParams", "of a captured node its parameters are not known here", &said);
  }
  *params = node->kernel;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS newer{};
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = cuGraphKernelNodeGetParams_v2(node, &newer); error != CUDA_SUCCESS) return error;
  *params = {newer.func,      newer.gridDimX,  newer.gridDimY,       newer.gridDimZ,     newer.blockDimX,
             newer.blockDimY, newer.blockDimZ, newer.sharedMemBytes, newer.kernelParams, newer.extra};
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckKind(node, CU_GRAPH_NODE_TYPE_MEMCPY); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!node->own) return CUDA_ERROR_NOT_SUPPORTED;
  *params = node->copy;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  return GetEvent(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  return GetEvent(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckKind(node, CU_GRAPH_NODE_TYPE_GRAPH); error != CUDA_SUCCESS) return error;
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (node->child == nullptr) {
    CUgraph graph = NewGraph();
    graph->is_child = true;
    cuda::DescribeNode message;
    message.node = node->id;
    message.child = graph->id;
    Answer<cuda::NodeReply> answer;
    if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) {
      ForgetGraph(graph);
      return error;
    }
    node->child = graph;
  }
  *child = node->child;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckKind(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!node->own) {
    cuda::DescribeNode message;
    message.node = node->id;
    Answer<cuda::NodeReply> answer;
    if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
    CUDA_MEM_ALLOC_NODE_PARAMS& allocation = node->allocation;
    allocation = {};
    allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    allocation.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    allocation.poolProps.location.id = static_cast<int>(answer->parameters.device);
    allocation.bytesize = answer->parameters.size;
    allocation.dptr = answer->parameters.address;
  }
  *params = node->allocation;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  cuda::DescribeNode message;
  message.node = node->id;
  Answer<cuda::NodeReply> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  if (answer->parameters.kind != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_ERROR_INVALID_VALUE;
  *address = answer->parameters.address;
  return CUDA_SUCCESS;
}
