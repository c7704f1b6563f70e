// SPDX-License-Identifier: Apache-2.0
// Entry points: graphs as a whole, their edges, executable graphs, user objects.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "softcuda/driver/graph_drawing.h"
#include "softcuda/driver/graph_entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

/// Gives a list as these calls do: with a null array only the number; else as many as fit, the rest of the array null.
CUresult GiveNodes(const std::vector<Node*>& nodes, CUgraphNode* to, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (to != nullptr) {
    for (size_t i = 0; i < *count; ++i) to[i] = i < nodes.size() ? Handle(*nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return CUDA_SUCCESS;
}

std::vector<Node*> Borrow(const std::vector<NodePtr>& nodes) {
  std::vector<Node*> borrowed;
  for (const NodePtr& node : nodes) borrowed.push_back(node.get());
  return borrowed;
}

void ClearEdges(CUgraphEdgeData* edges, size_t count) {
  if (edges != nullptr) std::fill_n(edges, count, CUgraphEdgeData{});
}

CUresult Edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges, size_t* count) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  size_t total = 0;
  const std::lock_guard lock(graph->mutex);
  for (const NodePtr& node : graph->nodes()) {
    for (const Node* next : node->after) {
      if (from != nullptr && total < *count) {
        from[total] = Handle(*node);
        to[total] = Handle(*next);
      }
      ++total;
    }
  }
  if (from == nullptr) {
    *count = total;
    return CUDA_SUCCESS;
  }
  for (size_t i = total; i < *count; ++i) from[i] = to[i] = nullptr;
  ClearEdges(edges, *count);
  *count = std::min(*count, total);
  return CUDA_SUCCESS;
}

CUresult Neighbours(CUgraphNode handle, CUgraphNode* to, CUgraphEdgeData* edges, size_t* count, bool before) {
  NodePtr node;
  HAWSER_TRY(FindNode(handle, &node));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ClearEdges(edges, to == nullptr ? 0 : *count);
  return GiveNodes(before ? node->before : node->after, to, count);
}

CUresult ChangeEdges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count, bool add) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  std::vector<NodePtr> sources;
  std::vector<NodePtr> targets;
  HAWSER_TRY(FindNodes(from, count, &sources));
  HAWSER_TRY(FindNodes(to, count, &targets));
  for (size_t i = 0; i < count; ++i) {
    if (sources[i]->graph.lock() != graph || targets[i]->graph.lock() != graph) return CUDA_ERROR_INVALID_VALUE;
    HAWSER_TRY(add ? graph->Connect(sources[i].get(), targets[i].get())
                   : graph->Disconnect(sources[i].get(), targets[i].get()));
  }
  return CUDA_SUCCESS;
}

CUresult Instantiate(CUgraphExec* to, CUgraph handle, unsigned long long flags,
                     CUgraphInstantiateResult* reason = nullptr) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  constexpr unsigned long long kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto executable = std::make_shared<ExecutableGraph>();
  {
    const std::lock_guard lock(graph->mutex);
    // Graphs with conditional nodes are instantiated once at a time.
    if (graph->HasConditionals() && graph->executable.lock() != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!graph->UsesItsConditions()) {
      if (reason != nullptr) *reason = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
      return CUDA_ERROR_INVALID_VALUE;
    }
    executable->graph = graph->Clone();
    if (executable->graph == nullptr) {  // A circle.
      if (reason != nullptr) *reason = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
      return CUDA_ERROR_INVALID_VALUE;
    }
    graph->executable = executable;
  }
  executable->source = graph->handle;
  executable->flags = flags;
  *to = reinterpret_cast<CUgraphExec>(GetDriver()->executables.Add(executable));
  return CUDA_SUCCESS;
}

/// Position of a node among its graph's.
size_t IndexOf(const std::vector<NodePtr>& nodes, const Node* node) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [node](const NodePtr& n) { return n.get() == node; });
  return static_cast<size_t>(found - nodes.begin());
}

/// In what two graphs differ that an update cannot change.
CUgraphExecUpdateResult Compare(const Graph& our_graph, const Graph& their_graph, Node** culprit) {
  const auto& ours = our_graph.nodes();
  const auto& theirs = their_graph.nodes();
  if (ours.size() != theirs.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (size_t i = 0; i < ours.size(); ++i) {
    *culprit = theirs[i].get();
    if (TypeOf(ours[i]->work) != TypeOf(theirs[i]->work)) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (ours[i]->before.size() != theirs[i]->before.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t k = 0; k < ours[i]->before.size(); ++k) {
      if (IndexOf(ours, ours[i]->before[k]) != IndexOf(theirs, theirs[i]->before[k])) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
      }
    }
    const auto* const our_choice = std::get_if<ConditionalWork>(&ours[i]->work);
    const auto* const their_choice = std::get_if<ConditionalWork>(&theirs[i]->work);
    if (our_choice == nullptr) continue;
    if (our_choice->type != their_choice->type || our_choice->bodies.size() != their_choice->bodies.size()) {
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
    for (size_t k = 0; k < our_choice->bodies.size(); ++k) {
      const auto result = Compare(*our_choice->bodies[k], *their_choice->bodies[k], culprit);
      if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return result;
    }
  }
  *culprit = nullptr;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/// Takes over the work of a graph of the same shape.
void TakeOver(const Graph& from, Graph* to) {
  const auto& ours = to->nodes();
  const auto& theirs = from.nodes();
  for (size_t i = 0; i < ours.size(); ++i) {
    ours[i]->original = theirs[i]->handle;
    Work work = theirs[i]->work;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = child->graph->Clone();
    if (const auto* choice = std::get_if<ConditionalWork>(&work)) {
      auto& our_choice = std::get<ConditionalWork>(ours[i]->work);
      our_choice.condition = choice->condition;
      for (size_t k = 0; k < choice->bodies.size(); ++k) TakeOver(*choice->bodies[k], our_choice.bodies[k].get());
      continue;
    }
    ours[i]->work = std::move(work);
  }
}

/// Something of the program's that lives as long as a count of references.
struct UserObject {
  uint64_t handle = 0;
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  std::atomic<int64_t> references{0};
};

HandleTable<UserObject>& UserObjects() {
  static auto* const objects = new HandleTable<UserObject>;
  return *objects;
}

void Drop(const std::shared_ptr<UserObject>& object, unsigned count) {
  if (object->references.fetch_sub(count) > static_cast<int64_t>(count)) return;
  UserObjects().Remove(object->handle);
  object->destroy(object->data);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphCreate(CUgraph* to, unsigned int flags) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (to == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *to = reinterpret_cast<CUgraph>(driver->graphs.Add(std::make_shared<Graph>()));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const GraphPtr found = driver->graphs.Find(graph);
  if (found == nullptr || found->is_child || found->IsBody())
    return CUDA_ERROR_INVALID_VALUE;  // Those are their nodes'.
  driver->graphs.Remove(graph);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphClone(CUgraph* to, CUgraph handle) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  if (to == nullptr || graph->HasConditionals()) return CUDA_ERROR_INVALID_VALUE;
  GraphPtr copy = graph->Clone();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *to = reinterpret_cast<CUgraph>(GetDriver()->graphs.Add(std::move(copy)));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* to, CUgraphNode original, CUgraph clone) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(clone, &graph));
  const NodePtr node = graph->FindCopy(Number(original));
  if (to == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *to = Handle(*node);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  NodePtr node;
  HAWSER_TRY(FindNode(handle, &node));
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = TypeOf(node->work);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  return GiveNodes(Borrow(graph->nodes()), nodes, count);
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  return GiveNodes(Borrow(graph->Roots()), nodes, count);
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return Edges(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                                    size_t* count) {
  return Edges(graph, from, to, edges, count);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* to, size_t* count) {
  return Neighbours(node, to, nullptr, count, true);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* to, CUgraphEdgeData* edges,
                                               size_t* count) {
  return Neighbours(node, to, edges, count, true);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* to, size_t* count) {
  return Neighbours(node, to, nullptr, count, false);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* to, CUgraphEdgeData* edges,
                                                 size_t* count) {
  return Neighbours(node, to, edges, count, false);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return ChangeEdges(graph, from, to, count, true);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           const CUgraphEdgeData*, size_t count) {
  return ChangeEdges(graph, from, to, count, true);
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                           size_t count) {
  return ChangeEdges(graph, from, to, count, false);
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                              const CUgraphEdgeData*, size_t count) {
  return ChangeEdges(graph, from, to, count, false);
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode handle) {
  NodePtr node;
  HAWSER_TRY(FindNode(handle, &node));
  const GraphPtr graph = node->graph.lock();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  graph->Remove(node);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return Instantiate(executable, graph, flags);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* culprit, char* log,
                                    size_t bytes) {
  if (culprit != nullptr) *culprit = nullptr;
  if (log != nullptr && bytes != 0) *log = '\0';
  return Instantiate(executable, graph, 0);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* culprit, char* log,
                                       size_t bytes) {
  return cuGraphInstantiate(executable, graph, culprit, log, bytes);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_ERROR;
  const CUresult result = Instantiate(executable, graph, params->flags, &reason);
  params->hErrNode_out = nullptr;
  params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : reason;
  return result;
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  std::shared_ptr<ExecutableGraph> executable;
  HAWSER_TRY(FindExecutable(handle, &executable));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = executable->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec executable) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  return driver->executables.Remove(executable) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<ExecutableGraph> executable;
  HAWSER_TRY(FindExecutable(handle, &executable));
  StreamPtr stream;
  HAWSER_TRY(GetStream(stream_handle, &stream));
  return UploadGraph(stream, executable);
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<ExecutableGraph> executable;
  HAWSER_TRY(FindExecutable(handle, &executable));
  StreamPtr stream;
  HAWSER_TRY(GetStream(stream_handle, &stream));
  return LaunchGraph(stream, executable);
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  std::shared_ptr<ExecutableGraph> executable;
  GraphPtr graph;
  HAWSER_TRY(FindExecutable(handle, &executable));
  HAWSER_TRY(FindGraph(graph_handle, &graph));
  const std::lock_guard executable_lock(executable->mutex);
  const std::lock_guard lock(graph->mutex);
  Node* culprit = nullptr;
  const CUgraphExecUpdateResult result = Compare(*executable->graph, *graph, &culprit);
  if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS) TakeOver(*graph, executable->graph.get());
  if (info != nullptr) {
    info->result = result;
    info->errorNode = culprit == nullptr ? nullptr : Handle(*culprit);
    info->errorFromNode = nullptr;
  }
  return result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* culprit,
                                   CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult outcome = cuGraphExecUpdate_v2(executable, graph, &info);
  if (culprit != nullptr) *culprit = info.errorNode;
  if (result != nullptr) *result = info.result;
  return outcome;
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int enabled) {
  std::shared_ptr<ExecutableGraph> executable;
  HAWSER_TRY(FindExecutable(handle, &executable));
  const std::lock_guard lock(executable->mutex);
  const NodePtr node = executable->graph->FindCopyInside(Number(original));
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = TypeOf(node->work);
  if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY && type != CU_GRAPH_NODE_TYPE_MEMSET) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int* enabled) {
  std::shared_ptr<ExecutableGraph> executable;
  HAWSER_TRY(FindExecutable(handle, &executable));
  const std::lock_guard lock(executable->mutex);
  const NodePtr node = executable->graph->FindCopyInside(Number(original));
  if (node == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int flags) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "w"), &std::fclose);
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const std::lock_guard lock(graph->mutex);
  const bool written = std::fputs(DrawGraph(*graph, flags).c_str(), file.get()) >= 0 && std::fflush(file.get()) == 0;
  return written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* to, void* data, CUhostFn destroy, unsigned int count,
                                    unsigned int flags) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (to == nullptr || destroy == nullptr || count == 0 || count > 0x7fffffff ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto object = std::make_shared<UserObject>();
  object->data = data;
  object->destroy = destroy;
  object->references = count;
  *to = reinterpret_cast<CUuserObject>(UserObjects().Add(object));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  const auto object = UserObjects().Find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->references += count;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  const auto object = UserObjects().Find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  Drop(object, count);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count,
                                         unsigned int flags) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  const auto object = UserObjects().Find(object_handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  // Goes when the last graph that was cloned from this one does.
  graph->retained.emplace_back(object.get(), [object, count](void*) { Drop(object, count); });
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  const auto object = UserObjects().Find(object_handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto held = std::find_if(graph->retained.begin(), graph->retained.end(),
                                 [&](const std::shared_ptr<void>& kept) { return kept.get() == object.get(); });
  if (held == graph->retained.end()) return CUDA_ERROR_INVALID_VALUE;
  graph->retained.erase(held);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice number) {
  Device* device = nullptr;
  return GetDevice(number, &device);
}

}  // extern "C"
