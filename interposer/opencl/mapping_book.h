// SPDX-License-Identifier: Apache-2.0
// The mappings of one memory object. The caller holds the object's mutex.
#ifndef HAWSER_INTERPOSER_OPENCL_MAPPING_BOOK_H_
#define HAWSER_INTERPOSER_OPENCL_MAPPING_BOOK_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// CL_SUCCESS or CL_INVALID_VALUE: unknown flags, or invalidation together with another.
cl_int CheckMapFlags(cl_map_flags flags);
/// CL_INVALID_OPERATION when the object's host access flags forbid it.
cl_int CheckMapAccess(cl_mem_flags mem, cl_map_flags map);

inline bool MapsForWriting(cl_map_flags flags) {
  return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0;
}
/// Whether the application may look at what was there before (CL_MAP_WRITE alone keeps what is not overwritten).
inline bool MapsContents(cl_map_flags flags) { return (flags & CL_MAP_WRITE_INVALIDATE_REGION) == 0; }

/// Takes out a mapping at this pointer: of several the one that was made first. False: there is none.
bool TakeMapping(std::vector<_cl_mem::Mapping>& mappings, const void* pointer, _cl_mem::Mapping* mapping);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_MAPPING_BOOK_H_
