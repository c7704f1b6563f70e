// SPDX-License-Identifier: Apache-2.0
// Executable graphs, and what the guest is told of its memory in them.
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/graph_host_memory.h"

namespace hawser::server::cuda_backend {
namespace {

constexpr size_t kMaxHostNodeMemory = 65536;
/// What a launch of a graph counts as in its stream (ahead.h).
constexpr int32_t kCommandsOfGraph = 16;

}  // namespace

GraphHostMemory CudaBackend::HostMemoryOfGraphs() {
  using Stagings = std::map<const std::byte*, std::pair<uint64_t, wire::Id>>;
  using Bodies = std::unordered_map<CUgraphNode, std::vector<GraphHostMemory::Body>>;
  return GraphHostMemory(
      &driver_,
      [this, known = std::optional<Stagings>()](const void* address) mutable {
        if (!known) {
          known.emplace();
          objects_->Table<Staging>().ForEach([&](wire::Id id, Staging& staging) {
            if (staging.error == 0) (*known)[staging.block.data()] = {staging.size, id};
          });
        }
        const Stagings& stagings = *known;
        const auto* const at = static_cast<const std::byte*>(address);
        const auto after = stagings.upper_bound(at);
        if (after == stagings.begin()) return wire::Id();
        const auto& [begin, staging] = *std::prev(after);
        return static_cast<uint64_t>(at - begin) < staging.first ? staging.second : wire::Id();
      },
      [](const CUDA_HOST_NODE_PARAMS& node) {
        return node.fn == RunHostCall ? static_cast<const HostCall*>(node.userData)->callback : 0;
      },
      [this, known = std::optional<Bodies>()](CUgraphNode node) mutable {
        if (!known) {
          known.emplace();
          objects_->Table<Node>().ForEach([&](wire::Id, Node& named) {
            for (const wire::Id inner : named.inner) {
              const Graph* graph = objects_->Table<Graph>().Find(inner);
              if (graph != nullptr && graph->inner) (*known)[named.native].push_back({graph->native, graph->loops});
            }
          });
        }
        const auto bodies = known->find(node);
        return bodies != known->end() ? bodies->second : std::vector<GraphHostMemory::Body>();
      });
}

int32_t CudaBackend::TellHostNodes(CUgraph graph, std::vector<cuda::HostNodeMemory>* found,
                                   wire::ListView<cuda::HostNodeMemory>* functions) {
  if (host_calls_.empty()) return 0;
  const CUresult result = HostMemoryOfGraphs().Find(graph, found);
  if (result != CUDA_SUCCESS) return result;
  if (found->size() > kMaxHostNodeMemory) {
    return Explain(CUDA_ERROR_OUT_OF_MEMORY, "the graph's host functions have too many copies before and behind them");
  }
  *functions = wire::ListView<cuda::HostNodeMemory>(std::span<const cuda::HostNodeMemory>(*found));
  return 0;
}

template <typename Message, typename Result>
int32_t CudaBackend::CheckPieces(const Message& message, const Graph& graph, std::vector<wire::Id>* filled,
                                 Result* result) {
  if (message.pieces.size() == 0) return 0;
  GraphOrder::Extents extents;
  message.pieces.ForEach([&](const cuda::HostPiece& piece) {
    extents[piece.staging.raw()] = {piece.begin, piece.bytes};
  });
  GraphHostMemory::Passing passing;
  if (const CUresult error = HostMemoryOfGraphs().FindPassing(graph.native, extents, &passing)) return error;
  *filled = std::move(passing.filled);
  result->filled = wire::ArrayView<wire::Id>(filled->data(), filled->size());
  if (!passing.too_early) return 0;
  result->too_early = 1;
  size_t used = 0;
  const wire::ArrayView<wire::Id> names(&message.name, message.name ? 1 : 0);
  if (passing.node != nullptr) result->node = NameNode(message.graph, passing.node, names, &used);
  return CUDA_ERROR_NOT_SUPPORTED;
}

int32_t CudaBackend::InstantiateGraph(const cuda::Call& call, const cuda::InstantiateGraph& message) {
  cuda::InstantiateResult reply;
  std::vector<cuda::HostNodeMemory> host_nodes;
  std::vector<wire::Id> filled;  // To which the reply points.
  const Graph* graph = Use<Graph>(message.graph, &reply.status);
  if (graph != nullptr) reply.status = graph->lacks;
  if (reply.status == 0 && message.context) (void)Enter(message.context, &reply.status);
  if (reply.status == 0 && driver_.cuGraphInstantiateWithParams == nullptr) reply.status = kNotSupported;
  if (reply.status == 0) reply.status = CheckPieces(message, *graph, &filled, &reply);
  if (reply.status == 0) {
    // An upload would need a stream; LaunchGraph does that.
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    parameters.flags = message.flags & ~uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
    CUgraphExec native = nullptr;
    reply.status = driver_.cuGraphInstantiateWithParams(&native, graph->native, &parameters);
    reply.result = parameters.result_out;
    if (parameters.hErrNode_out != nullptr) {
      const auto named = graph->names.find(parameters.hErrNode_out);
      if (named != graph->names.end()) reply.node = named->second;
    }
    if (reply.status == 0) {
      GraphExec exec;
      exec.owned = OwnedGraphExec(&driver_, native);
      exec.facts = std::make_shared<KernelFacts>();
      exec.facts->name = "graph";
      exec.facts->graph = true;
      reply.status = TellHostNodes(graph->native, &host_nodes, &reply.functions);
      if (reply.status == 0) reply.status = Keep(message.exec, std::move(exec));
    }
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::UpdateGraph(const cuda::Call& call, const cuda::UpdateGraph& message) {
  cuda::UpdateResult reply;
  std::vector<cuda::HostNodeMemory> host_nodes;
  std::vector<wire::Id> filled;  // To which the reply points.
  GraphExec* exec = Use<GraphExec>(message.exec, &reply.status);
  const Graph* graph = exec != nullptr ? Use<Graph>(message.graph, &reply.status) : nullptr;
  if (graph != nullptr) reply.status = graph->lacks;
  if (reply.status == 0 && driver_.cuGraphExecUpdate == nullptr) reply.status = kNotSupported;
  if (reply.status == 0) reply.status = CheckPieces(message, *graph, &filled, &reply);
  if (reply.status == 0) {
    CUgraphExecUpdateResultInfo info{};
    reply.status = driver_.cuGraphExecUpdate(exec->owned.get(), graph->native, &info);
    reply.result = info.result;
    const auto named = graph->names.find(info.errorNode);
    if (info.errorNode != nullptr && named != graph->names.end()) reply.node = named->second;
    if (reply.status == 0) exec->names.clear();
    if (reply.status == 0) reply.status = TellHostNodes(graph->native, &host_nodes, &reply.functions);
  }
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::LaunchGraph(const cuda::Call& call, const cuda::LaunchGraph& message) {
  // What its nodes wait for is not known here.
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return Fail(call, at.status, {}, message.context);
  (void)at.stream->ahead.Count(kCommandsOfGraph);
  int32_t status = 0;
  const GraphExec* exec = Use<GraphExec>(message.exec, &status);
  if (exec == nullptr) return Fail(call, status, {}, message.context);
  const auto launch = message.upload_only != 0 ? driver_.cuGraphUpload : driver_.cuGraphLaunch;
  if (launch == nullptr) return Fail(call, kNotSupported, {}, message.context);
  if (message.upload_only != 0) return Finish(call, launch(exec->owned.get(), at.native()), message.context);
  if (unwatched() && !at.stream->open.full() && at.context->gate->BeginOpen()) [[likely]] {
    const CUresult result = launch(exec->owned.get(), at.native());
    at.context->gate->EndOpen();
    NoteOpen(at, exec->facts, 1);
    return Finish(call, result, message.context);
  }
  KernelLaunch whole;
  whole.graph = exec->owned.get();
  return Submit(call, at, message.context, std::move(whole), exec->facts, {}, message.exec);
}

}  // namespace hawser::server::cuda_backend
