// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/memory_probe.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "server/backends/opencl/handle.h"

namespace hawser::server::ocl {
namespace {

constexpr size_t kSize = 4096;
constexpr size_t kCount = kSize / sizeof(uint32_t);

struct Free {
  void operator()(uint32_t* memory) const { std::free(memory); }
};

bool AllAre(const uint32_t* values, uint32_t expected) {
  return std::all_of(values, values + kCount, [&](uint32_t value) { return value == expected; });
}

// Over memory that no other buffer lies in, as the heap's pages are.
bool Probe(cl_context context, cl_command_queue queue, uint32_t* memory, uint32_t* copy) {
  cl_int status = CL_SUCCESS;
  const Handle<cl_mem> shared(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, kSize, memory, &status));
  if (status != CL_SUCCESS) return false;
  const Handle<cl_mem> other(clCreateBuffer(context, CL_MEM_READ_WRITE, kSize, nullptr, &status));
  if (status != CL_SUCCESS) return false;

  // Twice: a driver that keeps a copy of its own could be right the first time.
  for (uint32_t round = 0; round < 2; ++round) {
    const uint32_t by_device = 0x5a5a0000 + round;
    const uint32_t by_host = 0x3c3c0000 + round;
    if (clEnqueueFillBuffer(queue, shared.get(), &by_device, sizeof(by_device), 0, kSize, 0, nullptr, nullptr) !=
            CL_SUCCESS ||
        clFinish(queue) != CL_SUCCESS || !AllAre(memory, by_device)) {
      return false;
    }
    std::fill(memory, memory + kCount, by_host);
    if (clEnqueueCopyBuffer(queue, shared.get(), other.get(), 0, 0, kSize, 0, nullptr, nullptr) != CL_SUCCESS ||
        clEnqueueReadBuffer(queue, other.get(), CL_TRUE, 0, kSize, copy, 0, nullptr, nullptr) != CL_SUCCESS ||
        !AllAre(copy, by_host)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool WorksInPlace(cl_platform_id platform, cl_device_id device) {
  cl_device_type type = 0;
  if (clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, nullptr) != CL_SUCCESS ||
      (type & CL_DEVICE_TYPE_CPU) == 0) {
    return false;
  }
  const std::unique_ptr<uint32_t, Free> memory(static_cast<uint32_t*>(std::aligned_alloc(kSize, kSize)));
  const std::unique_ptr<uint32_t, Free> copy(static_cast<uint32_t*>(std::aligned_alloc(kSize, kSize)));
  if (memory == nullptr || copy == nullptr) return false;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(platform),
                                              0};
  cl_int status = CL_SUCCESS;
  const Handle<cl_context> context(clCreateContext(properties, 1, &device, nullptr, nullptr, &status));
  if (status != CL_SUCCESS) return false;
  const Handle<cl_command_queue> queue(clCreateCommandQueue(context.get(), device, 0, &status));
  if (status != CL_SUCCESS) return false;
  const bool works = Probe(context.get(), queue.get(), memory.get(), copy.get());
  clFinish(queue.get());
  return works;
}

}  // namespace hawser::server::ocl
