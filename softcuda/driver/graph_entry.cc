// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/graph_entry.h"

#include "softcuda/driver/occupancy.h"

namespace hawser::soft {
namespace {

CUresult TryAddNode(CUgraphNode* to, CUgraph handle, const CUgraphNode* before, size_t count, const Work& work) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<NodePtr> dependencies;
  HAWSER_TRY(FindNodes(before, count, &dependencies));
  NodePtr node;
  HAWSER_TRY(graph->Add(work, dependencies, &node));
  *to = Handle(*node);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult FindGraph(CUgraph handle, GraphPtr* graph) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *graph = driver->graphs.Find(handle);
  return *graph == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult FindNode(CUgraphNode handle, NodePtr* node) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *node = driver->nodes.Find(handle);
  return *node == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult FindNodes(const CUgraphNode* handles, size_t count, std::vector<NodePtr>* nodes) {
  if (count != 0 && handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    NodePtr node;
    HAWSER_TRY(FindNode(handles[i], &node));
    nodes->push_back(std::move(node));
  }
  return CUDA_SUCCESS;
}

CUresult FindExecutable(CUgraphExec handle, std::shared_ptr<ExecutableGraph>* executable) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *executable = driver->executables.Find(handle);
  return *executable == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult AddNode(CUgraphNode* to, CUgraph handle, const CUgraphNode* before, size_t count, const Work& work) {
  const CUresult result = TryAddNode(to, handle, before, count, work);
  if (result == CUDA_SUCCESS) return result;
  // What the parameters have brought into being ends with the node that is not made.
  if (const auto* allocation = std::get_if<AllocWork>(&work)) GetDriver()->Release(allocation->allocation);
  if (const auto* child = std::get_if<ChildWork>(&work)) GetDriver()->graphs.Remove(child->graph->handle);
  return result;
}

namespace {

/// Attributes are set elsewhere: new parameters leave them as they are.
CUresult KeepAttributes(const KernelWork& from, KernelWork* to) {
  to->cooperative = from.cooperative;
  if (!from.explicit_cluster || to->explicit_cluster) return CUDA_SUCCESS;
  const ContextPtr owner = to->function->context.lock();
  return owner == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : ChooseCluster(*owner->device(), from.cluster, to);
}

}  // namespace

CUresult SetNode(CUgraphNode handle, Work work) {
  NodePtr node;
  HAWSER_TRY(FindNode(handle, &node));
  if (TypeOf(node->work) != TypeOf(work)) return CUDA_ERROR_INVALID_VALUE;
  const GraphPtr graph = node->graph.lock();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    HAWSER_TRY(KeepAttributes(std::get<KernelWork>(node->work), kernel));
  }
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

CUresult SetExecutableNode(CUgraphExec handle, CUgraphNode original, Work work) {
  std::shared_ptr<ExecutableGraph> executable;
  HAWSER_TRY(FindExecutable(handle, &executable));
  const std::lock_guard lock(executable->mutex);
  const NodePtr node = executable->graph->FindCopyInside(Number(original));
  if (node == nullptr || TypeOf(node->work) != TypeOf(work)) return CUDA_ERROR_INVALID_VALUE;
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    HAWSER_TRY(KeepAttributes(std::get<KernelWork>(node->work), kernel));
  }
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
