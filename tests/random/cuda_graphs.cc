// SPDX-License-Identifier: Apache-2.0
// Graphs of a random CUDA program: captured from two streams or built of nodes, launched, changed.
#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/random/cuda_program.h"

namespace hawser::random {

void CudaProgram::MakeGraph() {
  if (graphs_.size() >= 4) return DestroyGraph(Pick(graphs_.size()));
  Graph graph{};
  const size_t count = 1 + Pick(8);
  const bool captured = Chance(50);
  for (size_t tries = 0; tries < 40 && graph.operations.size() < count; ++tries) {
    Operation operation;
    if (!Choose(&operation, true, kTheHost)) continue;
    const bool copy = operation.what == Operation::What::kCopy || operation.what == Operation::What::kRectangle;
    // A node has memory of the host on one side.
    if (!captured && copy && operation.to.memory->IsPlainHost() && operation.from.memory->IsPlainHost()) continue;
    graph.operations.push_back(operation);
  }
  if (graph.operations.empty()) return;
  const Kernels& kernels = AnyKernels();
  captured ? Capture(&graph, kernels) : Build(&graph, kernels);
  Do("instantiate", [&] { return cuGraphInstantiate(&graph.executable, graph.graph, 0); });
  if (Chance(30)) {
    Stream& stream = AnyStream();
    Begin(stream);
    OpenFor(stream.clock);  // Launches and changes may wait for it, wherever they are.
    Do(
        "upload", [&] { return cuGraphUpload(graph.executable, stream.handle); }, stream.owner);
  }
  for (const Operation& operation : graph.operations) {
    for (const Use& use : operation.Uses()) ++use.memory->graphs;
  }
  graphs_.push_back(std::move(graph));
}

void CudaProgram::Capture(Graph* graph, const Kernels& kernels) {
  // The operations that come before whatever is next in each of the two streams.
  uint64_t before[2] = {};
  bool forked = false;
  const CUevent event = AnyEvent();
  const auto order = [&](size_t from, size_t to) {
    const CUresult result = cuEventRecord(event, capture_[from]);
    before[to] |= before[from];
    return result != CUDA_SUCCESS ? result : cuStreamWaitEvent(capture_[to], event, 0);
  };
  Do("capture a graph", [&] {
    CUresult result = cuStreamBeginCapture(
        capture_[0], Chance(50) ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (size_t i = 0; i < graph->operations.size() && result == CUDA_SUCCESS; ++i) {
      const size_t in = Pick(2);
      if (in == 1 && !forked) {
        if ((result = order(0, 1)) != CUDA_SUCCESS) return result;
        forked = true;
      }
      for (size_t j = 0; j < i; ++j) {
        if (((before[in] >> j) & 1) != 0 || !Conflict(graph->operations[j], graph->operations[i])) continue;
        if ((result = order(1 - in, in)) != CUDA_SUCCESS) return result;
      }
      result = graph->operations[i].Issue(capture_[in], kernels, &mixes_);
      before[in] |= uint64_t{1} << i;
    }
    if (result == CUDA_SUCCESS && forked) result = order(1, 0);
    if (result != CUDA_SUCCESS) return result;
    return cuStreamEndCapture(capture_[0], &graph->graph);
  });
  for (const Operation& operation : graph->operations) Tell("    " + operation.Text());
}

void CudaProgram::Build(Graph* graph, const Kernels& kernels) {
  Do("make a graph", [&] {
    CUresult result = cuGraphCreate(&graph->graph, 0);
    graph->nodes.resize(graph->operations.size());
    // Which node is added first, and whether an order comes with its node or only afterwards, makes no difference.
    std::vector<size_t> turns(graph->nodes.size());
    std::iota(turns.begin(), turns.end(), 0);
    const bool afterwards = Chance(40);
    if (afterwards) std::shuffle(turns.begin(), turns.end(), random_);
    std::vector<CUgraphNode> from, to;
    for (size_t turn = 0; turn < turns.size() && result == CUDA_SUCCESS; ++turn) {
      const size_t i = turns[turn];
      std::vector<CUgraphNode> after;
      for (size_t j = 0; j < graph->nodes.size(); ++j) {
        if (graph->nodes[j] == nullptr) continue;
        if (!Conflict(graph->operations[j], graph->operations[i]) && !Chance(10)) continue;
        if (j < i && !(afterwards && Chance(50))) {
          after.push_back(graph->nodes[j]);
        } else {
          from.push_back(j < i ? graph->nodes[j] : nullptr);  // Null: the node that is being added.
          to.push_back(j < i ? nullptr : graph->nodes[j]);
        }
      }
      result = graph->operations[i].AddTo(graph->graph, after, context_, kernels, &mixes_, &graph->nodes[i]);
      std::replace(from.begin(), from.end(), CUgraphNode{}, graph->nodes[i]);
      std::replace(to.begin(), to.end(), CUgraphNode{}, graph->nodes[i]);
    }
    if (result == CUDA_SUCCESS && !from.empty()) {
      result = cuGraphAddDependencies(graph->graph, from.data(), to.data(), nullptr, from.size());
    }
    return result;
  });
  for (const Operation& operation : graph->operations) Tell("    " + operation.Text());
}

void CudaProgram::LaunchGraph() {
  if (graphs_.empty()) return;
  Graph& graph = graphs_[Pick(graphs_.size())];
  Stream& stream = AnyStream();
  const auto raced = [&]() -> std::optional<Use> {
    for (const Operation& operation : graph.operations) {
      for (const Use& each : operation.Uses()) {
        if (!each.memory->used.Race(each.offset, each.size, each.write, stream.clock)) continue;
        return each;
      }
    }
    return std::nullopt;
  };
  Join(stream);
  stream.clock.Join(graph.launched);
  while (const std::optional<Use> use = raced()) OrderOnStream(stream, *use);
  const Stamp stamp = Begin(stream);
  graph.launched = stream.clock;
  const auto calls_host = [](const Operation& operation) { return operation.what == Operation::What::kHostMix; };
  if (std::any_of(graph.operations.begin(), graph.operations.end(), calls_host)) host_functions_.push_back(stamp);
  Do(
      "launch a graph in " + std::to_string(stream.agent),
      [&] { return cuGraphLaunch(graph.executable, stream.handle); }, stream.owner);
  for (const Operation& operation : graph.operations) {
    Tell("    " + operation.Text());
    operation.Apply();
    for (const Use& use : operation.Uses()) use.memory->used.Use(use.offset, use.size, use.write, stamp);
  }
}

void CudaProgram::UpdateGraph() {
  if (graphs_.empty()) return;
  Graph& graph = graphs_[Pick(graphs_.size())];
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Operation& operation = graph.operations[i];
    if (operation.what == Operation::What::kHostMix || Chance(50)) continue;
    operation.factor = static_cast<uint8_t>(random_() | 1), operation.addend = static_cast<uint8_t>(random_());
    if (operation.element < 4) {
      operation.value = static_cast<uint32_t>(Pick(256));
    } else {
      operation.value = static_cast<uint32_t>(random_());
    }
    const Kernels& kernels = AnyKernels();
    // A launch that is held was not made yet, and is not to see the change.
    OpenFor(graph.launched);
    Do("change " + operation.Text(),
       [&] { return operation.Update(graph.executable, graph.nodes[i], context_, kernels); });
  }
}

void CudaProgram::DestroyGraph(size_t index) {
  const Graph& graph = graphs_[index];
  for (const Operation& operation : graph.operations) {
    for (const Use& use : operation.Uses()) --use.memory->graphs;
  }
  Do("destroy a graph", [&] {
    const CUresult result = cuGraphDestroy(graph.graph);
    return result != CUDA_SUCCESS ? result : cuGraphExecDestroy(graph.executable);
  });
  graphs_.erase(graphs_.begin() + static_cast<ptrdiff_t>(index));
}

}  // namespace hawser::random
