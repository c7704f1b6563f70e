// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/node_commands.h"

#include <algorithm>

#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph_hand_over.h"
#include "interposer/cuda/host_functions.h"

namespace hawser::cu {
namespace {

wire::ArrayView<wire::Id> View(const std::vector<wire::Id>& ids) { return {ids.data(), ids.size()}; }

/// Keeps what the getters answer.
void Remember(CUgraphNode node, const NodeMessage& message) {
  node->own = true;
  node->copy = message.copy;
  node->event = message.event;
  node->batch = message.batch;
  if (message.function == nullptr) return;
  node->kernel = message.kernel;
  node->kernel_bytes.assign(message.packed.bytes().begin(), message.packed.bytes().end());
  node->kernel_pointers.clear();
  for (size_t i = 0; i < message.function->offsets.size(); ++i) {
    const size_t end = size_t{message.function->offsets[i]} + message.function->sizes[i];
    if (end > node->kernel_bytes.size()) break;
    node->kernel_pointers.push_back(node->kernel_bytes.data() + message.function->offsets[i]);
  }
  node->kernel.kernelParams = node->kernel_pointers.data();
  node->kernel.extra = nullptr;
}

/// In its place: of two that bring something to the same memory the later one's comes last. Null: none. Returns what
/// was there.
std::shared_ptr<HostCopy> ReplaceCopy(HostCopies* copies, wire::Id old, const std::shared_ptr<HostCopy>& replacement) {
  const auto at =
      std::find_if(copies->begin(), copies->end(), [old](const auto& each) { return old && each->staging == old; });
  std::shared_ptr<HostCopy> was = at != copies->end() ? *at : nullptr;
  if (at == copies->end()) {
    if (replacement != nullptr) copies->push_back(replacement);
  } else if (replacement != nullptr) {
    *at = replacement;
  } else {
    copies->erase(at);
  }
  return was;
}

/// The executable graph's copy is another one now, also around its functions.
void ReplaceCopyOf(CUgraphExec exec, wire::Id old, const std::shared_ptr<HostCopy>& replacement) {
  std::lock_guard lock(exec->mutex);
  const std::shared_ptr<HostCopy> was = ReplaceCopy(&exec->host_copies, old, replacement);
  if (was == nullptr) return;
  if (exec->disabled_copies.erase(old.raw()) != 0 && replacement != nullptr) {
    exec->disabled_copies.insert(replacement->staging.raw());
  }
  for (auto* noted : {&exec->fetched, &exec->uncertain}) {
    if (noted->erase(was.get()) != 0 && replacement != nullptr) noted->insert(replacement.get());
  }
  for (auto& [callback, memory] : exec->functions) {
    auto changed = std::make_shared<FunctionMemory>(*memory);  // Somebody may be using it.
    for (HostCopies* copies : {&changed->fetch, &changed->fill}) {
      if (std::find(copies->begin(), copies->end(), was) != copies->end()) ReplaceCopy(copies, old, replacement);
    }
    memory = std::move(changed);
  }
  RefreshFunctions(exec);
}

/// The executable graph's host node calls another function, which finds and leaves in memory what the one before did.
void ReplaceFunctionOf(CUgraphExec exec, uint64_t old, const std::shared_ptr<const GraphFunction>& replacement) {
  std::lock_guard lock(exec->mutex);
  // Launches that were made before may yet call it.
  if (auto was = TakeOut(&exec->host_functions, old); was != nullptr && exec->order != nullptr) {
    exec->order->Keep({std::move(was)});
  }
  exec->host_functions.push_back(replacement);
  const auto at = exec->functions.find(old);
  if (at == exec->functions.end()) return;
  const std::shared_ptr<const FunctionMemory> memory = at->second;
  exec->functions.erase(at);
  exec->functions[replacement->callback] = memory;
  RefreshFunctions(exec);
}

/// Takes the copy's stand-in, or the function, over into the graph. `old`: what the node had before; 0: it is new.
void Adopt(CUgraphNode node, NodeMessage& message, uint64_t old) {
  Remember(node, message);
  std::lock_guard lock(node->graph->mutex);
  if (message.host_function != nullptr) {
    (void)TakeOut(&node->graph->host_functions, old);
    node->graph->host_functions.push_back(message.host_function);
    node->callback = message.parameters.callback;
    return;
  }
  (void)ReplaceCopy(&node->graph->host_copies, wire::Id(old), message.host_copy);
  node->host_copy = message.host_copy;
}

/// It copies from host memory, or something in it does, to which another copy of the graph brings something.
bool TakesWhatCopiesBring(CUgraph graph, const NodeMessage& message) {
  std::lock_guard lock(graph->mutex);
  const auto takes = [graph](const auto& copy) {
    return copy != nullptr && !copy->to_host && IsBroughtTo(copy->memory, graph->host_copies);
  };
  return takes(message.host_copy) || std::any_of(message.inner_copies.begin(), message.inner_copies.end(), takes);
}

/// Nodes that a new one of the graph can depend on: its own, each once.
bool CanDependOn(CUgraph graph, const CUgraphNode* nodes, size_t count) {
  std::vector<CUgraphNode> sorted(nodes, nodes + count);
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
         std::all_of(sorted.begin(), sorted.end(), [graph](CUgraphNode node) { return node->graph == graph; });
}

template <typename Message>
Message About(CUgraphNode node, CUgraph graph, const std::vector<wire::Id>& dependencies, const NodeMessage& from) {
  Message message;
  message.node = node->id;
  message.graph = graph->id;
  message.dependencies = View(dependencies);
  message.parameters = from.parameters;
  return message;
}

}  // namespace

CUresult AddNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count, NodeMessage& from) {
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode between = nullptr;
  if (count != 0 && TakesWhatCopiesBring(graph, from)) {
    const CUresult error = AddHandOver(graph, dependencies, count, &between);
    if (error != CUDA_SUCCESS) return error;
    dependencies = &between, count = 1;
  }
  std::vector<wire::Id> ids;
  if (const CUresult error = NodeIds(dependencies, count, &ids); error != CUDA_SUCCESS) return error;
  CUgraphNode node = NewNode(graph, static_cast<CUgraphNodeType>(from.parameters.kind));
  guest::Session* const session = Client::Get().session();
  // Not everything may stand in a body of a conditional node.
  const bool sure = from.sure && !graph->is_child && CanDependOn(graph, dependencies, count);
  const CUresult error = sure ? FromWire(session->Send(About<cuda::PlaceNode>(node, graph, ids, from)))
                              : AskStatus(session, About<cuda::AddNode>(node, graph, ids, from));
  if (error != CUDA_SUCCESS) {
    ForgetNode(node);
    if (between != nullptr) (void)cuGraphDestroyNode(between);
    return error;
  }
  Adopt(node, from, 0);
  *result = node;
  return CUDA_SUCCESS;
}

CUresult SetNode(CUgraphNode node, CUgraphExec exec, NodeMessage& from) {
  if (const CUresult error = CheckNode(node); error != CUDA_SUCCESS) return error;
  cuda::SetNode message;
  message.node = node->id;
  if (exec != nullptr) {
    if (const CUresult error = CheckObject(exec, Kind::kGraphExec); error != CUDA_SUCCESS) return error;
    message.exec = exec->id;
    if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY || node->type == CU_GRAPH_NODE_TYPE_HOST) {
      if (const CUresult error = AwaitFunctions(exec); error != CUDA_SUCCESS) return error;
    }
  }
  message.parameters = from.parameters;
  Answer<cuda::SetNodeResult> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  if (exec == nullptr) {
    Adopt(node, from, answer->before);
  } else if (from.host_function != nullptr) {
    ReplaceFunctionOf(exec, answer->before, from.host_function);
  } else {
    ReplaceCopyOf(exec, wire::Id(answer->before), from.host_copy);
  }
  return CUDA_SUCCESS;
}

CUresult EnableNode(CUgraphNode node, CUgraphExec exec, bool enabled) {
  cuda::EnableNode message;
  message.exec = exec->id;
  message.node = node->id;
  message.enabled = enabled ? 1 : 0;
  if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    if (const CUresult error = AwaitFunctions(exec); error != CUDA_SUCCESS) return error;
  }
  Answer<cuda::SetNodeResult> answer;
  if (const CUresult error = answer.Ask(Client::Get().session(), message); error != CUDA_SUCCESS) return error;
  std::lock_guard lock(exec->mutex);
  const auto note = [enabled](std::set<uint64_t>* disabled, uint64_t name) {
    enabled ? (void)disabled->erase(name) : (void)disabled->insert(name);
  };
  note(&exec->disabled, node->id.raw());
  if (answer->before != 0) {
    note(&exec->disabled_copies, answer->before);
    RefreshFunctions(exec);
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu
