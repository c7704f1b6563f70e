// SPDX-License-Identifier: Apache-2.0
#include "bench/latency_measures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <vector>

#include "bench/samples.h"

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Code;
using wire::Result;
using wire::Status;

constexpr size_t kStepInts = 1024;  // 4 KiB in
constexpr size_t kStepOut = 16;     // 64 bytes out
constexpr size_t kSlotBytes = 4096;
constexpr size_t kSlots = 2048;

constexpr char kSource[] = R"(
__kernel void tick(__global int* counter) { counter[get_global_id(0)] += 1; }
__kernel void scale(__global const int* in, __global int* middle, int factor) {
  size_t i = get_global_id(0);
  middle[i] = in[i] * factor + 1;
}
__kernel void gather(__global const int* middle, __global int* out) {
  size_t i = get_global_id(0);
  int sum = 0;
  for (int k = 0; k < 64; ++k) sum += middle[i * 64 + k];
  out[i] = sum;
}
__kernel void arguments(__global int* out, int a, float b, __local int* scratch) {
  scratch[get_local_id(0)] = a + (int)b;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = scratch[0];
}
)";

double Microseconds(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

Status Wrong(const char* measure, int64_t expected, int64_t found) {
  return Status(Code::kInvalid, std::string(measure) + ": the device computed " + std::to_string(found) + " where " +
                                    std::to_string(expected) + " is right");
}

}  // namespace

Result<std::unique_ptr<LatencyMeasures>> LatencyMeasures::Create(const OpenClDevice& device) {
  std::unique_ptr<LatencyMeasures> measures(new LatencyMeasures(device));
  if (Status s = measures->Prepare(); !s.ok()) return s;
  return measures;
}

Status LatencyMeasures::Prepare() {
  auto program = device_.Build(kSource);
  if (!program.ok()) return program.status();
  program_ = std::move(*program);
  for (auto [kernel, name] :
       {std::pair{&tick_, "tick"}, {&scale_, "scale"}, {&gather_, "gather"}, {&arguments_, "arguments"}}) {
    auto created = OpenClDevice::CreateKernel(program_, name);
    if (!created.ok()) return created.status();
    *kernel = std::move(*created);
  }
  for (auto [buffer, size] : {std::pair{&counter_, sizeof(cl_int)},
                              {&step_in_, kStepInts * sizeof(cl_int)},
                              {&step_middle_, kStepInts * sizeof(cl_int)},
                              {&step_out_, kStepOut * sizeof(cl_int)},
                              {&slots_, kSlots * kSlotBytes}}) {
    auto created = device_.CreateBuffer(size);
    if (!created.ok()) return created.status();
    *buffer = std::move(*created);
  }
  const cl_mem counter = counter_.get(), in = step_in_.get(), middle = step_middle_.get(), out = step_out_.get();
  const cl_int factor = 3;
  cl_int error = clSetKernelArg(tick_.get(), 0, sizeof(counter), &counter);
  error |= clSetKernelArg(scale_.get(), 0, sizeof(in), &in);
  error |= clSetKernelArg(scale_.get(), 1, sizeof(middle), &middle);
  error |= clSetKernelArg(scale_.get(), 2, sizeof(factor), &factor);
  error |= clSetKernelArg(gather_.get(), 0, sizeof(middle), &middle);
  error |= clSetKernelArg(gather_.get(), 1, sizeof(out), &out);
  if (Status s = Check(error, "clSetKernelArg"); !s.ok()) return s;
  // The first launch of a kernel compiles it; that is not what is measured here.
  if (Status s = WriteCounter(0); !s.ok()) return s;
  if (Status s = Launch(tick_, 1, 1); !s.ok()) return s;
  if (Status s = ExpectCounter(1, "warm-up"); !s.ok()) return s;
  return Step(2).status();
}

Status LatencyMeasures::Launch(const Kernel& kernel, size_t global, size_t local) {
  return Check(clEnqueueNDRangeKernel(device_.queue(), kernel.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
               "clEnqueueNDRangeKernel");
}

Status LatencyMeasures::WriteCounter(cl_int value) {
  return Check(
      clEnqueueWriteBuffer(device_.queue(), counter_.get(), CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr),
      "clEnqueueWriteBuffer");
}

Status LatencyMeasures::ExpectCounter(cl_int expected, const char* measure) {
  cl_int found = -1;
  if (Status s = Check(
          clEnqueueReadBuffer(device_.queue(), counter_.get(), CL_TRUE, 0, sizeof(found), &found, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
      !s.ok()) {
    return s;
  }
  return found == expected ? Status::Ok() : Wrong(measure, expected, found);
}

Result<Values> LatencyMeasures::LaunchFinish(int iterations) {
  if (Status s = WriteCounter(0); !s.ok()) return s;
  std::vector<double> samples(static_cast<size_t>(iterations));
  for (double& sample : samples) {
    const auto begin = Clock::now();
    if (Status s = Launch(tick_, 1, 1); !s.ok()) return s;
    if (Status s = Check(clFinish(device_.queue()), "clFinish"); !s.ok()) return s;
    sample = Microseconds(Clock::now() - begin);
  }
  if (Status s = ExpectCounter(iterations, "launch and finish"); !s.ok()) return s;
  return Values{{"p50_us", Percentile(samples, 0.5)}, {"p99_us", Percentile(samples, 0.99)}};
}

Result<Values> LatencyMeasures::LongestFinish(std::chrono::milliseconds time) {
  if (Status s = WriteCounter(0); !s.ok()) return s;
  double longest = 0;
  int count = 0;
  const auto end = Clock::now() + time;
  for (auto now = Clock::now(); now < end; ++count) {
    if (Status s = Launch(tick_, 1, 1); !s.ok()) return s;
    if (Status s = Check(clFinish(device_.queue()), "clFinish"); !s.ok()) return s;
    const auto finished = Clock::now();
    longest = std::max(longest, Microseconds(finished - now));
    now = finished;
  }
  if (Status s = ExpectCounter(count, "launches beside a neighbour"); !s.ok()) return s;
  return Values{{"longest_us", longest}, {"count", count}};
}

Result<Values> LatencyMeasures::LaunchBurst(int count) {
  if (Status s = WriteCounter(0); !s.ok()) return s;
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (Status s = Launch(tick_, 1, 1); !s.ok()) return s;
  }
  const auto enqueued = Clock::now();
  if (Status s = Check(clFinish(device_.queue()), "clFinish"); !s.ok()) return s;
  const auto finished = Clock::now();
  if (Status s = ExpectCounter(count, "launch burst"); !s.ok()) return s;
  return Values{{"launches_per_s", count / (Microseconds(finished - begin) * 1e-6)},
                {"enqueue_us", Microseconds(enqueued - begin) / count}};
}

Result<Values> LatencyMeasures::SetArguments(int iterations) {
  auto out = device_.CreateBuffer(64 * sizeof(cl_int));
  if (!out.ok()) return out.status();
  const cl_mem out_handle = out->get();
  const cl_kernel kernel = arguments_.get();
  cl_int a = 0;
  cl_float b = 0;
  cl_int error = CL_SUCCESS;
  const auto begin = Clock::now();
  for (int i = 0; i < iterations; ++i) {
    a = i;
    b = static_cast<cl_float>(i % 7);
    error |= clSetKernelArg(kernel, 0, sizeof(out_handle), &out_handle);
    error |= clSetKernelArg(kernel, 1, sizeof(a), &a);
    error |= clSetKernelArg(kernel, 2, sizeof(b), &b);
    error |= clSetKernelArg(kernel, 3, 64 * sizeof(cl_int), nullptr);
  }
  const auto end = Clock::now();
  if (Status s = Check(error, "clSetKernelArg"); !s.ok()) return s;
  // The last values set are the ones that a launch sees.
  std::array<cl_int, 64> found{};
  if (Status s = Launch(arguments_, found.size(), found.size()); !s.ok()) return s;
  if (Status s = Check(clEnqueueReadBuffer(device_.queue(), out_handle, CL_TRUE, 0, sizeof(found), found.data(), 0,
                                           nullptr, nullptr),
                       "clEnqueueReadBuffer");
      !s.ok()) {
    return s;
  }
  const cl_int expected = a + static_cast<cl_int>(b);
  if (found[63] != expected) return Wrong("setting arguments", expected, found[63]);
  return Values{{"set_arg_us", Microseconds(end - begin) / (4.0 * iterations)}};
}

Result<Values> LatencyMeasures::ReadSmall(int iterations) {
  if (Status s = WriteCounter(4711); !s.ok()) return s;
  std::vector<double> samples(static_cast<size_t>(iterations));
  for (double& sample : samples) {
    cl_int found = 0;
    const auto begin = Clock::now();
    if (Status s = Check(clEnqueueReadBuffer(device_.queue(), counter_.get(), CL_TRUE, 0, sizeof(found), &found, 0,
                                             nullptr, nullptr),
                         "clEnqueueReadBuffer");
        !s.ok()) {
      return s;
    }
    sample = Microseconds(Clock::now() - begin);
    if (found != 4711) return Wrong("4-byte read", 4711, found);
  }
  return Values{{"p50_us", Percentile(samples, 0.5)}, {"p99_us", Percentile(samples, 0.99)}};
}

Result<Values> LatencyMeasures::Step(int iterations) {
  std::array<cl_int, kStepInts> in{};
  std::array<cl_int, kStepOut> out{};
  std::vector<double> samples(static_cast<size_t>(iterations));
  const GuestCounts before = counters_.Read();
  for (int i = 0; i < iterations; ++i) {
    std::iota(in.begin(), in.end(), i);
    const auto begin = Clock::now();
    cl_int error =
        clEnqueueWriteBuffer(device_.queue(), step_in_.get(), CL_FALSE, 0, sizeof(in), in.data(), 0, nullptr, nullptr);
    if (Status s = Check(error, "clEnqueueWriteBuffer"); !s.ok()) return s;
    if (Status s = Launch(scale_, kStepInts, 64); !s.ok()) return s;
    if (Status s = Launch(gather_, kStepOut, kStepOut); !s.ok()) return s;
    error =
        clEnqueueReadBuffer(device_.queue(), step_out_.get(), CL_TRUE, 0, sizeof(out), out.data(), 0, nullptr, nullptr);
    if (Status s = Check(error, "clEnqueueReadBuffer"); !s.ok()) return s;
    samples[static_cast<size_t>(i)] = Microseconds(Clock::now() - begin);
    for (size_t group = 0; group < kStepOut; ++group) {
      cl_int expected = 0;
      for (size_t k = 0; k < 64; ++k) expected += in[group * 64 + k] * 3 + 1;
      if (out[group] != expected) return Wrong("step", expected, out[group]);
    }
  }
  const GuestCounts after = counters_.Read();
  Values values{{"p50_us", Percentile(samples, 0.5)}, {"p99_us", Percentile(samples, 0.99)}};
  if (counters_.available()) {
    const auto per_step = [&](uint64_t total) { return static_cast<double>(total) / iterations; };
    values["waits"] = per_step(after.waits - before.waits);
    values["up_bytes"] = per_step(after.bytes_up - before.bytes_up + after.bulk_up - before.bulk_up);
    values["down_bytes"] = per_step(after.bytes_down - before.bytes_down + after.bulk_down - before.bulk_down);
  }
  return values;
}

Result<Values> LatencyMeasures::WriteBurst(int count) {
  // The memory of a write that does not wait may not change before the finish, so each has its own.
  const size_t slots = std::min(kSlots, static_cast<size_t>(count));
  std::vector<cl_uint> source(slots * kSlotBytes / sizeof(cl_uint));
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<cl_uint>(i * 2654435761u + 17u);
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    const size_t offset = (static_cast<size_t>(i) % slots) * kSlotBytes;
    const cl_int error =
        clEnqueueWriteBuffer(device_.queue(), slots_.get(), CL_FALSE, offset, kSlotBytes,
                             reinterpret_cast<const char*>(source.data()) + offset, 0, nullptr, nullptr);
    if (Status s = Check(error, "clEnqueueWriteBuffer"); !s.ok()) return s;
  }
  if (Status s = Check(clFinish(device_.queue()), "clFinish"); !s.ok()) return s;
  const double seconds = Microseconds(Clock::now() - begin) * 1e-6;
  std::vector<cl_uint> found(source.size());
  if (Status s = Check(clEnqueueReadBuffer(device_.queue(), slots_.get(), CL_TRUE, 0, found.size() * sizeof(cl_uint),
                                           found.data(), 0, nullptr, nullptr),
                       "clEnqueueReadBuffer");
      !s.ok()) {
    return s;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != source[i]) return Wrong("write burst", source[i], found[i]);
  }
  return Values{{"writes_per_s", count / seconds}};
}

Result<Values> LatencyMeasures::CreateRelease(int iterations) {
  const GuestCounts before = counters_.Read();
  const auto begin = Clock::now();
  for (int i = 0; i < iterations; ++i) {
    cl_int error = CL_SUCCESS;
    const cl_mem buffer = clCreateBuffer(device_.context(), CL_MEM_READ_WRITE, kSlotBytes, nullptr, &error);
    if (Status s = Check(error, "clCreateBuffer"); !s.ok()) return s;
    if (Status s = Check(clReleaseMemObject(buffer), "clReleaseMemObject"); !s.ok()) return s;
  }
  const double pair = Microseconds(Clock::now() - begin) / iterations;
  const GuestCounts after = counters_.Read();
  // Whatever was sent without waiting must have happened before the next measurement begins.
  if (Status s = Check(clFinish(device_.queue()), "clFinish"); !s.ok()) return s;
  Values values{{"pair_us", pair}};
  if (counters_.available()) values["waits"] = static_cast<double>(after.waits - before.waits) / iterations;
  return values;
}

}  // namespace hawser::bench
