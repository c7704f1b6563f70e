// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/entry.h"

#include "interposer/core/log.h"
#include "interposer/cuda/capture.h"
#include "proto/cuda_api/unsupported.h"

namespace hawser::cu {

CUresult CheckContext(CUctx_st* context) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Kind kind = context->kind.load(std::memory_order_relaxed);
  if (kind != Kind::kContext) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return static_cast<CUresult>(context->failed.load(std::memory_order_relaxed));
}

CUresult CheckOwnContext(CUctx_st* current) {
  const CUresult error = CheckContext(current);
  return error == CUDA_ERROR_INVALID_CONTEXT && current != nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : error;
}

CUresult CurrentContext(CUctx_st** context, bool earlier) {
  CUctx_st* current = ThreadState::Get().stack.top();
  if (const CUresult error = CheckOwnContext(current); error != CUDA_SUCCESS) [[unlikely]]
    return error;
  *context = current;
  if (const int32_t fault = current->fault.load(std::memory_order_relaxed); fault != 0) [[unlikely]] {
    return static_cast<CUresult>(fault);
  }
  return earlier ? TakePending(current) : CUDA_SUCCESS;
}

void StreamCommand::FollowOthers() {
  CUstream_st* const legacy = context_->legacy;
  if (stream_ != legacy) {
    stream_->followed.store(legacy->landings.version(), std::memory_order_relaxed);
    return stream_->Follow(legacy->landings.Open());
  }
  std::lock_guard lock(context_->mutex);
  context_->blocking_land.store(false, std::memory_order_relaxed);
  for (CUstream_st* other : context_->streams) {
    // Until they have landed: a stream that is given something meanwhile has some of its own.
    if (other->blocking() && !other->landings.empty()) legacy->Follow(other->landings.Open());
  }
}

void StreamCommand::AwaitRoom() const {
  if (own_) return;
  cuda::AwaitRoom message;
  Address(message);
  (void)AskStatus(session(), message);  // What is wrong with the stream or the session, the command itself will tell.
}

CUresult StreamCommand::Begin(CUstream handle, bool earlier) {
  const CUresult error = BeginQuestion(handle, earlier);
  return error != CUDA_SUCCESS ? error : Captures::CheckCommand(stream_);
}

CUresult StreamCommand::BeginQuestion(CUstream handle, bool earlier) {
  CUctx_st* current = nullptr;
  CUresult error = CurrentContext(&current, earlier);
  if (error != CUDA_SUCCESS) [[unlikely]]
    return error;
  error = FindStream(handle, current, &stream_);
  if (error != CUDA_SUCCESS) [[unlikely]]
    return error;
  context_ = stream_->context;
  if (context_ == current) [[likely]]
    return CUDA_SUCCESS;
  error = CheckContext(context_);
  if (error != CUDA_SUCCESS) return error;
  if (const int32_t fault = context_->fault.load(std::memory_order_relaxed); fault != 0) {
    return static_cast<CUresult>(fault);
  }
  return earlier ? TakePending(context_) : CUDA_SUCCESS;
}

CUresult RefuseOnce(const char* call, const char* why, std::atomic_flag* said) {
  if (!said->test_and_set(std::memory_order_relaxed)) {
    guest::Log(guest::LogLevel::kWarning, "%s is not supported: %s", call, why);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace hawser::cu

namespace hawser::cuda_api {

CUresult Unsupported(const char* symbol, std::atomic_flag* said) {
  return cu::RefuseOnce(symbol, "this version of Hawser does not carry it (docs/cuda-coverage.md)", said);
}

}  // namespace hawser::cuda_api
