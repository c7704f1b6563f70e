// SPDX-License-Identifier: Apache-2.0
// Divides a launch into parts at whole work-groups.
//
// Each part's work-items are a multiple of 64, as paper 004 wants it (its wave front), but whole work-groups whatever
// their size, which the paper's own "regardless of the work-group" would break; only the last part of a row may be
// less. Parts come in ascending order of work-groups, cover the launch exactly, and add up to its global offset. Sizes
// may change from part to part. Work-groups that are smaller at the end of a dimension (OpenCL 2.0) stay whole and
// last.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_SLICE_PLAN_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_SLICE_PLAN_H_

#include <cstdint>
#include <optional>

namespace hawser::server::slicing {

/// A launch, as clEnqueueNDRangeKernel has it. Dimensions beyond `dimensions` are not looked at.
struct LaunchShape {
  uint32_t dimensions = 1;  ///< 1 to 3.
  uint64_t offset[3] = {0, 0, 0};
  uint64_t global[3] = {1, 1, 1};
  /// Zeros: the driver chooses, and the kernel does not see it. Then a part may end at any multiple of 64 work-items.
  uint64_t local[3] = {0, 0, 0};
};

/// Work-items of a part are a multiple of this.
inline constexpr uint64_t kWave = 64;

struct SlicePart {
  uint64_t offset[3] = {0, 0, 0};
  uint64_t global[3] = {1, 1, 1};
  uint64_t items = 0;
  uint64_t first_group = 0;  ///< Along the axis of a carried plan.
};

/// Threading: none.
class SlicePlan {
 public:
  /// Parts differ in any dimension. Empty when the launch is none that could be divided (no work-items, sizes that
  /// overflow).
  static std::optional<SlicePlan> Plain(const LaunchShape& shape, uint64_t wave = kWave);
  /// Parts differ along one axis, which is chosen so that a part of `items` is possible if any is; uniform work-groups
  /// only, and no more of them than the word of slicing/carry.h holds.
  static std::optional<SlicePlan> Carried(const LaunchShape& shape, uint64_t items, uint64_t wave = kWave);

  bool done() const { return remaining_ == 0; }
  uint64_t remaining() const { return remaining_; }  ///< Work-items.
  uint64_t total() const { return total_; }
  /// The next part; not when done(). As near to `items` work-items as whole steps allow, at least one; up to a quarter
  /// more where that is the rest of a row or of the launch.
  SlicePart Next(uint64_t items);
  /// Work-items of what Next() would be.
  uint64_t NextItems(uint64_t items) const { return SlicePlan(*this).Next(items).items; }

  uint32_t axis() const { return axis_; }
  uint64_t groups(uint32_t dimension) const { return groups_[dimension]; }

 private:
  static constexpr uint32_t kEveryAxis = 3;

  /// Work-items of one step along `axis`, whose faster dimensions are complete.
  uint64_t StepItems(uint32_t axis) const;
  SlicePart Take(uint32_t axis, uint64_t count);

  LaunchShape shape_;
  uint64_t wave_ = kWave;
  uint64_t local_[3] = {1, 1, 1};
  uint64_t groups_[3] = {1, 1, 1};
  uint64_t at_[3] = {0, 0, 0};  ///< The next work-group.
  uint64_t total_ = 0;
  uint64_t remaining_ = 0;
  uint32_t axis_ = kEveryAxis;
};

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_SLICE_PLAN_H_
