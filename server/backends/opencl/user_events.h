// SPDX-License-Identifier: Apache-2.0
// Events that are set by hand: the guest's user events, and those with which transfers hold commands back.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_USER_EVENTS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_USER_EVENTS_H_

#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "server/backends/opencl/completions.h"
#include "server/backends/opencl/handle.h"

namespace hawser::server::ocl {

/// Knows which user events are not set yet, so that nothing waits for ever when a session ends.
///
/// Threading: any thread. The mutex is a leaf: the driver is never called under it.
class UserEvents {
 public:
  explicit UserEvents(Completions& completions) : completions_(completions) {}
  ~UserEvents();

  /// Null and an error in *status when the driver refuses.
  Handle<cl_event> Create(cl_context context, int32_t* status);
  /// As clSetUserEventStatus; an error fails the commands that wait. Only the first call has an effect.
  int32_t Set(cl_event event, int32_t status);
  /// The guest gave the event back without setting it.
  void Forget(cl_event event);
  /// Ends all that are not set.
  void FailAll();

  const Services& services() const { return completions_.services(); }

 private:
  bool Remove(cl_event event);

  Completions& completions_;
  std::mutex mutex_;
  std::unordered_set<cl_event> unset_;  ///< Each with a reference.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_USER_EVENTS_H_
