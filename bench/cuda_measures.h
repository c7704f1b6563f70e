// SPDX-License-Identifier: Apache-2.0
// What `hawser bench cuda` measures, over CUDA's driver API alone. The same program runs on a driver directly and as a
// guest. Each measure checks what the device computed before it reports a number.
//
// Threading: none; belongs to the worker's only thread.
#ifndef HAWSER_BENCH_CUDA_MEASURES_H_
#define HAWSER_BENCH_CUDA_MEASURES_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wire/status.h"

namespace hawser::bench {

/// Named numbers. The unit is the end of the name: _us, _ms, _per_s, _gib_s; no unit: a count.
using CudaValues = std::map<std::string, double>;

class CudaMeasures {
 public:
  /// The first device; its primary context is kept.
  static wire::Result<std::unique_ptr<CudaMeasures>> Create();

  const std::string& device() const { return device_name_; }
  int driver_version() const { return driver_version_; }

  /// An empty kernel and cuStreamSynchronize. p50_us, p99_us.
  wire::Result<CudaValues> LaunchSync(int iterations);
  /// `count` empty kernels, then one wait. launches_per_s, enqueue_us (the program's part of each).
  wire::Result<CudaValues> LaunchBurst(int count);
  /// cuEventRecord; cuEventQuery of an event that is complete. record_us, query_us.
  wire::Result<CudaValues> Events(int iterations);
  /// cuMemcpyDtoH of 4 bytes. p50_us, p99_us.
  wire::Result<CudaValues> ReadSmall(int iterations);
  /// A training-like step: 50 launches, 2 writes and 2 reads of 4 KiB from pinned memory, 2 events, 1 wait. p50_us.
  wire::Result<CudaValues> Step(int iterations);
  /// cuMemAlloc and cuMemFree of 1 MiB. pair_us.
  wire::Result<CudaValues> AllocateFree(int iterations);
  /// Loading a module that no process has loaded before, if `constant` is new. load_ms, first_launch_ms.
  wire::Result<CudaValues> ModuleLoad(uint32_t constant);
  /// One direction, pageable or pinned memory, each copy followed by a wait for its stream. gib_s.
  wire::Result<CudaValues> Bandwidth(bool to_device, bool pinned, size_t size, int repetitions);
  /// A kernel over 16 MiB and the copy of its result, whole in one stream or in four parts in `streams` streams. ms.
  wire::Result<CudaValues> Streams(int streams, int repetitions);

 private:
  CudaMeasures() = default;
  wire::Status Prepare();
  wire::Status Launch(CUfunction function, unsigned blocks, void** parameters, CUstream stream);
  wire::Status ExpectCounter(uint32_t expected, const char* measure);

  std::string device_name_;
  int driver_version_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction nothing_ = nullptr, tick_ = nullptr, fill_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr counter_ = 0;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_CUDA_MEASURES_H_
