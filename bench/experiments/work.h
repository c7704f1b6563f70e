// SPDX-License-Identifier: Apache-2.0
// What the experiments compute: the kernels of the thread-split paper (matrix multiplication, Sobel filter, binomial
// options) and of GPUvm (madd; long-madd is madd with five times the rounds). Sizes, inputs, and what is right; the
// kernels themselves are in opencl_guest.cc and cuda_guest.cu. All have the same parameters:
// (const float* a, const float* b, float* out, int n, int rounds). Rounds make a work-item longer: the product is
// summed so often, the filter is summed over so many distances, b is added so often; the options have none.
#ifndef HAWSER_BENCH_EXPERIMENTS_WORK_H_
#define HAWSER_BENCH_EXPERIMENTS_WORK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace experiments {

/// Work-items of a group of the binomial options: one for each node of the last step.
inline constexpr int kNodes = 64;
inline constexpr int kSteps = kNodes - 1;
/// Of one step of the binomial tree.
inline constexpr float kUp = 1.02F, kDown = 1.0F / kUp, kProbability = 0.5F, kDiscount = 0.9995F;

struct Work {
  std::string name;
  int size = 0;
  int rounds = 1;
  unsigned dimensions = 1;
  size_t items[2] = {1, 1};  ///< Whole work-groups; kernels look at n.
  size_t group[2] = {1, 1};
  std::vector<float> a, b;
  size_t results = 0;

  /// Result `index`, computed here.
  double Expected(size_t index) const;
  /// Of some results spread over all, the largest error, relative to 1 or to what is right.
  double WorstError(const std::vector<float>& out) const;
};

/// Work-items of a group, and its columns where nothing else is said.
inline constexpr int kGroup = 64;

/// False when there is no such work, or it would not fit into 32-bit indexes. `columns`: of a work-group of what has
/// two dimensions, a divisor of kGroup.
bool MakeWork(const std::string& name, int size, int rounds, Work* work, int columns = kGroup);

/// FNV-1a over the bytes.
uint64_t Checksum(const std::vector<float>& out);

}  // namespace experiments

#endif  // HAWSER_BENCH_EXPERIMENTS_WORK_H_
