// SPDX-License-Identifier: Apache-2.0
// runaway_opencl endless|behind|short|queue [DEVICE]: a kernel that never ends, one that waits for an event that this
// program sets when it is told to (by a line, after which it may be ended as well), one that ends, and many that take
// long together, likewise behind an event; on the first device, or on the one with this index. Says "launched", then
// how it ended.
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>

namespace {

constexpr char kSource[] =
    "kernel void run(global volatile uint* p, uint endless, uint rounds) {"
    "  for (uint i = 0; i < rounds; ++i) p[get_global_id(0)] = get_global_id(0) * 3u;"
    "  while (endless && p[0] != 1u) {}"
    "}";

}  // namespace

int main(int argc, char** argv) {
  const char* const mode = argc >= 2 ? argv[1] : "";
  const unsigned index = argc == 3 ? static_cast<unsigned>(atoi(argv[2])) : 0;
  const bool many = strcmp(mode, "queue") == 0, behind = many || strcmp(mode, "behind") == 0;
  const cl_uint endless = strcmp(mode, "endless") == 0 || strcmp(mode, "behind") == 0 ? 1 : 0;
  cl_platform_id platform = nullptr;
  constexpr cl_uint kMostDevices = 8;
  cl_device_id devices[kMostDevices] = {};
  cl_uint count = 0;
  cl_int status = clGetPlatformIDs(1, &platform, nullptr);
  if (status == CL_SUCCESS) status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, kMostDevices, devices, &count);
  if (status != CL_SUCCESS || index >= count || index >= kMostDevices) return printf("no device: %d\n", status), 3;
  const cl_device_id device = devices[index];
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  cl_command_queue other = clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  const char* text = kSource;
  cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &status);
  if (clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return 3;
  cl_kernel kernel = clCreateKernel(program, "run", &status);
  constexpr size_t kItems = 4096;
  cl_uint rounds = 1;
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, kItems * sizeof(cl_uint), nullptr, &status);
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  const cl_uint ends = 0;
  clSetKernelArg(kernel, 1, sizeof(endless), behind ? &ends : &endless);
  clSetKernelArg(kernel, 2, sizeof(rounds), &rounds);
  int launches = 1;
  if (behind) {
    // Alone for a while: then nobody is asked for what follows. So many rounds that a kernel takes about a twentieth of
    // a second; twenty of those.
    for (double took = 0; status == CL_SUCCESS && took < 0.05; rounds *= 2) {
      clSetKernelArg(kernel, 2, sizeof(rounds), &rounds);
      const auto begin = std::chrono::steady_clock::now();
      status = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kItems, nullptr, 0, nullptr, nullptr);
      if (status == CL_SUCCESS) status = clFinish(queue);
      took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    if (many) launches = 20;
    clSetKernelArg(kernel, 1, sizeof(endless), &endless);
  }
  cl_event event = behind && status == CL_SUCCESS ? clCreateUserEvent(context, &status) : nullptr;
  cl_event first = nullptr;
  if (many && status == CL_SUCCESS) {
    // On the other queue, and what is on this one waits for it.
    status = clEnqueueNDRangeKernel(other, kernel, 1, nullptr, &kItems, nullptr, 1, &event, &first);
    if (status == CL_SUCCESS) status = clFlush(other);
  } else {
    first = event;
  }
  for (; status == CL_SUCCESS && launches > 0; --launches) {
    status = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kItems, nullptr, first != nullptr ? 1 : 0,
                                    first != nullptr ? &first : nullptr, nullptr);
    first = nullptr;
  }
  if (status == CL_SUCCESS) status = clFlush(queue);
  printf("launched: %d\n", status);
  fflush(stdout);
  if (behind) {
    (void)getchar();
    clSetUserEventStatus(event, CL_COMPLETE);
  }
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
