// SPDX-License-Identifier: Apache-2.0
// killed_opencl SECONDS: threads that use OpenCL, each in its own way, until a call fails or the time is over. Says
// "ready" when all is made, then what was seen (killed_guest.h). Exit status: see Outcome; 2 also for no device.
#include <CL/cl.h>

#include <algorithm>
#include <memory>

#include "tests/integration/killed_guest.h"

namespace {

using hawser::test::Outcome;
using hawser::test::Promised;

constexpr size_t kItems = 1024, kBytes = kItems * sizeof(cl_uint), kBulk = size_t{4} << 20;
constexpr char kSource[] = "kernel void add(global uint* p, uint value) { p[get_global_id(0)] += value; }";

template <auto kRelease>
struct Releaser {
  template <typename T>
  void operator()(T* handle) const {
    (void)kRelease(handle);
  }
};
using Context = std::unique_ptr<_cl_context, Releaser<clReleaseContext>>;
using Queue = std::unique_ptr<_cl_command_queue, Releaser<clReleaseCommandQueue>>;
using Program = std::unique_ptr<_cl_program, Releaser<clReleaseProgram>>;
using Kernel = std::unique_ptr<_cl_kernel, Releaser<clReleaseKernel>>;
using Memory = std::unique_ptr<_cl_mem, Releaser<clReleaseMemObject>>;
using Event = std::unique_ptr<_cl_event, Releaser<clReleaseEvent>>;

#define TRY(call)                                                                      \
  do {                                                                                 \
    if (const cl_int try_status = (call); try_status != CL_SUCCESS) return try_status; \
  } while (false)

void CL_CALLBACK OnEvent(cl_event, cl_int, void* promised) { static_cast<Promised*>(promised)->Keep(); }
void CL_CALLBACK OnDestroyed(cl_mem, void* promised) { static_cast<Promised*>(promised)->Keep(); }
void CL_CALLBACK OnBuilt(cl_program, void* promised) { static_cast<Promised*>(promised)->Keep(); }

/// What one thread has. Lives until all threads have ended, because the API may write into it until then.
struct Place {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  Outcome* outcome = nullptr;
  Queue queue;
  Memory buffer;
  Kernel add;
  std::vector<cl_uint> data = std::vector<cl_uint>(kBulk / sizeof(cl_uint));
  std::vector<cl_uint> back = std::vector<cl_uint>(kBulk / sizeof(cl_uint));

  cl_int Make(cl_program program) {
    cl_int status = CL_SUCCESS;
    queue.reset(clCreateCommandQueueWithProperties(context, device, nullptr, &status));
    if (status == CL_SUCCESS) buffer.reset(clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, &status));
    if (status == CL_SUCCESS) add.reset(clCreateKernel(program, "add", &status));
    return status;
  }
  cl_int Add(cl_uint value, cl_event after, cl_event* event) {
    cl_mem memory = buffer.get();
    TRY(clSetKernelArg(add.get(), 0, sizeof(memory), &memory));
    TRY(clSetKernelArg(add.get(), 1, sizeof(value), &value));
    return clEnqueueNDRangeKernel(queue.get(), add.get(), 1, nullptr, &kItems, nullptr, after != nullptr ? 1 : 0,
                                  after != nullptr ? &after : nullptr, event);
  }
  /// All of `count` numbers are `value`.
  void Expect(const cl_uint* numbers, size_t count, cl_uint value, const char* what) const {
    if (!std::all_of(numbers, numbers + count, [&](cl_uint number) { return number == value; })) outcome->Wrong(what);
  }
};

cl_int Launches(Place& at, cl_uint round) {
  TRY(clEnqueueFillBuffer(at.queue.get(), at.buffer.get(), &round, sizeof(round), 0, kBytes, 0, nullptr, nullptr));
  for (int i = 0; i < 20; ++i) TRY(at.Add(1, nullptr, nullptr));
  TRY(clEnqueueReadBuffer(at.queue.get(), at.buffer.get(), CL_TRUE, 0, kBytes, at.back.data(), 0, nullptr, nullptr));
  at.Expect(at.back.data(), kItems, round + 20, "a blocking read after launches");
  return CL_SUCCESS;
}

cl_int Events(Place& at, cl_uint round) {
  std::fill_n(at.data.begin(), kItems, round);
  cl_event written = nullptr, added = nullptr, read = nullptr;
  TRY(clEnqueueWriteBuffer(at.queue.get(), at.buffer.get(), CL_FALSE, 0, kBytes, at.data.data(), 0, nullptr, &written));
  const Event first(written);
  TRY(at.Add(3, written, &added));
  const Event second(added);
  Promised* promised = at.outcome->Promise("the callback of an event");
  if (const cl_int status = clSetEventCallback(added, CL_COMPLETE, OnEvent, promised); status != CL_SUCCESS) {
    promised->Withdraw();
    return status;
  }
  TRY(clEnqueueReadBuffer(at.queue.get(), at.buffer.get(), CL_FALSE, 0, kBytes, at.back.data(), 1, &added, &read));
  const Event third(read);
  TRY(clFlush(at.queue.get()));
  TRY(clWaitForEvents(1, &read));
  at.Expect(at.back.data(), kItems, round + 3, "a read that an event says is complete");
  return CL_SUCCESS;
}

cl_int UserEvents(Place& at, cl_uint round) {
  cl_int status = CL_SUCCESS;
  const Event gate(clCreateUserEvent(at.context, &status));
  TRY(status);
  const std::jthread setter([&] {
    std::this_thread::sleep_for(std::chrono::microseconds(round % 7 * 100));
    // Whether it fails as well is for the other thread to hear.
    (void)clSetUserEventStatus(gate.get(), CL_COMPLETE);
  });
  cl_event opened = gate.get(), mapped = nullptr;
  TRY(clEnqueueFillBuffer(at.queue.get(), at.buffer.get(), &round, sizeof(round), 0, kBytes, 1, &opened, nullptr));
  const void* const pointer = clEnqueueMapBuffer(at.queue.get(), at.buffer.get(), CL_FALSE, CL_MAP_READ, 0, kBytes, 0,
                                                 nullptr, &mapped, &status);
  TRY(status);
  const Event held(mapped);
  status = clWaitForEvents(1, &mapped);
  if (status == CL_SUCCESS) at.Expect(static_cast<const cl_uint*>(pointer), kItems, round, "a mapping");
  const cl_int unmapped =
      clEnqueueUnmapMemObject(at.queue.get(), at.buffer.get(), const_cast<void*>(pointer), 0, nullptr, nullptr);
  TRY(status);
  TRY(unmapped);
  return clFinish(at.queue.get());
}

cl_int Objects(Place& at, cl_uint round) {
  cl_int status = CL_SUCCESS;
  const Memory whole(clCreateBuffer(at.context, CL_MEM_READ_WRITE, 2 * kBytes, nullptr, &status));
  TRY(status);
  Promised* destroyed = at.outcome->Promise("the callback of a buffer's end");
  if (status = clSetMemObjectDestructorCallback(whole.get(), OnDestroyed, destroyed); status != CL_SUCCESS) {
    destroyed->Withdraw();
    return status;
  }
  const cl_buffer_region half = {kBytes, kBytes};
  const Memory part(clCreateSubBuffer(whole.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &status));
  TRY(status);
  std::fill_n(at.data.begin(), kItems, round);
  TRY(clEnqueueWriteBuffer(at.queue.get(), part.get(), CL_TRUE, 0, kBytes, at.data.data(), 0, nullptr, nullptr));
  TRY(clEnqueueReadBuffer(at.queue.get(), whole.get(), CL_TRUE, kBytes, kBytes, at.back.data(), 0, nullptr, nullptr));
  at.Expect(at.back.data(), kItems, round, "a read of what a part of it was written with");
  if (round % 16 != 0) return CL_SUCCESS;
  const std::string text = "kernel void f(global uint* p) { p[0] = " + std::to_string(round / 16 % 4) + "; }";
  const char* source = text.c_str();
  const Program program(clCreateProgramWithSource(at.context, 1, &source, nullptr, &status));
  TRY(status);
  Promised* built = at.outcome->Promise("the callback of a build");
  if (status = clBuildProgram(program.get(), 1, &at.device, "", OnBuilt, built); status != CL_SUCCESS) {
    built->Withdraw();
    return status;
  }
  cl_build_status state = CL_BUILD_IN_PROGRESS;
  while (state == CL_BUILD_IN_PROGRESS) {
    TRY(clGetProgramBuildInfo(program.get(), at.device, CL_PROGRAM_BUILD_STATUS, sizeof(state), &state, nullptr));
    if (state == CL_BUILD_IN_PROGRESS) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (state != CL_BUILD_SUCCESS) return CL_BUILD_PROGRAM_FAILURE;
  const Kernel kernel(clCreateKernel(program.get(), "f", &status));
  return status;
}

cl_int Bulk(Place& at, cl_uint round) {
  cl_int status = CL_SUCCESS;
  const Memory from(clCreateBuffer(at.context, CL_MEM_READ_WRITE, kBulk, nullptr, &status));
  TRY(status);
  const Memory to(clCreateBuffer(at.context, CL_MEM_READ_WRITE, kBulk, nullptr, &status));
  TRY(status);
  std::fill(at.data.begin(), at.data.end(), round);
  TRY(clEnqueueWriteBuffer(at.queue.get(), from.get(), CL_FALSE, 0, kBulk, at.data.data(), 0, nullptr, nullptr));
  TRY(clEnqueueCopyBuffer(at.queue.get(), from.get(), to.get(), 0, 0, kBulk, 0, nullptr, nullptr));
  TRY(clEnqueueReadBuffer(at.queue.get(), to.get(), CL_FALSE, 0, kBulk, at.back.data(), 0, nullptr, nullptr));
  TRY(clFinish(at.queue.get()));
  at.Expect(at.back.data(), at.back.size(), round, "a large read after clFinish");
  return CL_SUCCESS;
}

int Told(Outcome* outcome, cl_int status) {
  outcome->Told(status);
  return outcome->Report();
}

}  // namespace

int main(int argc, char** argv) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc == 2 ? atoi(argv[1]) : 1);
  Outcome outcome;
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_int status = clGetPlatformIDs(1, &platform, nullptr);
  if (status == CL_SUCCESS) status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
  if (status != CL_SUCCESS) return Told(&outcome, status);
  {
    const Context context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status));
    if (status != CL_SUCCESS) return Told(&outcome, status);
    const char* source = kSource;
    const Program program(clCreateProgramWithSource(context.get(), 1, &source, nullptr, &status));
    if (status == CL_SUCCESS) status = clBuildProgram(program.get(), 1, &device, "", nullptr, nullptr);
    if (status != CL_SUCCESS) return Told(&outcome, status);
    using Round = cl_int (*)(Place&, cl_uint);
    constexpr Round kRounds[] = {Launches, Events, UserEvents, Objects, Bulk};
    std::vector<Place> places(std::size(kRounds));
    for (Place& place : places) {
      place.device = device, place.context = context.get(), place.outcome = &outcome;
      if (status == CL_SUCCESS) status = place.Make(program.get());
    }
    if (status != CL_SUCCESS) return Told(&outcome, status);
    printf("ready\n");
    fflush(stdout);
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < places.size(); ++i) {
      threads.emplace_back(
          [&, i] { hawser::test::Repeat(&outcome, end, [&](cl_uint round) { return kRounds[i](places[i], round); }); });
    }
    threads.clear();  // Waits for them.
  }
  return outcome.Report();
}
