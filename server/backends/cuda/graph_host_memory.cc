// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/graph_host_memory.h"

#include <algorithm>
#include <unordered_map>

namespace hawser::server::cuda_backend {
namespace {

void Append(const std::vector<wire::Id>& from, std::vector<wire::Id>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void Remove(const std::vector<wire::Id>& what, std::vector<wire::Id>* from) {
  std::erase_if(*from, [&](wire::Id id) { return std::find(what.begin(), what.end(), id) != what.end(); });
}

}  // namespace

/// One graph: its nodes, what they fill and read, and which follow which. A child graph fills what its nodes do and no
/// function in it fetches. A conditional node's bodies may be passed by: what they would fill is to be filled before it
/// all the same, so that whoever fetches it behind the node gets what was there.
struct GraphHostMemory::Level {
  struct Node {
    CUgraphNode native = nullptr;
    CUgraphNodeType type{};
    CUgraph child = nullptr;
    std::vector<Body> bodies;
    uint64_t callback = 0;
    bool calls = false;  ///< A function, or a child graph with one.
    Ids fills, reads;
    std::vector<size_t> from, to;
  };
  std::vector<Node> nodes;

  /// What comes before the node. A function there has fetched it, if any.
  Ids FilledBefore(size_t at) const {
    Ids ids;
    Reach(at, &Node::from, [&](size_t each) { Append(nodes[each].fills, &ids); });
    return ids;
  }
  /// What the node, if it is a function, is to fetch: what no function before it has fetched, and maybe changed since.
  /// `before`: what comes before the whole graph.
  Ids FetchedBy(size_t at, const Ids& before) const {
    Ids ids = FilledBefore(at);
    bool first = true;
    Reach(at, &Node::from, [&](size_t each) {
      if (!nodes[each].calls) return;
      first = false;
      Remove(FilledBefore(each), &ids);
    });
    if (first) Append(before, &ids);
    return ids;
  }
  /// What is left for functions behind the whole graph.
  Ids LeftOver() const {
    Ids ids;
    for (const Node& node : nodes) Append(node.fills, &ids);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].calls) Remove(FilledBefore(i), &ids);
    }
    return ids;
  }

  /// Calls visit(node) for the number of each node that is reached from there by these edges.
  template <typename Visit>
  void Reach(size_t start, std::vector<size_t> Node::*edges, const Visit& visit) const {
    std::vector<bool> seen(nodes.size());
    std::vector<size_t> open = nodes[start].*edges;
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      visit(at);
      open.insert(open.end(), (nodes[at].*edges).begin(), (nodes[at].*edges).end());
    }
  }
};

CUresult GraphHostMemory::ReadCopy(CUgraphNode node, Ids* reads, Ids* fills) const {
  CUDA_MEMCPY3D copy{};
  const CUresult error = driver_->cuGraphMemcpyNodeGetParams(node, &copy);
  if (copy.srcMemoryType == CU_MEMORYTYPE_HOST) {
    if (const wire::Id id = staging_at_(copy.srcHost)) reads->push_back(id);
  }
  if (copy.dstMemoryType == CU_MEMORYTYPE_HOST) {
    if (const wire::Id id = staging_at_(copy.dstHost)) fills->push_back(id);
  }
  return error;
}

CUresult GraphHostMemory::ReadCallback(CUgraphNode node, uint64_t* callback) const {
  CUDA_HOST_NODE_PARAMS host{};
  const CUresult error = driver_->cuGraphHostNodeGetParams(node, &host);
  if (error == CUDA_SUCCESS) *callback = callback_of_(host);
  return error;
}

uint64_t GraphHostMemory::NameIn(CUgraphNode node) const {
  CUgraphNodeType type{};
  if (driver_->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return 0;
  uint64_t callback = 0;
  if (type == CU_GRAPH_NODE_TYPE_HOST) return ReadCallback(node, &callback) == CUDA_SUCCESS ? callback : 0;
  Ids ids;
  if (type != CU_GRAPH_NODE_TYPE_MEMCPY || ReadCopy(node, &ids, &ids) != CUDA_SUCCESS || ids.empty()) return 0;
  return ids.front().raw();
}

CUresult GraphHostMemory::Read(CUgraph graph, Level* level) const {
  size_t count = 0, edges = 0;
  if (const CUresult error = driver_->cuGraphGetNodes(graph, nullptr, &count); error != CUDA_SUCCESS) return error;
  std::vector<CUgraphNode> natives(count);
  if (count == 0) return CUDA_SUCCESS;
  if (const CUresult error = driver_->cuGraphGetNodes(graph, natives.data(), &count); error != CUDA_SUCCESS) {
    return error;
  }
  std::unordered_map<CUgraphNode, size_t> numbers;
  level->nodes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Level::Node& node = level->nodes[i];
    numbers[natives[i]] = i;
    node.native = natives[i];
    CUresult error = driver_->cuGraphNodeGetType(natives[i], &node.type);
    if (error == CUDA_SUCCESS && node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
      error = ReadCopy(natives[i], &node.reads, &node.fills);
    } else if (error == CUDA_SUCCESS && node.type == CU_GRAPH_NODE_TYPE_HOST) {
      error = ReadCallback(natives[i], &node.callback);
      node.calls = node.callback != 0;
    } else if (error == CUDA_SUCCESS && node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      Level inner;
      error = driver_->cuGraphChildGraphNodeGetGraph(natives[i], &node.child);
      if (error == CUDA_SUCCESS) error = Read(node.child, &inner);
      node.fills = inner.LeftOver();
      for (const Level::Node& each : inner.nodes) {
        Append(each.reads, &node.reads);
        node.calls = node.calls || each.calls;
      }
    } else if (error == CUDA_SUCCESS && node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      node.bodies = bodies_of_(natives[i]);
      for (const Body& body : node.bodies) {
        Level inner;
        if (error == CUDA_SUCCESS) error = Read(body.graph, &inner);
        for (const Level::Node& each : inner.nodes) {
          Append(each.reads, &node.reads);
          Append(each.fills, &node.reads);
          Append(each.fills, &node.fills);
        }
      }
    }
    if (error != CUDA_SUCCESS) return error;
  }
  CUresult error = driver_->cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
  if (error != CUDA_SUCCESS || edges == 0) return error;
  std::vector<CUgraphNode> from(edges), to(edges);
  error = driver_->cuGraphGetEdges(graph, from.data(), to.data(), nullptr, &edges);
  for (size_t i = 0; error == CUDA_SUCCESS && i < edges; ++i) {
    level->nodes[numbers.at(from[i])].to.push_back(numbers.at(to[i]));
    level->nodes[numbers.at(to[i])].from.push_back(numbers.at(from[i]));
  }
  return error;
}

CUresult GraphHostMemory::Walk(CUgraph graph, const Ids& before, const Ids& after,
                               std::vector<cuda::HostNodeMemory>* found) const {
  Level level;
  if (const CUresult error = Read(graph, &level); error != CUDA_SUCCESS) return error;
  for (size_t i = 0; i < level.nodes.size(); ++i) {
    const Level::Node& node = level.nodes[i];
    if (node.callback == 0 && node.child == nullptr) continue;
    const Ids filled = level.FetchedBy(i, before);
    Ids read = after;
    level.Reach(i, &Level::Node::to, [&](size_t each) { Append(level.nodes[each].reads, &read); });
    if (node.child != nullptr) {
      if (const CUresult error = Walk(node.child, filled, read, found); error != CUDA_SUCCESS) return error;
      continue;
    }
    cuda::HostNodeMemory memory;
    memory.callback = node.callback;
    if (filled.empty() && read.empty()) found->push_back(memory);
    for (const bool behind : {false, true}) {
      for (const wire::Id id : behind ? read : filled) {
        memory.staging = id;
        memory.after = behind ? 1 : 0;
        found->push_back(memory);
      }
    }
  }
  return CUDA_SUCCESS;
}

struct GraphHostMemory::Flat {
  GraphOrder order;
  /// By the order's numbers. Null: the begin or the end of a graph, and what is in child graphs and bodies.
  std::vector<CUgraphNode> natives;
  unsigned depth = 0;  ///< Graphs around it.

  size_t Add(GraphOrder::Node node, CUgraphNode native) {
    natives.push_back(depth == 0 ? native : nullptr);
    return order.Add(std::move(node));
  }
};

CUresult GraphHostMemory::Flatten(CUgraph graph, Flat* flat, size_t* begin, size_t* end) const {
  Level level;
  if (const CUresult error = Read(graph, &level); error != CUDA_SUCCESS) return error;
  *begin = flat->Add({}, nullptr);
  *end = flat->Add({}, nullptr);
  std::vector<size_t> firsts, lasts;  // By the level's numbers: where a node's own begins and ends.
  for (Level::Node& node : level.nodes) {
    size_t first = 0, last = 0;
    if (node.child == nullptr && node.bodies.empty()) {
      first = last = flat->Add({std::move(node.fills), std::move(node.reads), node.calls}, node.native);
    } else {
      first = flat->Add({}, nullptr);
      last = flat->Add({}, nullptr);
      if (node.child != nullptr) node.bodies = {{node.child, false}};
      for (const Body& body : node.bodies) {
        size_t inner_begin = 0, inner_end = 0;
        ++flat->depth;
        const CUresult error = Flatten(body.graph, flat, &inner_begin, &inner_end);
        --flat->depth;
        if (error != CUDA_SUCCESS) return error;
        flat->order.Connect(first, inner_begin);
        flat->order.Connect(inner_end, last);
        if (body.loops) flat->order.Connect(inner_end, inner_begin);
      }
    }
    flat->order.Connect(*begin, first);
    flat->order.Connect(last, *end);
    firsts.push_back(first);
    lasts.push_back(last);
  }
  for (size_t i = 0; i < level.nodes.size(); ++i) {
    for (const size_t to : level.nodes[i].to) flat->order.Connect(lasts[i], firsts[to]);
  }
  return CUDA_SUCCESS;
}

CUresult GraphHostMemory::FindPassing(CUgraph graph, const GraphOrder::Extents& extents, Passing* passing) const {
  *passing = {};
  if (!HasEntries()) return CUDA_ERROR_NOT_SUPPORTED;
  Flat flat;
  size_t begin = 0, end = 0;
  if (const CUresult error = Flatten(graph, &flat, &begin, &end); error != CUDA_SUCCESS) return error;
  const std::optional<size_t> early = flat.order.FindTooEarly(extents);
  passing->too_early = early.has_value();
  if (early) passing->node = flat.natives[*early];
  passing->filled = flat.order.Filled(extents);
  return CUDA_SUCCESS;
}

bool GraphHostMemory::HasEntries() const {
  return driver_->cuGraphGetNodes != nullptr && driver_->cuGraphGetEdges != nullptr &&
         driver_->cuGraphNodeGetType != nullptr && driver_->cuGraphMemcpyNodeGetParams != nullptr &&
         driver_->cuGraphHostNodeGetParams != nullptr && driver_->cuGraphChildGraphNodeGetGraph != nullptr;
}

CUresult GraphHostMemory::Find(CUgraph graph, std::vector<cuda::HostNodeMemory>* found) const {
  return HasEntries() ? Walk(graph, {}, {}, found) : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace hawser::server::cuda_backend
