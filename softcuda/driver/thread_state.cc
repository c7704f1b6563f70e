// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/thread_state.h"

#include <pthread.h>

#include <atomic>

namespace hawser::soft {
namespace {

/// A thread-specific key, not a thread_local object: its destructor does not run for the main thread's exit handlers.
pthread_key_t MakeKey() {
  pthread_key_t key;
  ::pthread_key_create(&key, [](void* state) { delete static_cast<ThreadState*>(state); });
  return key;
}

}  // namespace

ThreadState& ThisThread() {
  static const pthread_key_t key = MakeKey();
  static std::atomic<uint64_t> next{1};
  thread_local ThreadState* fast = nullptr;
  if (fast != nullptr && ::pthread_getspecific(key) == fast) return *fast;
  auto* const state = new ThreadState;
  state->number = next.fetch_add(1, std::memory_order_relaxed);
  ::pthread_setspecific(key, state);
  fast = state;
  return *state;
}

}  // namespace hawser::soft
