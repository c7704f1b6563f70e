// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/carry.h"

namespace hawser::server::slicing {
namespace {

// Valid in OpenCL C 1.0 to 3.0. Guarded, because a program may be another one's header.
constexpr std::string_view kPrelude = R"(#if defined(HAWSER_SPLIT_CARRY) && !defined(HAWSER_SPLIT_CARRY_SEEN)
#define HAWSER_SPLIT_CARRY_SEEN
#define HAWSER_SPLIT_FN static __attribute__((unused, always_inline))
#define HAWSER_SPLIT_ON(w) (((w) >> 58) == 1)
#define HAWSER_SPLIT_AXIS(w) ((uint)((w) >> 54) & 3u)
#define HAWSER_SPLIT_DIMS(w) (((uint)((w) >> 56) & 3u) + 1u)
#define HAWSER_SPLIT_DEEP(w) (((uint)((w) >> 57) & 1u) != 0)
#define HAWSER_SPLIT_ALL(w) ((size_t)(HAWSER_SPLIT_DEEP(w) ? ((w) >> 38) & 0xffff : ((w) >> 27) & 0x7ffffff))
#define HAWSER_SPLIT_BASE(w) ((size_t)(HAWSER_SPLIT_DEEP(w) ? ((w) >> 22) & 0xffff : (w) & 0x7ffffff))
#define HAWSER_SPLIT_DEPTH(w) ((size_t)(HAWSER_SPLIT_DEEP(w) ? (w) & 0x3fffff : 0))
HAWSER_SPLIT_FN size_t hawser_split_get_group_id(uint d) {
  const ulong w = get_global_id(2);
  return get_group_id(d) + (HAWSER_SPLIT_ON(w) && d == HAWSER_SPLIT_AXIS(w) ? HAWSER_SPLIT_BASE(w) : 0);
}
HAWSER_SPLIT_FN size_t hawser_split_get_num_groups(uint d) {
  const ulong w = get_global_id(2);
  return HAWSER_SPLIT_ON(w) && d == HAWSER_SPLIT_AXIS(w) ? HAWSER_SPLIT_ALL(w) : get_num_groups(d);
}
HAWSER_SPLIT_FN size_t hawser_split_get_global_size(uint d) {
  const ulong w = get_global_id(2);
  return HAWSER_SPLIT_ON(w) && d == HAWSER_SPLIT_AXIS(w) ? HAWSER_SPLIT_ALL(w) * get_local_size(d) : get_global_size(d);
}
HAWSER_SPLIT_FN size_t hawser_split_get_global_id(uint d) {
  const size_t id = get_global_id(d);
  return d == 2 && HAWSER_SPLIT_ON((ulong)id) ? HAWSER_SPLIT_DEPTH((ulong)id) : id;
}
HAWSER_SPLIT_FN size_t hawser_split_get_global_offset(uint d) {
  const ulong w = get_global_id(2);
  if (!HAWSER_SPLIT_ON(w)) return get_global_offset(d);
  if (d > 2) return 0;
  return hawser_split_get_global_id(d) - get_local_id(d) -
         (get_group_id(d) + (d == HAWSER_SPLIT_AXIS(w) ? HAWSER_SPLIT_BASE(w) : 0)) * get_local_size(d);
}
HAWSER_SPLIT_FN uint hawser_split_get_work_dim(void) {
  const ulong w = get_global_id(2);
  return HAWSER_SPLIT_ON(w) ? HAWSER_SPLIT_DIMS(w) : get_work_dim();
}
HAWSER_SPLIT_FN size_t hawser_split_get_global_linear_id(void) {
  size_t id = hawser_split_get_global_id(0) - hawser_split_get_global_offset(0);
  const uint dims = hawser_split_get_work_dim();
  if (dims > 1) {
    size_t row = hawser_split_get_global_id(1) - hawser_split_get_global_offset(1);
    if (dims > 2) {
      row += (hawser_split_get_global_id(2) - hawser_split_get_global_offset(2)) * hawser_split_get_global_size(1);
    }
    id += row * hawser_split_get_global_size(0);
  }
  return id;
}
#define get_group_id hawser_split_get_group_id
#define get_num_groups hawser_split_get_num_groups
#define get_global_size hawser_split_get_global_size
#define get_global_id hawser_split_get_global_id
#define get_global_offset hawser_split_get_global_offset
#define get_work_dim hawser_split_get_work_dim
#if defined(__OPENCL_C_VERSION__) && __OPENCL_C_VERSION__ >= 200
#define get_global_linear_id hawser_split_get_global_linear_id
#endif
#endif
#line 1
)";

}  // namespace

std::string_view CarryPrelude() { return kPrelude; }

std::string WithCarryPrelude(std::string_view source) {
  std::string text;
  text.reserve(kPrelude.size() + source.size());
  text.append(kPrelude).append(source);
  return text;
}

}  // namespace hawser::server::slicing
