// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/thread_state.h"

#include <pthread.h>

#include "interposer/cuda/client.h"
#include "interposer/cuda/stream.h"
#include "proto/cuda_api/unsupported.h"

namespace hawser::cu {

CUctx_st* ContextStack::Pop() {
  CUctx_st* context = top();
  if (context != nullptr) contexts_.pop_back();
  return context;
}

void ContextStack::Set(CUctx_st* context) {
  if (!contexts_.empty()) contexts_.pop_back();
  if (context != nullptr) contexts_.push_back(context);
}

namespace {

thread_local ThreadState* t_state = nullptr;

/// Runs when a thread ends, not when the process does.
void EndOfThread(void* state) {
  t_state = nullptr;
  delete static_cast<ThreadState*>(state);
}

pthread_key_t Key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    (void)pthread_key_create(&made, &EndOfThread);
    return made;
  }();
  return key;
}

}  // namespace

ThreadState& ThreadState::Get() {
  if (t_state == nullptr) [[unlikely]] {
    t_state = new ThreadState;
    (void)pthread_setspecific(Key(), t_state);
  }
  return *t_state;
}

ThreadState::~ThreadState() {
  if (Client::Get().Check() != CUDA_SUCCESS) return;
  for (const Entry& entry : streams_) {
    if (CheckObject(entry.stream, Kind::kStream) == CUDA_SUCCESS) DestroyStream(entry.stream);
  }
}

CUresult ThreadState::DefaultStream(CUctx_st* context, CUstream_st** stream) {
  for (Entry& entry : streams_) {
    if (entry.context != context) continue;
    if (entry.number != context->number) {
      const CUresult error = MakeStream(context, CU_STREAM_DEFAULT, 0, &entry.stream);
      if (error != CUDA_SUCCESS) return error;
      entry.number = context->number;
    }
    *stream = entry.stream;
    return CUDA_SUCCESS;
  }
  const CUresult error = MakeStream(context, CU_STREAM_DEFAULT, 0, stream);
  if (error == CUDA_SUCCESS) streams_.push_back({context, context->number, *stream});
  return error;
}

}  // namespace hawser::cu

namespace hawser::cuda_api {

PerThreadDefaultStream::PerThreadDefaultStream() { ++cu::ThreadState::Get().per_thread_calls; }
PerThreadDefaultStream::~PerThreadDefaultStream() { --cu::ThreadState::Get().per_thread_calls; }

}  // namespace hawser::cuda_api
