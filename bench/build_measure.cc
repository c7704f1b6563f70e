// SPDX-License-Identifier: Apache-2.0
#include "bench/build_measure.h"

#include <array>
#include <chrono>
#include <string>

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Code;
using wire::Result;
using wire::Status;

constexpr size_t kItems = 256;
constexpr size_t kLocal = 64;

constexpr char kSource[] = R"(
uint mix_bits(uint x) {
  x ^= x >> 16; x *= 0x7feb352du;
  x ^= x >> 15; x *= 0x846ca68bu;
  return x ^ (x >> 16);
}
__kernel void scatter(__global uint* values) {
  size_t i = get_global_id(0);
  uint state = CONSTANT + (uint)i;
  for (int round = 0; round < 4; ++round) state = mix_bits(state + (uint)round);
  values[i] = state;
}
__kernel void reduce(__global const uint* values, __global uint* sums, __local uint* scratch) {
  size_t lid = get_local_id(0);
  scratch[lid] = values[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t width = get_local_size(0) / 2; width > 0; width /= 2) {
    if (lid < width) scratch[lid] ^= scratch[lid + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lid == 0) sums[get_group_id(0)] = scratch[0];
}
)";

uint32_t MixBits(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352du;
  x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

double Milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

}  // namespace

Result<Values> MeasureBuild(const OpenClDevice& device, uint32_t constant) {
  // The constant stands in the text itself, so that no cache keyed by source or options can know it.
  const std::string source = "#define CONSTANT " + std::to_string(constant) + "u\n" + kSource;

  // What was created before may still be on its way to the server: it belongs to nobody's build.
  cl_int drained = clEnqueueMarkerWithWaitList(device.queue(), 0, nullptr, nullptr);
  if (drained == CL_SUCCESS) drained = clFinish(device.queue());
  if (Status s = Check(drained, "clFinish"); !s.ok()) return s;

  const auto begin = Clock::now();
  auto program = device.Build(source);
  if (!program.ok()) return program.status();
  cl_build_status built = CL_BUILD_NONE;
  if (Status s = Check(clGetProgramBuildInfo(program->get(), device.device(), CL_PROGRAM_BUILD_STATUS, sizeof(built),
                                             &built, nullptr),
                       "clGetProgramBuildInfo");
      !s.ok()) {
    return s;
  }
  if (built != CL_BUILD_SUCCESS) return Status(Code::kInvalid, "program build: the build status is not success");
  auto scatter = OpenClDevice::CreateKernel(*program, "scatter");
  if (!scatter.ok()) return scatter.status();
  auto reduce = OpenClDevice::CreateKernel(*program, "reduce");
  if (!reduce.ok()) return reduce.status();
  const auto ready = Clock::now();

  auto values = device.CreateBuffer(kItems * sizeof(cl_uint));
  if (!values.ok()) return values.status();
  auto sums = device.CreateBuffer(kItems / kLocal * sizeof(cl_uint));
  if (!sums.ok()) return sums.status();
  const cl_mem values_handle = values->get(), sums_handle = sums->get();
  cl_int error = clSetKernelArg(scatter->get(), 0, sizeof(values_handle), &values_handle);
  error |= clSetKernelArg(reduce->get(), 0, sizeof(values_handle), &values_handle);
  error |= clSetKernelArg(reduce->get(), 1, sizeof(sums_handle), &sums_handle);
  error |= clSetKernelArg(reduce->get(), 2, kLocal * sizeof(cl_uint), nullptr);
  if (Status s = Check(error, "clSetKernelArg"); !s.ok()) return s;
  for (const Kernel* kernel : {&*scatter, &*reduce}) {
    error = clEnqueueNDRangeKernel(device.queue(), kernel->get(), 1, nullptr, &kItems, &kLocal, 0, nullptr, nullptr);
    if (Status s = Check(error, "clEnqueueNDRangeKernel"); !s.ok()) return s;
  }
  std::array<cl_uint, kItems / kLocal> found{};
  error =
      clEnqueueReadBuffer(device.queue(), sums_handle, CL_TRUE, 0, sizeof(found), found.data(), 0, nullptr, nullptr);
  if (Status s = Check(error, "clEnqueueReadBuffer"); !s.ok()) return s;
  const auto launched = Clock::now();

  for (size_t group = 0; group < found.size(); ++group) {
    uint32_t expected = 0;
    for (size_t i = group * kLocal; i < (group + 1) * kLocal; ++i) {
      uint32_t state = constant + static_cast<uint32_t>(i);
      for (uint32_t round = 0; round < 4; ++round) state = MixBits(state + round);
      expected ^= state;
    }
    if (found[group] != expected) {
      return Status(Code::kInvalid, "program build: the kernels computed " + std::to_string(found[group]) + " where " +
                                        std::to_string(expected) + " is right");
    }
  }
  return Values{{"build_ms", Milliseconds(ready - begin)}, {"first_launch_ms", Milliseconds(launched - ready)}};
}

}  // namespace hawser::bench
