// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/capture.h"

#include <algorithm>

#include "interposer/cuda/thread_state.h"

namespace hawser::cu {

Captures& Captures::Get() {
  static auto* captures = new Captures;
  return *captures;
}

void Captures::Begin(std::shared_ptr<Capture> capture) {
  CUstream_st* origin = capture->origin;
  {
    std::lock_guard lock(mutex_);
    captures_.emplace_back(capture, std::vector<CUstream_st*>{});
    count_.fetch_add(1, std::memory_order_release);
  }
  Join(origin, capture);
}

void Captures::Join(CUstream_st* stream, const std::shared_ptr<Capture>& capture) {
  std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(captures_.begin(), captures_.end(), [&](auto& each) { return each.first == capture; });
  if (found == captures_.end()) return;
  std::lock_guard stream_lock(stream->mutex);
  if (stream->capture == capture) return;
  stream->capture = capture;
  stream->capturing.store(true, std::memory_order_release);
  found->second.push_back(stream);
}

void Captures::Leave(CUstream_st* stream) {
  const std::shared_ptr<Capture> capture = Of(stream);
  if (capture == nullptr) return;
  std::lock_guard lock(mutex_);
  if (capture->origin == stream) capture->broken.store(true);
  for (auto& [each, streams] : captures_) {
    if (each == capture) std::erase(streams, stream);
  }
}

void Captures::End(const std::shared_ptr<Capture>& capture) {
  std::lock_guard lock(mutex_);
  capture->ended.store(true);
  const auto found =
      std::find_if(captures_.begin(), captures_.end(), [&](auto& each) { return each.first == capture; });
  if (found == captures_.end()) return;
  for (CUstream_st* stream : found->second) {
    std::lock_guard stream_lock(stream->mutex);
    if (stream->capture != capture) continue;
    stream->capture = nullptr;
    stream->capturing.store(false, std::memory_order_release);
  }
  captures_.erase(found);
  count_.fetch_sub(1, std::memory_order_release);
}

std::shared_ptr<Capture> Captures::Of(CUstream_st* stream) {
  if (!stream->capturing.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(stream->mutex);
  return stream->capture;
}

CUresult Captures::Wait(CUstream_st* stream, const std::shared_ptr<Capture>& capture) {
  const std::shared_ptr<Capture> own = Of(stream);
  if (capture == nullptr) {
    if (own == nullptr) return CUDA_SUCCESS;  // It has ended meanwhile.
    own->broken.store(true);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (capture->ended.load()) return CUDA_ERROR_CAPTURED_EVENT;
  if (capture->broken.load()) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream == stream->context->legacy) {
    capture->broken.store(true);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (own != nullptr && own != capture) {
    capture->broken.store(true);
    own->broken.store(true);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  Join(stream, capture);
  return CUDA_SUCCESS;
}

CUresult Captures::CheckWait(CUstream_st* stream) {
  if (const std::shared_ptr<Capture> capture = Of(stream)) {
    capture->broken.store(true);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return stream == stream->context->legacy ? Get().CheckLegacy(stream->context, /*use=*/true) : CUDA_SUCCESS;
}

CUresult Captures::CheckCommand(CUstream_st* stream) {
  if (stream->capturing.load(std::memory_order_relaxed)) [[unlikely]] {
    const std::shared_ptr<Capture> capture = Of(stream);
    const bool broken = capture != nullptr && capture->broken.load();
    return broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  }
  if (stream != stream->context->legacy) return CUDA_SUCCESS;
  return Get().CheckLegacy(stream->context, /*use=*/true);
}

CUresult Captures::CheckUnsafeCall() {
  if (count_.load(std::memory_order_acquire) == 0) [[likely]]
    return CUDA_SUCCESS;
  const CUstreamCaptureMode mine = ThreadState::Get().capture_mode;
  if (mine == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  bool forbidden = false;
  std::lock_guard lock(mutex_);
  for (const auto& [capture, streams] : captures_) {
    const bool here = capture->thread == std::this_thread::get_id();
    const bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mine == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || (!here && !global)) continue;
    capture->broken.store(true);
    forbidden = true;
  }
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult Captures::CheckLegacy(const CUctx_st* context, bool use) {
  if (count_.load(std::memory_order_acquire) == 0) [[likely]]
    return CUDA_SUCCESS;
  bool forbidden = false;
  std::lock_guard lock(mutex_);
  for (const auto& [capture, streams] : captures_) {
    const bool blocking = std::any_of(streams.begin(), streams.end(), [context](const CUstream_st* each) {
      return each->context == context && each->blocking();
    });
    if (!blocking) continue;
    if (use) capture->broken.store(true);
    forbidden = true;
  }
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

bool Captures::BreakIn(const CUctx_st* context) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  bool any = false;
  std::lock_guard lock(mutex_);
  for (const auto& [capture, streams] : captures_) {
    const bool takes_part = std::any_of(streams.begin(), streams.end(),
                                        [context](const CUstream_st* each) { return each->context == context; });
    if (!takes_part) continue;
    capture->broken.store(true);
    any = true;
  }
  return any;
}

}  // namespace hawser::cu
