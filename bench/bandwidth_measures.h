// SPDX-License-Identifier: Apache-2.0
// Bandwidth between host memory and a buffer, each way, for pageable and for mapped memory.
//
// Threading: none; belongs to the worker's only thread.
#ifndef HAWSER_BENCH_BANDWIDTH_MEASURES_H_
#define HAWSER_BENCH_BANDWIDTH_MEASURES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/latency_measures.h"
#include "bench/opencl_device.h"
#include "wire/status.h"

namespace hawser::bench {

enum class Direction : uint8_t { kHostToDevice, kDeviceToHost };
/// kPageable: clEnqueueRead/WriteBuffer on malloc'ed memory. kMapped: map, memcpy, unmap.
enum class HostMemory : uint8_t { kPageable, kMapped };

class BandwidthMeasures {
 public:
  static wire::Result<std::unique_ptr<BandwidthMeasures>> Create(const OpenClDevice& device);

  /// Moves `size` bytes (a multiple of 4096) `repetitions` times. gib_s.
  /// Host to device: the time ends with a clFinish, so that nothing is still on its way. Device to
  /// host: a kernel changes the buffer before each read, so that nothing can be answered from a copy.
  wire::Result<Values> Run(Direction direction, HostMemory memory, size_t size, int repetitions);

 private:
  explicit BandwidthMeasures(const OpenClDevice& device) : device_(device) {}
  wire::Result<double> Upload(cl_mem buffer, HostMemory memory, size_t size, int repetitions);
  wire::Result<double> Download(cl_mem buffer, HostMemory memory, size_t size, int repetitions);
  wire::Status Stamp(cl_mem buffer, size_t pages, cl_uint seed);
  wire::Status ExpectStamps(size_t pages, cl_uint seed) const;

  const OpenClDevice& device_;
  Program program_;
  Kernel stamp_;
  std::vector<cl_uint> source_;  ///< Host memory of the largest size so far, touched before it is timed.
  std::vector<cl_uint> sink_;    ///< As large.
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_BANDWIDTH_MEASURES_H_
