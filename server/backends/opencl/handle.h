// SPDX-License-Identifier: Apache-2.0
// One reference to an object of the driver, given back when it goes out of scope.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_HANDLE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_HANDLE_H_

#include <utility>

#include "server/backends/opencl/cl.h"

namespace hawser::server::ocl {

inline void RetainObject(cl_context object) { clRetainContext(object); }
inline void ReleaseObject(cl_context object) { clReleaseContext(object); }
inline void RetainObject(cl_command_queue object) { clRetainCommandQueue(object); }
inline void ReleaseObject(cl_command_queue object) { clReleaseCommandQueue(object); }
inline void RetainObject(cl_mem object) { clRetainMemObject(object); }
inline void ReleaseObject(cl_mem object) { clReleaseMemObject(object); }
inline void RetainObject(cl_sampler object) { clRetainSampler(object); }
inline void ReleaseObject(cl_sampler object) { clReleaseSampler(object); }
inline void RetainObject(cl_program object) { clRetainProgram(object); }
inline void ReleaseObject(cl_program object) { clReleaseProgram(object); }
inline void RetainObject(cl_kernel object) { clRetainKernel(object); }
inline void ReleaseObject(cl_kernel object) { clReleaseKernel(object); }
inline void RetainObject(cl_event object) { clRetainEvent(object); }
inline void ReleaseObject(cl_event object) { clReleaseEvent(object); }
inline void RetainObject(cl_device_id object) { clRetainDevice(object); }
inline void ReleaseObject(cl_device_id object) { clReleaseDevice(object); }

/// Threading: as a plain pointer; the driver's reference counts are thread-safe.
template <typename T>
class Handle {
 public:
  Handle() = default;
  /// Takes over the caller's reference. Null is fine.
  explicit Handle(T object) : object_(object) {}
  /// One more reference.
  static Handle Share(T object) {
    if (object != nullptr) RetainObject(object);
    return Handle(object);
  }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.object_, nullptr));
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { Reset(); }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T Release() { return std::exchange(object_, nullptr); }
  void Reset(T object = nullptr) {
    T old = std::exchange(object_, object);
    if (old != nullptr) ReleaseObject(old);
  }

 private:
  T object_ = nullptr;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_HANDLE_H_
