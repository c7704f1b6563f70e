// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/mapping_book.h"

#include <algorithm>

namespace hawser::ocl {

cl_int CheckMapFlags(cl_map_flags flags) {
  if ((flags & ~(CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0) return CL_INVALID_VALUE;
  const bool invalidates = (flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0;
  return invalidates && (flags & (CL_MAP_READ | CL_MAP_WRITE)) != 0 ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_int CheckMapAccess(cl_mem_flags mem, cl_map_flags map) {
  if ((map & CL_MAP_READ) != 0 && (mem & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0) {
    return CL_INVALID_OPERATION;
  }
  if (MapsForWriting(map) && (mem & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)) != 0) {
    return CL_INVALID_OPERATION;
  }
  return CL_SUCCESS;
}

bool TakeMapping(std::vector<_cl_mem::Mapping>& mappings, const void* pointer, _cl_mem::Mapping* mapping) {
  const auto found = std::find_if(mappings.begin(), mappings.end(),
                                  [&](const _cl_mem::Mapping& each) { return each.pointer == pointer; });
  if (found == mappings.end()) return false;
  *mapping = *found;
  mappings.erase(found);
  return true;
}

}  // namespace hawser::ocl
