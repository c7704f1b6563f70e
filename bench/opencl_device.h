// SPDX-License-Identifier: Apache-2.0
// One OpenCL device with a context and an in-order queue, and owning handles for OpenCL objects.
//
// Threading: none; everything belongs to the thread that made it.
#ifndef HAWSER_BENCH_OPENCL_DEVICE_H_
#define HAWSER_BENCH_OPENCL_DEVICE_H_

#include <CL/cl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "wire/status.h"

namespace hawser::bench {

/// Owns one reference to an OpenCL object.
template <typename Handle, cl_int (*Release)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) Release(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Context = Owned<cl_context, clReleaseContext>;
using Queue = Owned<cl_command_queue, clReleaseCommandQueue>;
using Buffer = Owned<cl_mem, clReleaseMemObject>;
using Program = Owned<cl_program, clReleaseProgram>;
using Kernel = Owned<cl_kernel, clReleaseKernel>;

/// Ok for CL_SUCCESS, otherwise "<what> failed with <code>".
wire::Status Check(cl_int code, std::string_view what);

/// What the device says about itself.
struct DeviceFacts {
  std::string platform;
  std::string name;
  std::string version;
  std::string driver;
};

class OpenClDevice {
 public:
  /// Opens the first device whose name contains `filter` (empty: the first device of all).
  static wire::Result<std::unique_ptr<OpenClDevice>> Open(const std::string& filter);

  const DeviceFacts& facts() const { return facts_; }
  cl_platform_id platform() const { return platform_; }
  cl_device_id device() const { return device_; }
  cl_context context() const { return context_.get(); }
  cl_command_queue queue() const { return queue_.get(); }

  wire::Result<Buffer> CreateBuffer(size_t size, cl_mem_flags flags = CL_MEM_READ_WRITE) const;
  /// Builds; the status of a failure carries the build log.
  wire::Result<Program> Build(const std::string& source) const;
  static wire::Result<Kernel> CreateKernel(const Program& program, const char* name);

 private:
  OpenClDevice() = default;

  cl_platform_id platform_ = nullptr;
  cl_device_id device_ = nullptr;
  DeviceFacts facts_;
  Context context_;
  Queue queue_;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_OPENCL_DEVICE_H_
