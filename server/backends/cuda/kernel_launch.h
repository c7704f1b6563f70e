// SPDX-License-Identifier: Apache-2.0
// A launch by the driver's names, so that it can be kept and made later, whole or in parts.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_KERNEL_LAUNCH_H_
#define HAWSER_SERVER_BACKENDS_CUDA_KERNEL_LAUNCH_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/core/kernel_history.h"
#include "server/backends/cuda/driver_table.h"
#include "server/backends/cuda/objects.h"
#include "server/backends/cuda/slicing/guard.h"

namespace hawser::server::cuda_backend {

/// A copy of a kernel that runs some of its blocks (slicing/guard.h), loaded in one context. Lives as long as that.
struct SlicedKernel {
  OwnedModule module;
  CUfunction function = nullptr;
  cuda_slicing::Way way = cuda_slicing::Way::kGuard;
  cuda_slicing::ParameterLayout layout;
  mutable std::atomic<unsigned> shared{48u << 10};  ///< Bytes of dynamic shared memory that it may have.
};

/// What a graph, a kernel, or a part of one is made of. Not changed once it is made.
struct KernelLaunch {
  CUgraphExec graph = nullptr;  ///< Not null: a graph, and nothing of the following.
  CUfunction function = nullptr;
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
  unsigned shared = 0;
  bool extended = false;  ///< By cuLaunchKernelEx, with these.
  std::vector<CUlaunchAttribute> attributes;
  std::vector<std::byte> parameters;
  std::vector<std::shared_ptr<void>> keeps;  ///< What the attributes name.

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  bool one_row() const { return grid[1] == 1 && grid[2] == 1; }
  uint64_t block_threads() const { return uint64_t{block[0]} * block[1] * block[2]; }
  /// False: no device takes a grid or blocks of this size.
  bool IsPossible() const;

  CUresult Run(const DriverTable& driver, CUstream stream) const;
  /// Most blocks of one part, and of a launch that is run in parts.
  static constexpr uint64_t kMostPartBlocks = (uint64_t{1} << 31) - 1;
  static constexpr uint64_t kMostBlocks = (uint64_t{1} << 32) - 1;
  /// Blocks [low, high) in linear order.
  CUresult RunPart(const DriverTable& driver, CUstream stream, const SlicedKernel& sliced, uint64_t low,
                   uint64_t high) const;
  /// False when an attribute asks for what parts cannot give: all blocks at once, clusters, a launch that overlaps
  /// with its neighbours, an event within it; or is not known.
  bool AttributesAllowParts() const;

 private:
  CUresult RunWith(const DriverTable& driver, CUstream stream, CUfunction what, const std::array<unsigned, 3>& blocks,
                   const std::byte* data, size_t size) const;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_KERNEL_LAUNCH_H_
