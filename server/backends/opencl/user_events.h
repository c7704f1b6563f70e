// SPDX-License-Identifier: Apache-2.0
// Events that are set by hand: the guest's user events, and those with which transfers hold commands back.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_USER_EVENTS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_USER_EVENTS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "server/backends/opencl/completions.h"
#include "server/backends/opencl/handle.h"

namespace hawser::server::ocl {

/// Knows which user events are not set yet: commands can fail only as long as there are some (completions.h), and
/// nothing may wait for ever when a session ends.
///
/// Threading: Create on the executor, the rest on any thread. The mutex is a leaf: the driver is never called under it.
class UserEvents {
 public:
  explicit UserEvents(Completions& completions) : completions_(completions) {}
  ~UserEvents();

  /// Null and an error in *status when the driver refuses. `at_end` is what the event is set to when the session ends.
  Handle<cl_event> Create(cl_context context, int32_t at_end, int32_t* status);
  /// As clSetUserEventStatus; an error fails the commands that wait. Only the first call has an effect.
  int32_t Set(cl_event event, int32_t status);
  /// The guest gave the event back without setting it.
  void Forget(cl_event event);
  /// Sets all that are not set.
  void SetAll();
  /// Some are not set, or what follows from setting one is still under way. Not yet false may be late, never early.
  bool AnyUnset() const { return unset_count_.load(std::memory_order_acquire) != 0; }

  const Services& services() const { return completions_.services(); }

 private:
  bool Remove(cl_event event);

  Completions& completions_;
  std::mutex mutex_;
  std::unordered_map<cl_event, int32_t> unset_;  ///< What each is set to at the end; each with a reference.
  std::atomic<uint32_t> unset_count_{0};
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_USER_EVENTS_H_
