// SPDX-License-Identifier: Apache-2.0
// Measurements of short calls: launches, argument setting, small transfers, object creation.
// Each checks what the device computed before it reports a number.
//
// Threading: none; belongs to the worker's only thread.
#ifndef HAWSER_BENCH_LATENCY_MEASURES_H_
#define HAWSER_BENCH_LATENCY_MEASURES_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "bench/guest_counters.h"
#include "bench/opencl_device.h"
#include "wire/status.h"

namespace hawser::bench {

/// Named numbers. The unit is the end of the name: _us, _ms, _per_s, _gib_s, _bytes; no unit: a count.
using Values = std::map<std::string, double>;

class LatencyMeasures {
 public:
  static wire::Result<std::unique_ptr<LatencyMeasures>> Create(const OpenClDevice& device);

  /// Launch, clFinish. p50_us, p99_us.
  wire::Result<Values> LaunchFinish(int iterations);
  /// Launch, clFinish, over and over for so long. longest_us: the one that took longest; count.
  wire::Result<Values> LongestFinish(std::chrono::milliseconds time);
  /// `count` tiny launches, then one clFinish. launches_per_s, enqueue_us (the guest's part of each).
  wire::Result<Values> LaunchBurst(int count);
  /// clSetKernelArg with a buffer, an int, a float and local memory in turn. set_arg_us.
  wire::Result<Values> SetArguments(int iterations);
  /// Blocking read of 4 bytes from an idle queue. p50_us, p99_us.
  wire::Result<Values> ReadSmall(int iterations);
  /// Write 4 KiB without waiting, two kernels, read 64 bytes and wait. p50_us, p99_us, and where the
  /// guest counts them: waits, up_bytes, down_bytes per step.
  wire::Result<Values> Step(int iterations);
  /// `count` writes of 4 KiB without waiting, then one clFinish. writes_per_s.
  wire::Result<Values> WriteBurst(int count);
  /// clCreateBuffer and clReleaseMemObject. pair_us, and where counted: waits per pair.
  wire::Result<Values> CreateRelease(int iterations);

 private:
  LatencyMeasures(const OpenClDevice& device) : device_(device), counters_(device.platform()) {}
  wire::Status Prepare();
  wire::Status Launch(const Kernel& kernel, size_t global, size_t local);
  wire::Status WriteCounter(cl_int value);
  wire::Status ExpectCounter(cl_int expected, const char* measure);

  const OpenClDevice& device_;
  GuestCounters counters_;
  Program program_;
  Kernel tick_, scale_, gather_, arguments_;
  Buffer counter_, step_in_, step_middle_, step_out_, slots_;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_LATENCY_MEASURES_H_
