// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/launch_shape.h"

namespace hawser::ocl {
namespace {

cl_int CheckLocal(const LaunchLimits& limits, cl_uint work_dim, const size_t* global, const size_t* local) {
  size_t group = 1;
  bool too_large = false;
  for (cl_uint i = 0; i < work_dim; ++i) {
    if (local[i] == 0) return CL_INVALID_WORK_GROUP_SIZE;
    too_large = too_large || __builtin_mul_overflow(group, local[i], &group);
  }
  if (too_large || group > limits.group) return CL_INVALID_WORK_GROUP_SIZE;
  for (cl_uint i = 0; i < work_dim; ++i) {
    if (local[i] > limits.items[i]) return CL_INVALID_WORK_ITEM_SIZE;
  }
  for (cl_uint i = 0; i < work_dim && !limits.non_uniform; ++i) {
    if (global[i] % local[i] != 0) return CL_INVALID_WORK_GROUP_SIZE;
  }
  return CL_SUCCESS;
}

}  // namespace

cl_int CheckShape(const LaunchLimits& limits, cl_uint work_dim, const size_t* offset, const size_t* global,
                  const size_t* local, bool* empty) {
  *empty = false;
  if (work_dim < 1 || work_dim > 3 || work_dim > limits.dimensions) return CL_INVALID_WORK_DIMENSION;
  bool zero = global == nullptr;
  for (cl_uint i = 0; i < work_dim && !zero; ++i) zero = global[i] == 0;
  if (zero) {
    *empty = limits.empty_allowed;
    return limits.empty_allowed ? CL_SUCCESS : CL_INVALID_GLOBAL_WORK_SIZE;
  }
  if (offset != nullptr) {
    for (cl_uint i = 0; i < work_dim; ++i) {
      size_t end = 0;
      if (__builtin_add_overflow(offset[i], global[i], &end)) return CL_INVALID_GLOBAL_OFFSET;
    }
  }
  if (local != nullptr) {
    const cl_int error = CheckLocal(limits, work_dim, global, local);
    if (error != CL_SUCCESS) return error;
  }
  if (limits.required[0] != 0) {
    if (local == nullptr) return limits.local_required ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
    for (cl_uint i = 0; i < 3; ++i) {
      if ((i < work_dim ? local[i] : 1) != limits.required[i]) return CL_INVALID_WORK_GROUP_SIZE;
    }
  }
  return CL_SUCCESS;
}

}  // namespace hawser::ocl
