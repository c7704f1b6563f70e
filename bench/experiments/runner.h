// SPDX-License-Identifier: Apache-2.0
// What an experiment's program does: prepare, wait for the common start, launch, and tell how long each launch took.
#ifndef HAWSER_BENCH_EXPERIMENTS_RUNNER_H_
#define HAWSER_BENCH_EXPERIMENTS_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/experiments/options.h"
#include "bench/experiments/work.h"

namespace experiments {

/// One thread. What fails ends the program, with words.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string Name() const = 0;
  /// Begins a launch of the work.
  virtual void Launch() = 0;
  /// Until the oldest launch that was not waited for is done.
  virtual void Wait() = 0;
  virtual std::vector<float> Results() = 0;
};

struct Launched {
  int64_t begin_ns = 0;   ///< Since the start.
  int64_t length_ns = 0;  ///< Until its end was seen. A periodic launch begins when it is due.
};

/// The least value that is not below `part` of all, 0 < part <= 1 (nearest rank); 0 for none.
int64_t Percentile(std::vector<int64_t> values, double part);

/// The whole program after its device is there; its exit status. 1: the results are wrong.
int Run(const Options& options, const Work& work, Device& device);

}  // namespace experiments

#endif  // HAWSER_BENCH_EXPERIMENTS_RUNNER_H_
