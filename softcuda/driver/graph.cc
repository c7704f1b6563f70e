// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "softcuda/driver/driver.h"

namespace hawser::soft {
namespace {

bool Holds(const std::vector<Node*>& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

CUgraphNodeType TypeOf(const Work& work) {
  struct Visitor {
    CUgraphNodeType operator()(const EmptyWork&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelWork&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const CopyWork&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const MemsetWork&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const HostWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const CallbackWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const EventRecordWork&) const { return CU_GRAPH_NODE_TYPE_EVENT_RECORD; }
    CUgraphNodeType operator()(const EventWaitWork&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const ChildWork&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const AllocWork&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeWork&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const MemoryOperationsWork&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  };
  return std::visit(Visitor{}, work);
}

CUresult Graph::Add(Work work, std::span<const NodePtr> before, NodePtr* added) {
  auto node = std::make_shared<Node>();
  const std::lock_guard lock(mutex);
  for (const NodePtr& dependency : before) {
    if (dependency == nullptr || dependency->graph.lock().get() != this || Holds(node->before, dependency.get())) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    node->before.push_back(dependency.get());
  }
  for (Node* dependency : node->before) dependency->after.push_back(node.get());
  node->graph = weak_from_this();
  node->work = std::move(work);
  GetDriver()->nodes.Add(node);
  nodes_.push_back(node);
  *added = std::move(node);
  return CUDA_SUCCESS;
}

CUresult Graph::Connect(Node* from, Node* to) {
  const std::lock_guard lock(mutex);
  if (from == to || Holds(from->after, to)) return CUDA_ERROR_INVALID_VALUE;
  from->after.push_back(to);
  to->before.push_back(from);
  return CUDA_SUCCESS;
}

CUresult Graph::Disconnect(Node* from, Node* to) {
  const std::lock_guard lock(mutex);
  if (!Holds(from->after, to)) return CUDA_ERROR_INVALID_VALUE;
  std::erase(from->after, to);
  std::erase(to->before, from);
  return CUDA_SUCCESS;
}

void Graph::Remove(const NodePtr& node) {
  const std::lock_guard lock(mutex);
  for (Node* other : node->before) std::erase(other->after, node.get());
  for (Node* other : node->after) std::erase(other->before, node.get());
  std::erase(nodes_, node);
  GetDriver()->nodes.Remove(node->handle);
}

Graph::~Graph() {
  Driver* const driver = GetDriver();
  if (driver == nullptr) return;
  for (const NodePtr& node : nodes_) driver->nodes.Remove(node->handle);
}

std::vector<NodePtr> Graph::Roots() const {
  std::vector<NodePtr> roots;
  for (const NodePtr& node : nodes_) {
    if (node->before.empty()) roots.push_back(node);
  }
  return roots;
}

std::vector<Node*> Graph::Order() const {
  std::unordered_map<const Node*, size_t> missing;
  std::vector<Node*> order;
  order.reserve(nodes_.size());
  for (const NodePtr& node : nodes_) {
    missing[node.get()] = node->before.size();
    if (node->before.empty()) order.push_back(node.get());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (Node* next : order[i]->after) {
      if (--missing[next] == 0) order.push_back(next);
    }
  }
  return order;
}

std::shared_ptr<Graph> Graph::Clone() const {
  const std::vector<Node*> order = Order();
  if (order.size() != nodes_.size()) return nullptr;
  auto copy = std::make_shared<Graph>();
  copy->retained = retained;
  std::unordered_map<const Node*, NodePtr> copies;
  // In the original's order of making: queries list nodes in it.
  for (const NodePtr& node : nodes_) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildWork>(&work)) {
      child->graph = child->graph->Clone();
      if (child->graph == nullptr) return nullptr;
    }
    NodePtr made;
    copy->Add(std::move(work), {}, &made);
    made->enabled = node->enabled;
    made->original = node->handle;
    made->attributes = node->attributes;
    copies[node.get()] = made;
  }
  for (const NodePtr& node : nodes_) {
    for (const Node* next : node->after) copy->Connect(copies[node.get()].get(), copies[next].get());
  }
  return copy;
}

NodePtr Graph::FindCopy(uint64_t original) const {
  for (const NodePtr& node : nodes_) {
    if (node->original == original) return node;
  }
  return nullptr;
}

OperationPtr SubmitGraph(const Graph& graph, const std::shared_ptr<Context>& context,
                         std::span<const OperationPtr> after) {
  Queue& queue = GetDriver()->queue;
  std::unordered_map<const Node*, OperationPtr> operations;
  std::vector<OperationPtr> ends;
  for (const Node* node : graph.Order()) {
    std::vector<OperationPtr> before;
    for (const Node* dependency : node->before) before.push_back(operations[dependency]);
    if (before.empty()) before.assign(after.begin(), after.end());
    OperationPtr operation;
    if (!node->enabled || std::holds_alternative<EmptyWork>(node->work)) {
      operation = queue.Submit(nullptr, before);
    } else if (const auto* record = std::get_if<EventRecordWork>(&node->work)) {
      operation = SubmitRecord(record->event.get(), before);
    } else if (const auto* wait = std::get_if<EventWaitWork>(&node->work)) {
      operation = SubmitWait(wait->event, context, std::move(before));
    } else if (const auto* child = std::get_if<ChildWork>(&node->work)) {
      operation = SubmitGraph(*child->graph, context, before);
    } else {
      // A copy: the executable may be changed or destroyed while this launch is under way.
      auto work = std::make_shared<Work>(node->work);
      operation = queue.Submit([work, context] { Execute(*work, context.get()); }, before);
    }
    operations[node] = operation;
    if (node->after.empty()) ends.push_back(operation);
  }
  if (ends.empty()) ends.assign(after.begin(), after.end());
  return queue.Submit(nullptr, ends);
}

}  // namespace hawser::soft
