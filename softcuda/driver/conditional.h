// SPDX-License-Identifier: Apache-2.0
// Conditional nodes of graphs: IF, WHILE and SWITCH over a number that the graph's own kernels set
// (CUDA driver API, "Graph Management", cuGraphConditionalHandleCreate).
//
// Threads: a Condition does not change but for `used`. Conditions is filled before its launch begins; from then on its
// members may be called from any thread.
#ifndef HAWSER_SOFTCUDA_DRIVER_CONDITIONAL_H_
#define HAWSER_SOFTCUDA_DRIVER_CONDITIONAL_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "softcuda/driver/context.h"
#include "softcuda/driver/graph.h"
#include "softcuda/driver/queue.h"
#include "softcuda/driver/work.h"
#include "softcuda/exec/launch.h"

namespace hawser::soft {

/// What a CUgraphConditionalHandle names. Ends with the graph that it was made for.
struct Condition {
  uint64_t handle = 0;
  std::weak_ptr<Graph> graph;
  uint64_t context = 0;
  uint32_t initial = 0;            ///< At the begin of a launch; 0 also where CUDA leaves it undefined.
  std::atomic<bool> used = false;  ///< A node has it.
};

/// The values of all conditions of one launch of a graph.
class Conditions final : public exec::ConditionSink {
 public:
  void Add(const Condition& condition) { values_.try_emplace(condition.handle, condition.initial); }
  bool empty() const { return values_.empty(); }

  bool Set(uint64_t handle, uint32_t value) override;
  uint32_t Get(uint64_t handle) const;

 private:
  std::unordered_map<uint64_t, std::atomic<uint32_t>> values_;
};

/// Those of a launch of `graph` that is about to begin; null when it has no conditional nodes.
ConditionsPtr ConditionsOf(const Graph& graph);

/// Adds a conditional node with empty bodies, and names them in `params`.
CUresult AddConditionalNode(const GraphPtr& graph, std::span<const NodePtr> before,
                            CUDA_CONDITIONAL_NODE_PARAMS* params, NodePtr* node);

/// Whether a kernel is given the condition's handle, so that it may set it.
bool MaySet(const KernelWork& work, const Condition& condition);

/// The node as an operation after `after`: decides what runs when its turn has come. `work` and the graphs in it must
/// not change any more.
OperationPtr SubmitConditional(const ConditionalWork& work, const ContextPtr& context,
                               std::span<const OperationPtr> after, const ConditionsPtr& conditions);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_CONDITIONAL_H_
