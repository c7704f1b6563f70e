// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/mem_flags.h"

namespace hawser::ocl {
namespace {

bool AtMostOne(cl_mem_flags flags) { return (flags & (flags - 1)) == 0; }

}  // namespace

cl_int CheckMemFlags(cl_mem_flags flags) {
  if ((flags & ~(kDeviceAccess | kHostAccess | kHostPointer)) != 0) return CL_INVALID_VALUE;
  if (!AtMostOne(flags & kDeviceAccess) || !AtMostOne(flags & kHostAccess)) return CL_INVALID_VALUE;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0 && (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0) {
    return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

cl_int CheckHostPtr(cl_mem_flags flags, const void* host_ptr) {
  const bool wanted = (flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0;
  return wanted == (host_ptr != nullptr) ? CL_SUCCESS : CL_INVALID_HOST_PTR;
}

cl_int InheritFlags(cl_mem_flags parent, cl_mem_flags flags, cl_mem_flags* result) {
  if ((flags & ~(kDeviceAccess | kHostAccess)) != 0) return CL_INVALID_VALUE;
  if (!AtMostOne(flags & kDeviceAccess) || !AtMostOne(flags & kHostAccess)) return CL_INVALID_VALUE;
  const auto refuses = [&](cl_mem_flags has, cl_mem_flags asked) {
    return (parent & has) != 0 && (flags & asked) != 0;
  };
  if (refuses(CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY) ||
      refuses(CL_MEM_READ_ONLY, CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY) ||
      refuses(CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY) ||
      refuses(CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY) ||
      refuses(CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY)) {
    return CL_INVALID_VALUE;
  }
  if ((flags & kDeviceAccess) == 0) flags |= parent & kDeviceAccess;
  if ((flags & kHostAccess) == 0) flags |= parent & kHostAccess;
  *result = flags | (parent & kHostPointer);
  return CL_SUCCESS;
}

}  // namespace hawser::ocl
