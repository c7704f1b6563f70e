// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/graph.h"

#include <algorithm>
#include <unordered_set>

#include "interposer/cuda/host_functions.h"

namespace hawser::cu {
namespace {

wire::Id NewName(cuda::Handle handle) { return Client::Get().session()->NewId(static_cast<uint8_t>(handle)); }

/// The end of a node that its graph does not list any more.
void Bury(CUgraphNode_st* node) {
  const wire::Id id = node->id;
  node->host_copy = nullptr;
  if (node->child != nullptr) ForgetGraph(node->child);
  for (CUgraph_st* body : node->bodies) ForgetGraph(body);
  Registry::Get().Bury(node);
  Client::Get().session()->FreeId(id);
}

}  // namespace

CUresult CheckGraph(const CUgraph_st* graph) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckObject(graph, Kind::kGraph);
}

CUresult CheckNode(const CUgraphNode_st* node) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckObject(node, Kind::kNode);
}

CUgraph_st* NewGraph() {
  auto* graph = new CUgraph_st(Kind::kGraph, NewName(cuda::Handle::kGraph));
  Registry::Get().Add(graph);
  return graph;
}

CUgraphNode_st* NewNode(CUgraph_st* graph, CUgraphNodeType type) {
  auto* node = new CUgraphNode_st(Kind::kNode, NewName(cuda::Handle::kNode));
  node->graph = graph;
  node->type = type;
  node->described = true;
  Registry::Get().Add(node);
  std::lock_guard lock(graph->mutex);
  graph->nodes.push_back(node);
  return node;
}

CUgraphNode_st* NodeOf(CUgraph_st* graph, wire::Id id) {
  std::lock_guard lock(graph->mutex);
  const auto found =
      std::find_if(graph->nodes.begin(), graph->nodes.end(), [id](auto* node) { return node->id == id; });
  if (found != graph->nodes.end()) return *found;
  auto* node = new CUgraphNode_st(Kind::kNode, id);
  node->graph = graph;
  Registry::Get().Add(node);
  graph->nodes.push_back(node);
  return node;
}

void ForgetGraph(CUgraph_st* graph) {
  DropUserObjects(graph);
  guest::Session* session = Client::Get().session();
  std::vector<CUgraphNode_st*> nodes;
  {
    std::lock_guard lock(graph->mutex);
    nodes.swap(graph->nodes);
    graph->host_copies.clear();
    graph->host_functions.clear();
  }
  for (CUgraphNode_st* node : nodes) Bury(node);
  const wire::Id id = graph->id;
  Registry::Get().Bury(graph);
  session->FreeId(id);
}

void ForgetNode(CUgraphNode_st* node) {
  CUgraph_st* graph = node->graph;
  {
    std::lock_guard lock(graph->mutex);
    std::erase(graph->nodes, node);
    std::erase(graph->host_copies, node->host_copy);
  }
  Bury(node);
}

CUresult NodeIds(const CUgraphNode* nodes, size_t count, std::vector<wire::Id>* ids) {
  if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult error = CheckObject(nodes[i], Kind::kNode); error != CUDA_SUCCESS) return error;
    ids->push_back(nodes[i]->id);
  }
  return CUDA_SUCCESS;
}

CUresult CheckEdges(const CUgraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges != nullptr && i < count; ++i) {
    if (edges[i].type != 0 || edges[i].from_port != 0 || edges[i].to_port != 0) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

NodeNames::NodeNames(size_t count) : used_(count) {
  for (size_t i = 0; i < count; ++i) names_.push_back(NewName(cuda::Handle::kNode));
}

NodeNames::~NodeNames() {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (!used_[i]) Client::Get().session()->FreeId(names_[i]);
  }
}

void NodeNames::Used(wire::Id id) {
  const auto found = std::find(names_.begin(), names_.end(), id);
  if (found != names_.end()) used_[static_cast<size_t>(found - names_.begin())] = true;
}

CUresult AwaitFunctions(CUgraphExec_st* exec) {
  LaunchOrder* order = nullptr;
  {
    std::lock_guard lock(exec->mutex);
    if (!exec->functions.empty() && !exec->host_copies.empty()) order = exec->order.get();
  }
  // Who changes it does not launch it meanwhile.
  return order != nullptr ? order->Await() : CUDA_SUCCESS;
}

void RefreshFunctions(CUgraphExec_st* exec) {
  exec->enabled_functions.clear();
  for (const auto& [callback, memory] : exec->functions) {
    auto enabled = std::make_shared<FunctionMemory>(*memory);
    for (HostCopies* copies : {&enabled->fetch, &enabled->fill}) {
      std::erase_if(*copies, [exec](const auto& copy) { return exec->disabled_copies.contains(copy->staging.raw()); });
    }
    exec->enabled_functions[callback] = std::move(enabled);
  }
}

CUresult ClaimFunctions(CUgraphExec_st* exec) {
  std::unordered_set<wire::Id> others;
  bool has_all = true;
  {
    std::lock_guard lock(exec->mutex);
    for (const auto& [callback, memory] : exec->enabled_functions) {
      wire::Id other;
      if (HostFunctions::Get().HasMemory(callback, *memory, &other)) continue;
      has_all = false;
      // Whoever changed this one has waited for its launches.
      if (other && other != exec->id) others.insert(other);
    }
  }
  if (has_all) return CUDA_SUCCESS;
  for (const wire::Id other : others) {
    cuda::SynchronizeEvent message;
    Registry::Get().With(
        other, [&message](Object& object) { message.event = static_cast<CUgraphExec_st&>(object).last_launch.load(); });
    if (!message.event) continue;
    // That it is there no more says that there was another launch, or an end, in another thread.
    (void)AskStatus(Client::Get().session(), message);
  }
  std::lock_guard lock(exec->mutex);
  for (const auto& [callback, memory] : exec->enabled_functions) {
    HostFunctions::Get().SetMemory(callback, memory, exec->id);
  }
  return Client::Get().Check();
}

}  // namespace hawser::cu
