// SPDX-License-Identifier: Apache-2.0
// A context, a queue and a program on the first device that the ICD loader shows.
#ifndef HAWSER_TESTS_INTEGRATION_CL_FIXTURE_H_
#define HAWSER_TESTS_INTEGRATION_CL_FIXTURE_H_

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <gtest/gtest.h>

#include <string>

namespace hawser::test {

inline bool OnShm() {
  const char* server = getenv("HAWSER_SERVER");
  return server != nullptr && std::string(server).rfind("shm:", 0) == 0;
}

class ClSetup {
 public:
  /// Check ok() afterwards: constructors cannot ASSERT.
  explicit ClSetup(cl_command_queue_properties properties = 0, const char* source = nullptr) {
    cl_uint count = 0;
    if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0) return;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) return;
    cl_int error = CL_SUCCESS;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    if (error != CL_SUCCESS) return;
    queue = NewQueue(properties);
    if (queue == nullptr) return;
    if (source != nullptr && !Build(source)) return;
    ok_ = true;
  }
  ~ClSetup() {
    if (program != nullptr) clReleaseProgram(program);
    if (queue != nullptr) clReleaseCommandQueue(queue);
    if (context != nullptr) clReleaseContext(context);
  }
  ClSetup(const ClSetup&) = delete;
  ClSetup& operator=(const ClSetup&) = delete;

  bool ok() const { return ok_; }

  cl_command_queue NewQueue(cl_command_queue_properties properties) {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    cl_int error = CL_SUCCESS;
    cl_command_queue made = clCreateCommandQueueWithProperties(context, device, list, &error);
    return error == CL_SUCCESS ? made : nullptr;
  }
  bool Build(const char* source) {
    cl_int error = CL_SUCCESS;
    program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
    if (error != CL_SUCCESS) return false;
    error = clBuildProgram(program, 1, &device, "", nullptr, nullptr);
    if (error != CL_SUCCESS) ADD_FAILURE() << "clBuildProgram: " << error;
    return error == CL_SUCCESS;
  }
  cl_kernel Kernel(const char* name) {
    cl_int error = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    EXPECT_EQ(error, CL_SUCCESS) << name;
    return kernel;
  }
  cl_mem Buffer(size_t size, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
    cl_int error = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(context, flags, size, host, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    return buffer;
  }

  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;

 private:
  bool ok_ = false;
};

}  // namespace hawser::test

#endif  // HAWSER_TESTS_INTEGRATION_CL_FIXTURE_H_
