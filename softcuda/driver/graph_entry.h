// SPDX-License-Identifier: Apache-2.0
// What the entry points for graphs share.
#ifndef HAWSER_SOFTCUDA_DRIVER_GRAPH_ENTRY_H_
#define HAWSER_SOFTCUDA_DRIVER_GRAPH_ENTRY_H_

#include <cuda.h>

#include <vector>

#include "softcuda/driver/entry.h"

namespace hawser::soft {

CUresult FindGraph(CUgraph handle, GraphPtr* graph);
CUresult FindNode(CUgraphNode handle, NodePtr* node);
CUresult FindNodes(const CUgraphNode* handles, size_t count, std::vector<NodePtr>* nodes);
CUresult FindExecutable(CUgraphExec handle, std::shared_ptr<ExecutableGraph>* executable);
/// What the parameters have brought into being for it (memory, a child) ends when there can be no node.
CUresult AddNode(CUgraphNode* to, CUgraph graph, const CUgraphNode* before, size_t count, const Work& work);
/// Replaces the work of a node by other work of the same kind.
CUresult SetNode(CUgraphNode handle, Work work);
/// The same in an executable graph; `handle` names the node of the graph that it was made from.
CUresult SetExecutableNode(CUgraphExec executable, CUgraphNode handle, Work work);

inline CUgraphNode Handle(const Node& node) { return reinterpret_cast<CUgraphNode>(node.handle); }

/// Work of kind W of a node; null, and CUDA_ERROR_INVALID_VALUE, when the node is of another kind.
template <typename W>
CUresult GetWork(CUgraphNode handle, NodePtr* node, W** work) {
  HAWSER_TRY(FindNode(handle, node));
  *work = std::get_if<W>(&(*node)->work);
  return *work == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_GRAPH_ENTRY_H_
