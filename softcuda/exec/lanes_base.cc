// SPDX-License-Identifier: Apache-2.0
// The lane handlers for every processor of this architecture, and the choice between the sets.
#define HAWSER_LANES lanes_base
#include "softcuda/exec/lanes.inc"

namespace hawser::exec {

Handler FindLaneOp(LaneOp op, ptx::Type type, ptx::Type type2, uint32_t flags, Compare compare) {
#if defined(HAWSER_LANES_V3)
  static const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_v3) return lanes_v3::Find(op, type, type2, flags, compare);
#endif
  return lanes_base::Find(op, type, type2, flags, compare);
}

}  // namespace hawser::exec
