// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/slice_plan.h"

#include <algorithm>
#include <numeric>

#include "server/backends/opencl/slicing/carry.h"

namespace hawser::server::slicing {
namespace {

uint64_t Divide(uint64_t value, uint64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

}  // namespace

std::optional<SlicePlan> SlicePlan::Plain(const LaunchShape& shape, uint64_t wave) {
  if (shape.dimensions < 1 || shape.dimensions > 3) return std::nullopt;
  SlicePlan plan;
  plan.wave_ = wave;
  plan.shape_ = shape;
  uint64_t total = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    if (d >= shape.dimensions) {
      plan.shape_.offset[d] = 0;
      plan.shape_.global[d] = 1;
      continue;
    }
    uint64_t end = 0;
    if (shape.global[d] == 0 || __builtin_mul_overflow(total, shape.global[d], &total) ||
        __builtin_add_overflow(shape.offset[d], shape.global[d], &end)) {
      return std::nullopt;
    }
    plan.local_[d] = std::clamp<uint64_t>(shape.local[d], 1, shape.global[d]);
    plan.groups_[d] = Divide(shape.global[d], plan.local_[d]);
  }
  plan.total_ = plan.remaining_ = total;
  return plan;
}

std::optional<SlicePlan> SlicePlan::Carried(const LaunchShape& shape, uint64_t items, uint64_t wave) {
  std::optional<SlicePlan> plan = Plain(shape, wave);
  if (!plan) return std::nullopt;
  if (shape.dimensions == 3 && shape.offset[2] + shape.global[2] > kMostCarriedDepth) return std::nullopt;
  for (uint32_t d = 0; d < shape.dimensions; ++d) {
    // No local size means that the kernel does not see groups, but get_num_groups does.
    if (shape.local[d] == 0 || shape.global[d] % shape.local[d] != 0) return std::nullopt;
    if (shape.offset[d] + shape.global[d] >= kFirstCarryWord) return std::nullopt;
  }
  // The slowest axis, unless one step along it is more than a part should be.
  uint32_t axis = kEveryAxis;
  for (uint32_t d = shape.dimensions; d-- > 0;) {
    if (plan->groups_[d] < 2 || plan->groups_[d] > MostCarriedGroups(shape.dimensions)) continue;
    const auto step = [&](uint32_t of) { return plan->total_ / plan->groups_[of]; };
    if (axis == kEveryAxis || (step(axis) > items && step(d) < step(axis))) axis = d;
  }
  if (axis == kEveryAxis) return std::nullopt;
  plan->axis_ = axis;
  return plan;
}

uint64_t SlicePlan::StepItems(uint32_t axis) const {
  if (axis_ != kEveryAxis) return total_ / groups_[axis];  // All of the other dimension.
  uint64_t items = 1;
  for (uint32_t d = 0; d < 3; ++d) items *= d < axis ? shape_.global[d] : local_[d];
  return items;
}

SlicePart SlicePlan::Next(uint64_t items) {
  // A row that is a little longer is better taken whole than with a short part behind.
  const uint64_t most = items + items / 4;
  const auto multiple = [this](uint64_t step) { return wave_ / std::gcd(wave_, step); };
  uint32_t axis = axis_;
  if (axis_ == kEveryAxis) {
    // The slowest dimension of which a step fits; faster ones must be at their beginning.
    axis = 0;
    for (uint32_t d = 1; d < shape_.dimensions && at_[d - 1] == 0; ++d) {
      const uint64_t step = StepItems(d);
      if (step > most || multiple(step) * step > most) break;
      axis = d;
    }
  }
  const uint64_t step = StepItems(axis), wave = multiple(step);
  const uint64_t left = groups_[axis] - at_[axis];
  // Well longer than asked for only where that is all the rest. In turns, who has longer parts gets more of the device,
  // and a part that leaves some of a slice has a second one behind it: so the nearest, neither more nor less.
  if (left <= most / step) return Take(axis, left);
  const uint64_t wave_items = wave * step;
  const uint64_t waves = items / wave_items + (items % wave_items >= wave_items - wave_items / 2 ? 1 : 0);
  return Take(axis, std::min(std::max<uint64_t>(1, waves) * wave, left));
}

SlicePart SlicePlan::Take(uint32_t axis, uint64_t count) {
  SlicePart part;
  part.first_group = at_[axis];
  part.items = 1;
  for (uint32_t d = 0; d < 3; ++d) {
    const bool whole = axis_ != kEveryAxis ? d != axis : d < axis;
    const uint64_t begin = whole ? 0 : at_[d] * local_[d];
    uint64_t extent = shape_.global[d] - begin;
    if (!whole) extent = std::min(extent, (d == axis ? count : 1) * local_[d]);
    part.offset[d] = shape_.offset[d] + begin;
    part.global[d] = extent;
    part.items *= extent;
  }
  remaining_ -= part.items;
  at_[axis] += count;
  for (uint32_t d = axis; axis_ == kEveryAxis && d < 2 && at_[d] == groups_[d]; ++d) {
    at_[d] = 0;
    ++at_[d + 1];
  }
  return part;
}

}  // namespace hawser::server::slicing
