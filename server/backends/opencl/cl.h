// SPDX-License-Identifier: Apache-2.0
// The OpenCL headers, with the old entry points that platforms before 2.0 need.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_CL_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_CL_H_

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#ifndef CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_CL_H_
