// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/capture.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/thread_state.h"

namespace hawser::soft {
namespace {

/// All captures in progress, for CheckUnsafe(). Its lock is innermost.
struct Captures {
  std::mutex mutex;
  std::vector<CapturePtr> open;
  std::atomic<size_t> count{0};
};

Captures& AllCaptures() {
  static auto* const captures = new Captures;
  return *captures;
}

void Register(const CapturePtr& capture) {
  Captures& all = AllCaptures();
  const std::lock_guard lock(all.mutex);
  all.open.push_back(capture);
  all.count = all.open.size();
}

void Unregister(const CapturePtr& capture) {
  Captures& all = AllCaptures();
  const std::lock_guard lock(all.mutex);
  std::erase(all.open, capture);
  all.count = all.open.size();
}

/// Nodes from which one of `ends` can be reached, `ends` included.
std::set<const Node*> Ancestors(const std::vector<NodePtr>& ends) {
  std::set<const Node*> seen;
  std::vector<const Node*> open;
  for (const NodePtr& end : ends) open.push_back(end.get());
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    open.insert(open.end(), node->before.begin(), node->before.end());
  }
  return seen;
}

}  // namespace

CUresult Invalidate(Capture* capture, CUresult error) {
  capture->invalidated = true;
  return error;
}

CUresult RecordNode(Stream* stream, Work work) {
  Capture* const capture = stream->capture.get();
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  NodePtr node;
  const CUresult result = capture->graph->Add(std::move(work), stream->capture_ends, &node);
  if (result != CUDA_SUCCESS) return Invalidate(capture, result);
  stream->capture_ends = {node};
  return CUDA_SUCCESS;
}

CUresult JoinCapture(Stream* stream, const CapturePtr& capture, const std::vector<NodePtr>& ends) {
  if (capture == nullptr) return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->origin == nullptr) return CUDA_ERROR_CAPTURED_EVENT;  // That capture has ended.
  if (stream->legacy) return Invalidate(capture.get(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream->capture != nullptr && stream->capture != capture) {
    Invalidate(capture.get(), CUDA_SUCCESS);
    return Invalidate(stream->capture.get(), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (stream->capture == nullptr) {
    stream->capture = capture;
    stream->capture_ends.clear();
    capture->streams.insert(stream);
  }
  for (const NodePtr& end : ends) {
    const auto same = std::find(stream->capture_ends.begin(), stream->capture_ends.end(), end);
    if (same == stream->capture_ends.end()) stream->capture_ends.push_back(end);
  }
  return CUDA_SUCCESS;
}

CUresult CheckLegacy(const Stream& stream, bool use) {
  if (!stream.legacy || AllCaptures().count.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const ContextPtr context = stream.context.lock();
  Captures& all = AllCaptures();
  const std::lock_guard lock(all.mutex);
  for (const CapturePtr& capture : all.open) {
    for (const Stream* captured : capture->streams) {
      if (captured->blocking() && captured->context.lock() == context) {
        if (use) capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    }
  }
  return CUDA_SUCCESS;
}

bool InvalidateIn(const ContextPtr& context) {
  bool any = false;
  Captures& all = AllCaptures();
  const std::lock_guard lock(all.mutex);
  for (const CapturePtr& capture : all.open) {
    const bool takes_part = std::any_of(capture->streams.begin(), capture->streams.end(),
                                        [&](const Stream* stream) { return stream->context.lock() == context; });
    if (!takes_part) continue;
    capture->invalidated = true;
    any = true;
  }
  return any;
}

CUresult BeginCapture(Stream* stream, CUstreamCaptureMode mode, const GraphPtr& into, std::vector<NodePtr> ends) {
  static std::atomic<uint64_t> next{1};
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->graph = into;
  capture->into_existing = into != nullptr;
  if (into == nullptr) {
    capture->graph = std::make_shared<Graph>();
    GetDriver()->graphs.Add(capture->graph);
  }
  capture->id = next.fetch_add(1, std::memory_order_relaxed);
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->streams.insert(stream);
  stream->capture = capture;
  stream->capture_ends = std::move(ends);
  Register(capture);
  return CUDA_SUCCESS;
}

CUresult EndCapture(Stream* stream, GraphPtr* graph) {
  const CapturePtr capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return Invalidate(capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    const std::set<const Node*> joined = Ancestors(stream->capture_ends);
    const auto check = [&](const std::vector<NodePtr>& ends) {
      for (const NodePtr& end : ends) {
        if (!joined.contains(end.get())) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
      }
    };
    for (const Stream* other : capture->streams) check(other->capture_ends);
    check(capture->left);
  }
  for (Stream* other : capture->streams) {
    other->capture = nullptr;
    other->capture_ends.clear();
  }
  capture->streams.clear();
  capture->origin = nullptr;
  Unregister(capture);
  *graph = capture->graph;
  if (result != CUDA_SUCCESS && !capture->into_existing) {
    GetDriver()->graphs.Remove(capture->graph->handle);
    *graph = nullptr;
  }
  return result;
}

CUresult CheckUnsafe() {
  Captures& all = AllCaptures();
  const CUstreamCaptureMode mode = ThisThread().capture_mode;
  if (all.count.load(std::memory_order_relaxed) == 0 || mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const std::lock_guard lock(all.mutex);
  for (const CapturePtr& capture : all.open) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (global || (own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)) {
      return Invalidate(capture.get(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
