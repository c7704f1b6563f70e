// SPDX-License-Identifier: Apache-2.0
// Questions that the guest cannot answer from what it knows: asked one by one, with a round trip each.
#ifndef HAWSER_INTERPOSER_OPENCL_QUERY_H_
#define HAWSER_INTERPOSER_OPENCL_QUERY_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// opencl::Query::kind
enum class QueryKind : uint32_t {
  kProgram = 1,
  kProgramBuild = 2,
  kKernel = 3,
  kKernelWorkGroup = 4,
  kKernelSubGroup = 5,
};

/// Raw answer in `value`. `device` may be null where the query has none.
cl_int QueryServer(QueryKind kind, const Object& object, cl_device_id device, cl_uint param, wire::Bytes input,
                   std::vector<std::byte>* value);

/// The same as the answer of a clGet*Info call.
cl_int ReturnQuery(QueryKind kind, const Object& object, cl_device_id device, cl_uint param, wire::Bytes input,
                   size_t size, void* out, size_t* size_ret);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_QUERY_H_
