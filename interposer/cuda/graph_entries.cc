// SPDX-License-Identifier: Apache-2.0
// cuGraph*: graphs as a whole, executable graphs.
#include <atomic>

#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"
#include "interposer/cuda/graph_hand_over.h"
#include "interposer/cuda/host_functions.h"
#include "interposer/cuda/late_write.h"
#include "interposer/cuda/mirror.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

CUresult Check(CUgraphExec exec) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  return CheckObject(exec, Kind::kGraphExec);
}

CUresult SendRelease(wire::Id id) {
  cuda::Release message;
  message.object = id;
  return FromWire(Client::Get().session()->Send(message));
}

/// A graph's stand-ins for host memory, and its functions, with those of its children and bodies.
struct Collected {
  HostCopies copies;
  std::set<const HostCopy*> uncertain;  ///< Those of bodies.
  GraphFunctions functions;

  explicit Collected(CUgraph_st* graph) { Add(graph, /*certain=*/true); }

 private:
  void Add(CUgraph_st* graph, bool certain) {
    std::lock_guard lock(graph->mutex);
    copies.insert(copies.end(), graph->host_copies.begin(), graph->host_copies.end());
    for (const auto& copy : graph->host_copies) {
      if (!certain) uncertain.insert(copy.get());
    }
    functions.insert(functions.end(), graph->host_functions.begin(), graph->host_functions.end());
    for (CUgraphNode_st* node : graph->nodes) {
      if (node->child != nullptr) Add(node->child, certain);
      for (CUgraph_st* body : node->bodies) Add(body, /*certain=*/false);
    }
  }
};

/// What the server says of the graph's functions is for the runs to come. Pieces stay in the order of the graph's.
void TakeFunctions(CUgraphExec_st* exec, const wire::ListView<cuda::HostNodeMemory>& functions) {
  static std::atomic<uint64_t> graphs = 0;
  const uint64_t number = graphs.fetch_add(1, std::memory_order_relaxed) + 1;
  std::map<uint64_t, std::shared_ptr<FunctionMemory>> memories;
  std::map<uint64_t, std::vector<const cuda::HostNodeMemory*>> by_piece;
  std::vector<cuda::HostNodeMemory> all;
  functions.ForEach([&](const cuda::HostNodeMemory& each) { all.push_back(each); });
  for (const cuda::HostNodeMemory& each : all) {
    std::shared_ptr<FunctionMemory>& memory = memories[each.callback];
    if (memory == nullptr) memory = std::make_shared<FunctionMemory>();
    memory->function = each.callback;
    memory->graph = number;
    by_piece[each.staging.raw()].push_back(&each);
  }
  std::lock_guard lock(exec->mutex);
  exec->fetched.clear();
  for (const auto& copy : exec->host_copies) {
    for (const cuda::HostNodeMemory* each : by_piece[copy->staging.raw()]) {
      FunctionMemory& memory = *memories[each->callback];
      (each->after != 0 ? memory.fill : memory.fetch).push_back(copy);
      if (each->after == 0) exec->fetched.insert(copy.get());
    }
  }
  exec->functions.clear();
  for (const auto& [callback, memory] : memories) exec->functions[callback] = memory;
  RefreshFunctions(exec);
}

CUresult Instantiate(CUgraphExec* result, CUgraph graph, unsigned long long flags,
                     CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  CUctx_st* context = nullptr;
  if (const CUresult error = CurrentContext(&context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  guest::Session* session = Client::Get().session();
  auto* exec = new CUgraphExec_st(Kind::kGraphExec, session->NewId(static_cast<uint8_t>(cuda::Handle::kGraphExec)));
  exec->context = context;
  exec->flags = flags;
  Registry::Get().Add(exec);
  cuda::InstantiateGraph message;
  message.exec = exec->id;
  message.graph = graph->id;
  message.context = context->id;
  message.flags = flags & ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  Answer<cuda::InstantiateResult> answer;
  Collected collected(graph);
  const CUresult error = AskInOrder(graph, &collected.copies, message, &answer);
  if (params != nullptr) {
    params->result_out =
        error == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : static_cast<CUgraphInstantiateResult>(answer->result);
    if (error != CUDA_SUCCESS && answer->result == 0) params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    params->hErrNode_out = nullptr;
  }
  if (error != CUDA_SUCCESS) {
    const wire::Id id = exec->id;
    Registry::Get().Bury(exec);
    session->FreeId(id);
    return error;
  }
  exec->host_copies = std::move(collected.copies);
  exec->uncertain = std::move(collected.uncertain);
  exec->host_functions = Collected(graph).functions;  // Some may have been added.
  TakeFunctions(exec, answer->functions);
  ShareUserObjects(graph, exec);
  *result = exec;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuGraphCreate(CUgraph* result, unsigned int flags) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (result == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *result = NewGraph();
  cuda::CreateGraph message;
  message.graph = (*result)->id;
  return FromWire(Client::Get().session()->Send(message));
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (graph == nullptr || graph->kind != Kind::kGraph || graph->is_child) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = SendRelease(graph->id);
  ForgetGraph(graph);
  return error;
}

CUresult CUDAAPI cuGraphClone(CUgraph* result, CUgraph original) {
  if (const CUresult error = CheckGraph(original); error != CUDA_SUCCESS) return error;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraph clone = NewGraph();
  cuda::CloneGraph message;
  message.clone = clone->id;
  message.graph = original->id;
  if (const CUresult error = AskStatus(Client::Get().session(), message); error != CUDA_SUCCESS) {
    ForgetGraph(clone);
    return error;
  }
  Collected collected(original);
  std::lock_guard lock(clone->mutex);
  clone->host_copies = std::move(collected.copies);
  clone->host_functions = std::move(collected.functions);
  *result = clone;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return Instantiate(exec, graph, flags, nullptr);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char*, size_t) {
  if (error_node != nullptr) *error_node = nullptr;
  return Instantiate(exec, graph, 0, nullptr);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                                       size_t size) {
  if (log != nullptr && size != 0) log[0] = 0;
  return cuGraphInstantiate(exec, graph, error_node, log, size);
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = Instantiate(exec, graph, params->flags, params);
  if (error != CUDA_SUCCESS || (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0) return error;
  return cuGraphUpload(*exec, params->hUploadStream);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (exec == nullptr || exec->kind != Kind::kGraphExec) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = SendRelease(exec->id);
  DropUserObjects(exec);
  {
    std::lock_guard lock(exec->mutex);
    exec->host_copies.clear();
    exec->functions.clear();
    exec->enabled_functions.clear();
    // A launch that is under way may yet call them.
    if (exec->order != nullptr) exec->order->Keep(std::exchange(exec->host_functions, {}));
    exec->host_functions.clear();
    exec->order.reset();
  }
  const wire::Id id = exec->id;
  Registry::Get().Bury(exec);
  Client::Get().session()->FreeId(id);
  return error;
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  if (const CUresult error = Check(exec); error != CUDA_SUCCESS) return error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(exec, Kind::kGraphExec); error != CUDA_SUCCESS) return error;
  HostCopies copies, filled_before, fetched_after;
  bool has_functions = false;
  LaunchOrder* order = nullptr;
  {
    std::lock_guard lock(exec->mutex);
    for (const auto& copy : exec->host_copies) {
      if (!exec->disabled_copies.contains(copy->staging.raw())) copies.push_back(copy);
    }
    has_functions = !exec->functions.empty();
    if (!copies.empty() || !exec->host_functions.empty()) {
      if (exec->order == nullptr) exec->order = std::make_unique<LaunchOrder>();
      order = exec->order.get();
    }
    for (const auto& copy : copies) {
      if (!copy->to_host || exec->uncertain.contains(copy.get())) filled_before.push_back(copy);
      if (!exec->fetched.contains(copy.get())) fetched_after.push_back(copy);
    }
  }
  cuda::LaunchGraph message;
  message.exec = exec->id;
  if (command.capturing()) {  // It becomes a part of another graph, and so do its stand-ins.
    const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
    if (capture == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (const auto& copy : copies) {
      if (copy->to_host) continue;
      if (const CUresult error = CaptureHandOver(command, copy->memory); error != CUDA_SUCCESS) return error;
    }
    if (const CUresult error = command.Send(message); error != CUDA_SUCCESS) return error;
    std::scoped_lock lock(exec->mutex, capture->graph->mutex);
    capture->graph->host_copies.insert(capture->graph->host_copies.end(), copies.begin(), copies.end());
    capture->graph->host_functions.insert(capture->graph->host_functions.end(), exec->host_functions.begin(),
                                          exec->host_functions.end());
    return CUDA_SUCCESS;
  }
  if (order != nullptr) {
    if (const CUresult error = order->Before(command); error != CUDA_SUCCESS) return error;
  }
  if (has_functions) {
    if (const CUresult error = ClaimFunctions(exec); error != CUDA_SUCCESS) return error;
  }
  if (const CUresult error = FillBefore(command, filled_before); error != CUDA_SUCCESS) return error;
  if (has_functions) {
    if (const CUresult error = AwaitInStream(command); error != CUDA_SUCCESS) return error;
  }
  if (const CUresult error = Mirrors::Get().BeforeWork(command.stream()); error != CUDA_SUCCESS) return error;
  if (const CUresult error = command.Send(message); error != CUDA_SUCCESS) return error;
  // What comes behind in the stream may take what the functions change.
  if (has_functions) {
    if (const CUresult error = MarkChanges(command); error != CUDA_SUCCESS) return error;
  }
  if (const CUresult error = FetchAfter(command, fetched_after); error != CUDA_SUCCESS) return error;
  if (order == nullptr) return CUDA_SUCCESS;
  const CUresult error = order->After(command);
  exec->last_launch = order->event();
  return error;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec exec, CUstream handle) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(exec, Kind::kGraphExec); error != CUDA_SUCCESS) return error;
  cuda::LaunchGraph message;
  message.exec = exec->id;
  message.upload_only = 1;
  return command.Send(message);
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  if (const CUresult error = Check(exec); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckGraph(graph); error != CUDA_SUCCESS) return error;
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = AwaitFunctions(exec); error != CUDA_SUCCESS) return error;
  cuda::UpdateGraph message;
  message.exec = exec->id;
  message.graph = graph->id;
  Answer<cuda::UpdateResult> answer;
  Collected collected(graph);
  const CUresult error = AskInOrder(graph, &collected.copies, message, &answer);
  *info = {};
  info->result =
      error == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS : static_cast<CUgraphExecUpdateResult>(answer->result);
  if (error != CUDA_SUCCESS) {
    if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return error;
  }
  collected.functions = Collected(graph).functions;  // Some may have been added.
  {
    std::lock_guard lock(exec->mutex);
    exec->host_copies = std::move(collected.copies);
    exec->uncertain = std::move(collected.uncertain);
    exec->host_functions.swap(collected.functions);
    // A launch that was made before may yet call those that were there.
    if (exec->order != nullptr) exec->order->Keep(std::move(collected.functions));
  }
  TakeFunctions(exec, answer->functions);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                                   CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult error = cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node != nullptr) *error_node = nullptr;
  if (result != nullptr) *result = info.result;
  return error;
}
