// SPDX-License-Identifier: Apache-2.0
// What the specification demands of the sizes of a launch.
#ifndef HAWSER_INTERPOSER_OPENCL_LAUNCH_SHAPE_H_
#define HAWSER_INTERPOSER_OPENCL_LAUNCH_SHAPE_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// What device and kernel allow.
struct LaunchLimits {
  cl_uint dimensions = 3;
  size_t group = 1;  ///< Work-items in a group.
  size_t items[3] = {1, 1, 1};
  size_t required[3] = {0, 0, 0};  ///< reqd_work_group_size; 0: none.
  bool non_uniform = false;        ///< The local size need not divide the global size.
  bool local_required = true;      ///< A kernel with a required size must be given it (before OpenCL 2.1).
  bool empty_allowed = false;      ///< No or a zero global size: success without work (since OpenCL 2.1).
};

/// CL_SUCCESS or the specification's error. `empty`: there is nothing to run.
cl_int CheckShape(const LaunchLimits& limits, cl_uint work_dim, const size_t* offset, const size_t* global,
                  const size_t* local, bool* empty);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_LAUNCH_SHAPE_H_
