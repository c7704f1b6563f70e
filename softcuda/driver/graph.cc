// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "softcuda/driver/conditional.h"
#include "softcuda/driver/driver.h"

namespace hawser::soft {
namespace {

bool Holds(const std::vector<Node*>& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// Whether a conditional node's body may have a node of this kind.
CUresult CheckBodyNode(const Work& work, uint64_t body_context) {
  switch (TypeOf(work)) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const ContextPtr context = std::get<KernelWork>(work).function->context.lock();
      return context != nullptr && context->handle == body_context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      for (const NodePtr& node : std::get<ChildWork>(work).graph->nodes()) {
        const CUresult result = CheckBodyNode(node->work, body_context);
        if (result != CUDA_SUCCESS) return result;
      }
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

void MarkChild(Graph* child, const std::shared_ptr<Graph>& parent) {
  child->parent = parent;
  child->body_context = parent->body_context;
  for (const NodePtr& node : child->nodes()) {
    for (const GraphPtr& inner : InnerGraphs(node->work)) MarkChild(inner.get(), child->shared_from_this());
  }
}

/// The end of a node that is part of a graph of the program's: nothing names what is inside any more.
void Disown(const Node& node, Driver* driver) {
  for (const GraphPtr& inner : InnerGraphs(node.work)) {
    if (inner->handle != 0) driver->graphs.Remove(inner->handle);
  }
  // Copies of a node, in executable graphs, have no bodies with names, and no condition.
  if (const auto* work = std::get_if<ConditionalWork>(&node.work)) {
    if (node.original == 0) work->condition->used = false;
  }
}

}  // namespace

std::vector<GraphPtr> InnerGraphs(const Work& work) {
  if (const auto* child = std::get_if<ChildWork>(&work)) return {child->graph};
  if (const auto* conditional = std::get_if<ConditionalWork>(&work)) return conditional->bodies;
  return {};
}

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
    CUgraphNodeType operator()(const ConditionalWork&) const { return CU_GRAPH_NODE_TYPE_CONDITIONAL; }
    CUgraphNodeType operator()(const MemoryOperationsWork&) const { return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; }
  };
  return std::visit(Visitor{}, work);
}

CUresult Graph::Add(Work work, std::span<const NodePtr> before, NodePtr* added) {
  if (IsBody()) {
    if (const CUresult result = CheckBodyNode(work, body_context); result != CUDA_SUCCESS) return result;
    if (auto* child = std::get_if<ChildWork>(&work)) MarkChild(child->graph.get(), shared_from_this());
  }
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
  Disown(*node, GetDriver());
}

Graph::~Graph() {
  Driver* const driver = GetDriver();
  if (driver == nullptr) return;
  for (const NodePtr& node : nodes_) {
    driver->nodes.Remove(node->handle);
    Disown(*node, driver);
  }
  for (const auto& condition : conditions) driver->conditions.Remove(condition->handle);
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
    if (auto* conditional = std::get_if<ConditionalWork>(&work)) {
      conditional->handles = nullptr;
      for (GraphPtr& body : conditional->bodies) {
        body = body->Clone();
        if (body == nullptr) return nullptr;
      }
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

NodePtr Graph::FindCopyInside(uint64_t original) const {
  if (NodePtr found = FindCopy(original); found != nullptr) return found;
  for (const NodePtr& node : nodes_) {
    for (const GraphPtr& inner : InnerGraphs(node->work)) {
      if (NodePtr found = inner->FindCopyInside(original); found != nullptr) return found;
    }
  }
  return nullptr;
}

bool Graph::HasConditionals() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const NodePtr& node) { return std::holds_alternative<ConditionalWork>(node->work); });
}

bool Graph::UsesItsConditions() const {
  if (!std::all_of(conditions.begin(), conditions.end(), [](const auto& each) { return each->used.load(); })) {
    return false;
  }
  return std::all_of(nodes_.begin(), nodes_.end(), [](const NodePtr& node) {
    const std::vector<GraphPtr> inner = InnerGraphs(node->work);
    return std::all_of(inner.begin(), inner.end(), [](const GraphPtr& graph) { return graph->UsesItsConditions(); });
  });
}

OperationPtr SubmitGraph(const Graph& graph, const std::shared_ptr<Context>& context,
                         std::span<const OperationPtr> after, const ConditionsPtr& conditions) {
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
      operation = SubmitGraph(*child->graph, context, before, conditions);
    } else if (const auto* conditional = std::get_if<ConditionalWork>(&node->work)) {
      // Programs forget the edge from the kernel that sets the condition (NVIDIA's sample graphConditionalNodes does),
      // and a GPU, which has begun the kernel long before it looks at the condition, forgives them.
      for (const auto& [earlier, submitted] : operations) {
        const auto* const kernel = std::get_if<KernelWork>(&earlier->work);
        if (kernel != nullptr && MaySet(*kernel, *conditional->condition)) before.push_back(submitted);
      }
      operation = SubmitConditional(*conditional, context, before, conditions);
    } else {
      // A copy: the executable may be changed or destroyed while this launch is under way.
      auto work = std::make_shared<Work>(node->work);
      operation =
          queue.Submit([work, context, conditions] { Execute(*work, context.get(), conditions.get()); }, before);
    }
    operations[node] = operation;
    if (node->after.empty()) ends.push_back(operation);
  }
  if (ends.empty()) ends.assign(after.begin(), after.end());
  return queue.Submit(nullptr, ends);
}

}  // namespace hawser::soft
