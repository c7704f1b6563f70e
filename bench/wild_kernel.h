// SPDX-License-Identifier: Apache-2.0
// A program that goes wrong on purpose: its kernel writes far outside of every allocation. Natively that ends the
// process; through a server it must end this guest's session alone, and be told.
//
// Threading: none; belongs to the worker's only thread.
#ifndef HAWSER_BENCH_WILD_KERNEL_H_
#define HAWSER_BENCH_WILD_KERNEL_H_

#include <map>
#include <memory>
#include <string>

#include "bench/opencl_device.h"
#include "wire/status.h"

namespace hawser::bench {

class WildKernel {
 public:
  /// Builds it, and runs it once where it does no harm.
  static wire::Result<std::unique_ptr<WildKernel>> Create(const OpenClDevice& device);

  /// Where it does harm. code: what clFinish said.
  wire::Result<std::map<std::string, double>> Run();

 private:
  explicit WildKernel(const OpenClDevice& device) : device_(device) {}
  wire::Status Launch(cl_long where);

  const OpenClDevice& device_;
  Program program_;
  Kernel kernel_;
  Buffer buffer_;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_WILD_KERNEL_H_
