// SPDX-License-Identifier: Apache-2.0
// runaway_opencl endless|short: a kernel that never ends, or one that does. Says "launched", then how it ended.
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

namespace {

constexpr char kSource[] =
    "kernel void run(global volatile uint* p, uint endless) {"
    "  p[get_global_id(0)] = get_global_id(0) * 3u;"
    "  while (endless && p[0] != 1u) {}"
    "}";

}  // namespace

int main(int argc, char** argv) {
  const cl_uint endless = argc == 2 && strcmp(argv[1], "endless") == 0 ? 1 : 0;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_int status = clGetPlatformIDs(1, &platform, nullptr);
  if (status == CL_SUCCESS) status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
  if (status != CL_SUCCESS) return printf("no device: %d\n", status), 3;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  const char* text = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &status);
  if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return 3;
  cl_kernel kernel = clCreateKernel(program, "run", &status);
  constexpr size_t kItems = 4096;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, kItems * sizeof(cl_uint), nullptr, &status);
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  clSetKernelArg(kernel, 1, sizeof(endless), &endless);
  status = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kItems, nullptr, 0, nullptr, nullptr);
  if (status == CL_SUCCESS) status = clFlush(queue);
  printf("launched: %d\n", status);
  fflush(stdout);
  status = clFinish(queue);
  printf("ended: %d\n", status);
  if (status != CL_SUCCESS) return 2;
  static cl_uint result[kItems];
  status = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(result), result, 0, nullptr, nullptr);
  for (cl_uint i = 0; i < kItems && status == CL_SUCCESS; ++i) {
    if (result[i] != i * 3) status = 1;
  }
  printf("result: %s\n", status == CL_SUCCESS ? "right" : "wrong");
  return status == CL_SUCCESS ? 0 : 1;
}
