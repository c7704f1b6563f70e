// SPDX-License-Identifier: Apache-2.0
// How long it takes from source text to the first result of a kernel.
#ifndef HAWSER_BENCH_BUILD_MEASURE_H_
#define HAWSER_BENCH_BUILD_MEASURE_H_

#include <cstdint>

#include "bench/latency_measures.h"
#include "bench/opencl_device.h"
#include "wire/status.h"

namespace hawser::bench {

/// Builds a program of two kernels whose text contains `constant`; a constant that no earlier build
/// had makes it a cold build. Meant as the first thing a process does: later builds find a warm
/// compiler. build_ms (create, build, query the status, create the kernels), first_launch_ms.
wire::Result<Values> MeasureBuild(const OpenClDevice& device, uint32_t constant);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_BUILD_MEASURE_H_
