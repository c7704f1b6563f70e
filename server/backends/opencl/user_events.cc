// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/user_events.h"

#include <utility>

namespace hawser::server::ocl {

UserEvents::~UserEvents() { SetAll(); }

Handle<cl_event> UserEvents::Create(cl_context context, int32_t at_end, int32_t* status) {
  Handle<cl_event> event(clCreateUserEvent(context, status));
  if (*status != CL_SUCCESS) return {};
  clRetainEvent(event.get());
  const std::lock_guard<std::mutex> lock(mutex_);
  unset_.emplace(event.get(), at_end);
  unset_count_.fetch_add(1, std::memory_order_relaxed);
  return event;
}

bool UserEvents::Remove(cl_event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return unset_.erase(event) != 0;
}

int32_t UserEvents::Set(cl_event event, int32_t status) {
  if (!Remove(event)) return CL_INVALID_OPERATION;  // The specification's code for a status that was set before.
  const Handle<cl_event> reference(event);
  const int32_t result = completions_.SetUserEvent(event, status);
  unset_count_.fetch_sub(1, std::memory_order_release);
  return result;
}

void UserEvents::Forget(cl_event event) {
  if (!Remove(event)) return;
  clReleaseEvent(event);
  unset_count_.fetch_sub(1, std::memory_order_release);
}

void UserEvents::SetAll() {
  std::unordered_map<cl_event, int32_t> unset;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    unset = std::exchange(unset_, {});
  }
  for (const auto& [event, status] : unset) {
    completions_.SetUserEvent(event, status);
    clReleaseEvent(event);
    unset_count_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace hawser::server::ocl
