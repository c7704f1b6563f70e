// SPDX-License-Identifier: Apache-2.0
// What the specification demands of the flags of memory objects.
#ifndef HAWSER_INTERPOSER_OPENCL_MEM_FLAGS_H_
#define HAWSER_INTERPOSER_OPENCL_MEM_FLAGS_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

inline constexpr cl_mem_flags kDeviceAccess = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
inline constexpr cl_mem_flags kHostAccess = CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
inline constexpr cl_mem_flags kHostPointer = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR;

/// CL_SUCCESS, or CL_INVALID_VALUE for unknown or contradicting flags.
cl_int CheckMemFlags(cl_mem_flags flags);
/// CL_SUCCESS, or CL_INVALID_HOST_PTR when pointer and flags disagree.
cl_int CheckHostPtr(cl_mem_flags flags, const void* host_ptr);
/// Flags of a part of `parent` that was asked for with `flags`; CL_INVALID_VALUE if it asks for more than the parent
/// allows.
cl_int InheritFlags(cl_mem_flags parent, cl_mem_flags flags, cl_mem_flags* result);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_MEM_FLAGS_H_
