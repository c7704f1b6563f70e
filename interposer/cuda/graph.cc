// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/graph.h"

#include <algorithm>

#include "interposer/cuda/host_functions.h"

namespace hawser::cu {
namespace {

wire::Id NewName(cuda::Handle handle) { return Client::Get().session()->NewId(static_cast<uint8_t>(handle)); }

}  // namespace

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
  }
  for (CUgraphNode_st* node : nodes) {
    const wire::Id id = node->id;
    node->host_copy = nullptr;
    if (node->child != nullptr) ForgetGraph(node->child);
    Registry::Get().Bury(node);
    session->FreeId(id);
  }
  const wire::Id id = graph->id;
  Registry::Get().Bury(graph);
  session->FreeId(id);
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

}  // namespace hawser::cu
