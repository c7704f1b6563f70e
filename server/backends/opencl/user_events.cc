// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/user_events.h"

#include <utility>

namespace hawser::server::ocl {

UserEvents::~UserEvents() { FailAll(); }

Handle<cl_event> UserEvents::Create(cl_context context, int32_t* status) {
  Handle<cl_event> event(clCreateUserEvent(context, status));
  if (*status != CL_SUCCESS) return {};
  clRetainEvent(event.get());
  const std::lock_guard<std::mutex> lock(mutex_);
  unset_.insert(event.get());
  return event;
}

bool UserEvents::Remove(cl_event event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return unset_.erase(event) != 0;
}

int32_t UserEvents::Set(cl_event event, int32_t status) {
  if (!Remove(event)) return CL_INVALID_OPERATION;  // The specification's code for a status that was set before.
  const Handle<cl_event> reference(event);
  return completions_.SetUserEvent(event, status);
}

void UserEvents::Forget(cl_event event) {
  if (Remove(event)) clReleaseEvent(event);
}

void UserEvents::FailAll() {
  std::unordered_set<cl_event> unset;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    unset = std::exchange(unset_, {});
  }
  for (cl_event event : unset) {
    completions_.SetUserEvent(event, CL_DEVICE_NOT_AVAILABLE);
    clReleaseEvent(event);
  }
}

}  // namespace hawser::server::ocl
