// SPDX-License-Identifier: Apache-2.0
// Graphs that a stream records.
#include <algorithm>
#include <cstring>
#include <utility>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

// --- capture

// What a thread may call while something is captured, and in which mode, is between the guest's threads, and the
// guest's library looks at it (interposer/cuda/capture.h). Here one thread stands for all of them, and calls what the
// guest does not know of. So to the driver all captures are relaxed, and so is this thread.
CUresult CudaBackend::RelaxCaptures() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (driver_.cuThreadExchangeStreamCaptureMode == nullptr) return CUDA_SUCCESS;
  return driver_.cuThreadExchangeStreamCaptureMode(&mode);
}

void CudaBackend::HoldForCapture(StreamState& stream) {
  if (deferral_.MustWait(StreamFootprint(stream.context, stream.id))) stream.capture_hold = HoldStream(stream);
}

int32_t CudaBackend::BeginCapture(const cuda::Call& call, const cuda::BeginCapture& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return ReplyStatus(call, at.status);
  if (driver_.cuStreamBeginCapture == nullptr || driver_.cuStreamGetCaptureInfo == nullptr) {
    return ReplyStatus(call, kNotSupported);
  }
  CUresult result = RelaxCaptures();
  if (result == CUDA_SUCCESS) result = driver_.cuStreamBeginCapture(at.native(), CU_STREAM_CAPTURE_MODE_RELAXED);
  if (result != CUDA_SUCCESS) return ReplyStatus(call, result);
  // The graph exists from now on, and the capture's.
  Graph graph;
  CUstreamCaptureStatus capture{};
  cuuint64_t id = 0;
  (void)driver_.cuStreamGetCaptureInfo(at.native(), &capture, &id, &graph.native, nullptr, nullptr, nullptr);
  const int32_t status = Keep(message.graph, std::move(graph));
  HoldForCapture(*at.stream);
  at.stream->captures = message.graph;
  at.stream->capture_mark = capture_mark_;
  return ReplyStatus(call, status);
}

int32_t CudaBackend::BeginCaptureToGraph(const cuda::Call& call, const cuda::BeginCaptureToGraph& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return ReplyStatus(call, at.status);
  int32_t status = 0;
  const Graph* graph = Use<Graph>(message.graph, &status);
  if (graph == nullptr) return ReplyStatus(call, status);
  if (driver_.cuStreamBeginCaptureToGraph == nullptr) return ReplyStatus(call, kNotSupported);
  std::vector<CUgraphNode> dependencies;
  if (status = UseNodes(message.dependencies, &dependencies); status != 0) return ReplyStatus(call, status);
  CUresult result = RelaxCaptures();
  if (result == CUDA_SUCCESS) {
    result = driver_.cuStreamBeginCaptureToGraph(at.native(), graph->native, dependencies.data(), nullptr,
                                                 dependencies.size(), CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  if (result == CUDA_SUCCESS) {
    HoldForCapture(*at.stream);
    at.stream->captures = message.graph;
    at.stream->capture_mark = capture_mark_;
  }
  return ReplyStatus(call, result);
}

int32_t CudaBackend::EndCapture(const cuda::Call& call, const cuda::EndCapture& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return ReplyStatus(call, at.status);
  if (driver_.cuStreamEndCapture == nullptr) return ReplyStatus(call, kNotSupported);
  CUgraph native = nullptr;
  const CUresult result = driver_.cuStreamEndCapture(at.native(), &native);
  Graph* graph = objects_->Table<Graph>().Find(at.stream->captures);
  at.stream->captures = {};
  at.stream->capture_mark.reset();
  if (at.stream->capture_hold != 0) ReleaseNow(std::exchange(at.stream->capture_hold, 0));
  FreePostponed();
  if (graph == nullptr) {
    if (native != nullptr && driver_.cuGraphDestroy != nullptr) (void)driver_.cuGraphDestroy(native);
    return ReplyStatus(call, result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE);
  }
  const bool existing = graph->inner || graph->owned.get() != nullptr;  // It was there before the capture, and stays.
  if (result != CUDA_SUCCESS || native == nullptr) {
    const int32_t error = result != CUDA_SUCCESS ? result : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!existing) graph->error = error;
    return ReplyStatus(call, error);
  }
  if (!existing) {
    graph->native = native;
    graph->owned = OwnedGraph(&driver_, native);
  }
  return ReplyStatus(call, 0);
}

int32_t CudaBackend::SetCaptureMode(const cuda::Call& call, const cuda::SetCaptureMode& message) {
  // Whatever it is: see RelaxCaptures().
  (void)message;
  return Finish(call, CUDA_SUCCESS);
}

int32_t CudaBackend::GetCaptureInfo(const cuda::Call& call, const cuda::GetCaptureInfo& message) {
  cuda::CaptureInfo reply;
  std::vector<wire::Id> named;
  const Place at = At(message.context, message.stream);
  reply.status = at.status;
  if (at.ok() && driver_.cuStreamGetCaptureInfo == nullptr) reply.status = kNotSupported;
  if (reply.status == 0) {
    CUstreamCaptureStatus capture{};
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* dependencies = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    reply.status = driver_.cuStreamGetCaptureInfo(at.native(), &capture, &id, &graph, &dependencies, &edges, &count);
    reply.capture = capture;
    reply.id = id;
    if (reply.status == 0 && capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
      // Another stream's capture may have reached this one.
      objects_->Table<Graph>().ForEach([&](wire::Id name, Graph& object) {
        if (object.error == 0 && object.native == graph) reply.graph = name;
      });
      reply.total = static_cast<uint32_t>(count);
      size_t used = 0;
      for (size_t i = 0; i < count; ++i) {
        const wire::Id name = NameNode(reply.graph, dependencies[i], message.names, &used);
        if (!name) break;
        named.push_back(name);
      }
    }
  }
  reply.dependencies = wire::ArrayView<wire::Id>(named.data(), named.size());
  reason_.clear();
  Reply(call, reply);
  return 0;
}

int32_t CudaBackend::SetCaptureDependencies(const cuda::Call& call, const cuda::SetCaptureDependencies& message) {
  const Place at = At(message.context, message.stream);
  if (!at.ok()) return ReplyStatus(call, at.status);
  if (driver_.cuStreamUpdateCaptureDependencies == nullptr) return ReplyStatus(call, kNotSupported);
  std::vector<CUgraphNode> dependencies;
  if (const int32_t status = UseNodes(message.dependencies, &dependencies); status != 0) {
    return ReplyStatus(call, status);
  }
  return ReplyStatus(call, driver_.cuStreamUpdateCaptureDependencies(at.native(), dependencies.data(), nullptr,
                                                                     dependencies.size(), message.flags));
}

}  // namespace hawser::server::cuda_backend
