// SPDX-License-Identifier: Apache-2.0
// Capturing streams into graphs.
#include "interposer/cuda/capture.h"
#include "interposer/cuda/entry.h"
#include "interposer/cuda/graph.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

std::shared_ptr<Capture> NewCapture(CUstream_st* stream, CUstreamCaptureMode mode, CUgraph graph) {
  auto capture = std::make_shared<Capture>();
  capture->number = Client::Get().NewNumber();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph = graph;
  return capture;
}

/// The legacy stream cannot be captured, nor one that is being captured already.
CUresult CheckBegin(StreamCommand& command, CUstream stream, CUstreamCaptureMode mode) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = command.BeginQuestion(stream); error != CUDA_SUCCESS) return error;
  if (command.stream() == command.context()->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return command.capturing() ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  StreamCommand command;
  if (const CUresult error = CheckBegin(command, handle, mode); error != CUDA_SUCCESS) return error;
  CUgraph graph = NewGraph();
  cuda::BeginCapture message;
  command.Address(message);
  message.mode = mode;
  message.graph = graph->id;
  if (const CUresult error = AskStatus(command.session(), message); error != CUDA_SUCCESS) {
    ForgetGraph(graph);
    return error;
  }
  Captures::Get().Begin(NewCapture(command.stream(), mode, graph));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode* dependencies,
                                             const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  StreamCommand command;
  if (const CUresult error = CheckBegin(command, handle, mode); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckObject(graph, Kind::kGraph); error != CUDA_SUCCESS) return error;
  if (count != 0 && dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckEdges(edges, count); error != CUDA_SUCCESS) return error;
  std::vector<wire::Id> ids;
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult error = CheckObject(dependencies[i], Kind::kNode); error != CUDA_SUCCESS) return error;
    ids.push_back(dependencies[i]->id);
  }
  cuda::BeginCaptureToGraph message;
  command.Address(message);
  message.mode = mode;
  message.graph = graph->id;
  message.dependencies = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  if (const CUresult error = AskStatus(command.session(), message); error != CUDA_SUCCESS) return error;
  std::shared_ptr<Capture> capture = NewCapture(command.stream(), mode, graph);
  capture->into_existing = true;
  Captures::Get().Begin(std::move(capture));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* result) {
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle, /*earlier=*/false); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  // Whoever gave the graph need not ask for it.
  if (result == nullptr && !capture->into_existing) return CUDA_ERROR_INVALID_VALUE;
  if (result != nullptr) *result = nullptr;
  if (capture->origin != command.stream()) {
    capture->broken.store(true);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  cuda::EndCapture message;
  command.Address(message);
  CUresult error = AskStatus(command.session(), message);
  Captures::Get().End(capture);
  // Whatever else the server finds in what is left of it, like streams that were not joined.
  if (capture->broken.load()) error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  // Also when the capture itself has failed: most likely by that command.
  const CUresult earlier = TakePending(command.context());
  if (error == CUDA_SUCCESS) error = earlier;
  if (error != CUDA_SUCCESS && !capture->into_existing) {
    cuda::Release release;
    release.object = capture->graph->id;
    command.session()->Send(release);
    ForgetGraph(capture->graph);
  }
  if (error != CUDA_SUCCESS) return error;
  if (result != nullptr) *result = capture->graph;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
  if (capture == nullptr) {
    if (command.stream() == command.context()->legacy) {
      const CUresult error = Captures::Get().CheckLegacy(command.context(), /*use=*/false);
      if (error != CUDA_SUCCESS) return error;
    }
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
  } else {
    *status = capture->broken.load() ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies,
                                           const CUgraphEdgeData** edges, size_t* count) {
  if (status == nullptr || (edges != nullptr && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = cuStreamIsCapturing(handle, status); error != CUDA_SUCCESS) return error;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  StreamCommand command;
  if (const CUresult error = command.BeginQuestion(handle); error != CUDA_SUCCESS) return error;
  const std::shared_ptr<Capture> capture = Captures::Of(command.stream());
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (id != nullptr) *id = capture->number;
  if (graph != nullptr) *graph = capture->graph;
  if (dependencies == nullptr && count == nullptr) return CUDA_SUCCESS;
  std::vector<CUgraphNode>& nodes = ThreadState::Get().listed_nodes;
  nodes.clear();
  for (size_t names = 8;;) {
    NodeNames given(names);
    cuda::GetCaptureInfo message;
    command.Address(message);
    message.names = given.names();
    Answer<cuda::CaptureInfo> answer;
    if (const CUresult error = answer.Ask(command.session(), message); error != CUDA_SUCCESS) return error;
    nodes.clear();
    for (size_t i = 0; i < answer->dependencies.size(); ++i) {
      given.Used(answer->dependencies[i]);
      nodes.push_back(NodeOf(capture->graph, answer->dependencies[i]));
    }
    if (answer->dependencies.size() >= answer->total || answer->total > 65536) break;
    names = answer->total;
  }
  if (dependencies != nullptr) *dependencies = nodes.data();
  if (edges != nullptr) {
    // Others are refused where they would be made.
    std::vector<CUgraphEdgeData>& plain = ThreadState::Get().listed_edges;
    plain.assign(nodes.size(), CUgraphEdgeData{});
    *edges = plain.data();
  }
  if (count != nullptr) *count = nodes.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode* dependencies,
                                                      const CUgraphEdgeData* edges, size_t count, unsigned int flags) {
  StreamCommand command;
  if (const CUresult error = command.Begin(handle); error != CUDA_SUCCESS) return error;
  if (!command.capturing()) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > 1 || (count != 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = CheckEdges(edges, count); error != CUDA_SUCCESS) return error;
  std::vector<wire::Id> ids;
  for (size_t i = 0; i < count; ++i) {
    if (const CUresult error = CheckObject(dependencies[i], Kind::kNode); error != CUDA_SUCCESS) return error;
    ids.push_back(dependencies[i]->id);
  }
  cuda::SetCaptureDependencies message;
  command.Address(message);
  message.flags = flags;
  message.dependencies = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  return AskStatus(command.session(), message);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                                   unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}
