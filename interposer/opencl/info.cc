// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

cl_int ReturnInfo(const void* value, size_t value_size, size_t size, void* out, size_t* size_ret) {
  if (out != nullptr) {
    if (size < value_size) return CL_INVALID_VALUE;
    if (value_size != 0) std::memcpy(out, value, value_size);
  }
  if (size_ret != nullptr) *size_ret = value_size;
  return CL_SUCCESS;
}

cl_int ReturnString(const std::string& value, size_t size, void* out, size_t* size_ret) {
  return ReturnInfo(value.c_str(), value.size() + 1, size, out, size_ret);
}

}  // namespace hawser::ocl
