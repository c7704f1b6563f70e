// SPDX-License-Identifier: Apache-2.0
// cuGraph*BatchMemOpNode*: nodes that wait for values in memory and write them.
#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/node_commands.h"
#include "interposer/cuda/stream_values.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                          size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = BatchNode(*params, &message);
  return error != CUDA_SUCCESS ? error : AddNode(node, graph, dependencies, count, message);
}

CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (node->batch.empty()) {  // Captured, or of another type.
    cuda::DescribeNode message;
    message.node = node->id;
    Answer<cuda::NodeReply> answer;
    if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
    if (answer->parameters.kind != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUstreamBatchMemOpParams> batch;
    answer->parameters.values.ForEach([&](const cuda::StreamValue& value) { batch.push_back(FromWire(value)); });
    node->batch = std::move(batch);
  }
  *params = {};
  params->count = static_cast<unsigned>(node->batch.size());
  params->paramArray = node->batch.data();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = BatchNode(*params, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, nullptr, message);
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  if (params == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeMessage message;
  const CUresult error = BatchNode(*params, &message);
  return error != CUDA_SUCCESS ? error : SetNode(node, exec, message);
}
