// SPDX-License-Identifier: Apache-2.0
// Entry points: stream capture.
#include <algorithm>

#include "softcuda/driver/capture.h"
#include "softcuda/driver/graph_entry.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

/// A stream and its context, whose lock guards the capture.
CUresult Locked(CUstream handle, StreamPtr* stream, ContextPtr* context) {
  HAWSER_TRY(GetStream(handle, stream));
  *context = (*stream)->context.lock();
  return *context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUstreamCaptureStatus StatusOf(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

bool GoodMode(CUstreamCaptureMode mode) {
  return mode >= CU_STREAM_CAPTURE_MODE_GLOBAL && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult Begin(CUstream handle, CUstreamCaptureMode mode, const GraphPtr& into, std::vector<NodePtr> ends) {
  StreamPtr stream;
  ContextPtr context;
  HAWSER_TRY(Locked(handle, &stream, &context));
  HAWSER_TRY(context->error());
  if (!GoodMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  return BeginCapture(stream.get(), mode, into, std::move(ends));
}

CUresult Info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
              const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  // What is given out stays until the next call of this thread.
  thread_local std::vector<CUgraphNode>* const nodes = new std::vector<CUgraphNode>;
  thread_local std::vector<CUgraphEdgeData>* const plain = new std::vector<CUgraphEdgeData>;
  StreamPtr stream;
  ContextPtr context;
  HAWSER_TRY(Locked(handle, &stream, &context));
  if (status == nullptr || (edges != nullptr && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(context->mutex);
  if (stream->legacy) HAWSER_TRY(CheckLegacy(*stream, /*use=*/false));
  *status = StatusOf(*stream);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id != nullptr) *id = stream->capture->id;
  if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(stream->capture->graph->handle);
  nodes->clear();
  for (const NodePtr& end : stream->capture_ends) nodes->push_back(Handle(*end));
  if (dependencies != nullptr) *dependencies = nodes->data();
  if (edges != nullptr) {
    plain->assign(nodes->size(), CUgraphEdgeData{});
    *edges = plain->data();
  }
  if (count != nullptr) *count = nodes->size();
  return CUDA_SUCCESS;
}

CUresult UpdateDependencies(CUstream handle, CUgraphNode* dependencies, size_t count, unsigned flags) {
  StreamPtr stream;
  ContextPtr context;
  HAWSER_TRY(Locked(handle, &stream, &context));
  std::vector<NodePtr> nodes;
  HAWSER_TRY(FindNodes(dependencies, count, &nodes));
  const std::lock_guard lock(context->mutex);
  if (StatusOf(*stream) != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_ILLEGAL_STATE;
  for (const NodePtr& node : nodes) {
    if (node->graph.lock() != stream->capture->graph) return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    stream->capture_ends = std::move(nodes);
    return CUDA_SUCCESS;
  }
  if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  for (const NodePtr& node : nodes) {
    auto& ends = stream->capture_ends;
    if (std::find(ends.begin(), ends.end(), node) == ends.end()) ends.push_back(node);
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return Begin(stream, mode, nullptr, {});
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream) {
  return Begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode* dependencies,
                                             const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  GraphPtr graph;
  HAWSER_TRY(FindGraph(handle, &graph));
  std::vector<NodePtr> ends;
  HAWSER_TRY(FindNodes(dependencies, count, &ends));
  return Begin(stream, mode, graph, std::move(ends));
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* to) {
  StreamPtr stream;
  ContextPtr context;
  HAWSER_TRY(Locked(handle, &stream, &context));
  GraphPtr graph;
  const std::lock_guard lock(context->mutex);
  // Whoever gave the graph need not ask for it.
  if (to == nullptr && (stream->capture == nullptr || !stream->capture->into_existing)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = EndCapture(stream.get(), &graph);
  if (to != nullptr)
    *to = result != CUDA_SUCCESS || graph == nullptr ? nullptr : reinterpret_cast<CUgraph>(graph->handle);
  return result;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return Info(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return Info(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return Info(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies,
                                           const CUgraphEdgeData** edges, size_t* count) {
  return Info(stream, status, id, graph, dependencies, edges, count);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                                   unsigned int flags) {
  return UpdateDependencies(stream, dependencies, count, flags);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* dependencies,
                                                      const CUgraphEdgeData*, size_t count, unsigned int flags) {
  return UpdateDependencies(stream, dependencies, count, flags);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (mode == nullptr || !GoodMode(*mode)) return CUDA_ERROR_INVALID_VALUE;
  std::swap(ThisThread().capture_mode, *mode);
  return CUDA_SUCCESS;
}

}  // extern "C"
