// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/conditional.h"

#include <cstring>
#include <utility>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/entry.h"

namespace hawser::soft {
namespace {

constexpr unsigned kMostBodies = 1u << 16;
constexpr unsigned kDeepest = 128;  // Of bodies in bodies.

void Collect(const Graph& graph, Conditions* conditions) {
  for (const NodePtr& node : graph.nodes()) {
    if (const auto* work = std::get_if<ConditionalWork>(&node->work)) conditions->Add(*work->condition);
    for (const GraphPtr& inner : InnerGraphs(node->work)) Collect(*inner, conditions);
  }
}

/// A conditional node under way.
struct Decision {
  ConditionalWork work;
  ContextPtr context;
  ConditionsPtr conditions;
  OperationPtr done;

  /// What has to run now, or null.
  const Graph* Chosen() const {
    const uint32_t value = conditions->Get(work.condition->handle);
    size_t index = value;
    if (work.type != CU_GRAPH_COND_TYPE_SWITCH) index = value != 0 ? 0 : 1;
    return index < work.bodies.size() ? work.bodies[index].get() : nullptr;
  }
  bool Stopped() const {
    return context->error() != CUDA_SUCCESS || context->cancelled().load() || context->destroyed();
  }
};

/// Runs the body that is chosen, and decides again when that is done if it is a loop's. Never waits.
void Decide(const std::shared_ptr<Decision>& decision) {
  Queue& queue = GetDriver()->queue;
  const Graph* const body = decision->Stopped() ? nullptr : decision->Chosen();
  if (body == nullptr) {
    queue.Finish(decision->done);
    return;
  }
  const OperationPtr end = SubmitGraph(*body, decision->context, {}, decision->conditions);
  queue.Submit(
      [decision] {
        if (decision->work.type == CU_GRAPH_COND_TYPE_WHILE) {
          Decide(decision);
        } else {
          GetDriver()->queue.Finish(decision->done);
        }
      },
      {&end, 1});
}

bool GoodSize(const CUDA_CONDITIONAL_NODE_PARAMS& params) {
  switch (params.type) {
    case CU_GRAPH_COND_TYPE_IF:
      return params.size == 1 || params.size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
      return params.size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
      return params.size != 0;
    default:
      return false;
  }
}

/// Whether a node of `graph` may have a condition that was made for `owner`: that is the same graph, or one around it.
bool IsWithin(GraphPtr graph, const GraphPtr& owner) {
  while (graph != nullptr && graph != owner) graph = graph->parent.lock();
  return graph != nullptr;
}

unsigned DepthOf(GraphPtr graph) {
  unsigned depth = 0;
  for (; graph != nullptr; graph = graph->parent.lock()) ++depth;
  return depth;
}

}  // namespace

bool Conditions::Set(uint64_t handle, uint32_t value) {
  const auto found = values_.find(handle);
  if (found == values_.end()) return false;
  found->second.store(value, std::memory_order_relaxed);
  return true;
}

uint32_t Conditions::Get(uint64_t handle) const {
  const auto found = values_.find(handle);
  return found == values_.end() ? 0 : found->second.load(std::memory_order_relaxed);
}

ConditionsPtr ConditionsOf(const Graph& graph) {
  auto conditions = std::make_shared<Conditions>();
  Collect(graph, conditions.get());
  return conditions->empty() ? nullptr : conditions;
}

CUresult AddConditionalNode(const GraphPtr& graph, std::span<const NodePtr> before,
                            CUDA_CONDITIONAL_NODE_PARAMS* params, NodePtr* node) {
  Driver* const driver = GetDriver();
  if (!GoodSize(*params)) return CUDA_ERROR_INVALID_VALUE;
  if (params->size > kMostBodies) return CUDA_ERROR_OUT_OF_MEMORY;
  if (graph->is_child || DepthOf(graph) > kDeepest) return CUDA_ERROR_NOT_SUPPORTED;
  const std::shared_ptr<Condition> condition = driver->conditions.Find(params->handle);
  if (condition == nullptr || !IsWithin(graph, condition->graph.lock())) return CUDA_ERROR_INVALID_VALUE;
  uint64_t context = Number(params->ctx);
  if (context == 0) {
    ContextPtr current;
    HAWSER_TRY(WorkingContext(&current));
    context = current->handle;
  }
  if (context != condition->context) return CUDA_ERROR_INVALID_VALUE;
  if (condition->used.exchange(true)) return CUDA_ERROR_INVALID_VALUE;  // One node for each.

  ConditionalWork work{condition, params->type, {}, std::make_shared<std::vector<CUgraph>>()};
  for (unsigned i = 0; i < params->size; ++i) {
    auto body = std::make_shared<Graph>();
    body->parent = graph;
    body->body_context = context;
    work.bodies.push_back(std::move(body));
  }
  const auto handles = work.handles;
  const std::vector<GraphPtr> bodies = work.bodies;
  if (const CUresult result = graph->Add(std::move(work), before, node); result != CUDA_SUCCESS) {
    condition->used = false;
    return result;
  }
  for (const GraphPtr& body : bodies) handles->push_back(reinterpret_cast<CUgraph>(driver->graphs.Add(body)));
  params->phGraph_out = handles->data();
  return CUDA_SUCCESS;
}

bool MaySet(const KernelWork& work, const Condition& condition) {
  for (size_t at = 0; at + sizeof(uint64_t) <= work.parameters.size(); at += sizeof(uint64_t)) {
    if (std::memcmp(work.parameters.data() + at, &condition.handle, sizeof(uint64_t)) == 0) return true;
  }
  return false;
}

OperationPtr SubmitConditional(const ConditionalWork& work, const ContextPtr& context,
                               std::span<const OperationPtr> after, const ConditionsPtr& conditions) {
  Queue& queue = GetDriver()->queue;
  auto decision = std::make_shared<Decision>(Decision{work, context, conditions, queue.Hold({})});
  queue.Submit([decision] { Decide(decision); }, after);
  return decision->done;
}

}  // namespace hawser::soft

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

extern "C" {

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* to, CUgraph handle, CUcontext context_handle,
                                                unsigned int initial, unsigned int flags) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const GraphPtr graph = driver->graphs.Find(handle);
  if (to == nullptr || graph == nullptr || (flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ContextPtr context;
  if (context_handle == nullptr) {
    HAWSER_TRY(WorkingContext(&context));
  } else {
    context = driver->contexts.Find(context_handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  auto condition = std::make_shared<Condition>();
  condition->graph = graph;
  condition->context = context->handle;
  condition->initial = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0 ? initial : 0;
  *to = driver->conditions.Add(condition);
  const std::lock_guard lock(graph->mutex);
  graph->conditions.push_back(std::move(condition));
  return CUDA_SUCCESS;
}

}  // extern "C"
