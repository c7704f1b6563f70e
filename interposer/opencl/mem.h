// SPDX-License-Identifier: Apache-2.0
// How memory objects come to be, shared by buffers, images and pipes.
#ifndef HAWSER_INTERPOSER_OPENCL_MEM_H_
#define HAWSER_INTERPOSER_OPENCL_MEM_H_

#include "interposer/opencl/objects.h"

namespace hawser::ocl {

/// A new object of the context, registered, unknown to the server.
cl_mem NewMem(cl_context context, cl_mem_object_type type, cl_mem_flags flags);
/// Ends an object that the server was never told of.
void DiscardMem(cl_mem mem);
/// Sets `errcode_ret` and returns `mem`; with an error, discards it and returns null.
cl_mem ReturnMem(cl_mem mem, cl_int error, cl_int* errcode_ret);

/// No properties of memory objects are supported: CL_INVALID_PROPERTY for any.
cl_int CheckMemProperties(const cl_mem_properties* properties);
void KeepMemProperties(cl_mem mem, const cl_mem_properties* properties);

/// Memory of the guest behind the object's mappings, made when first needed; null when there is none to be had.
/// The same address each time, so that overlapping mappings see each other.
std::byte* Shadow(cl_mem mem);

/// The largest CL_DEVICE_MAX_MEM_ALLOC_SIZE of the context.
cl_ulong MaxAllocation(cl_context context);
/// Whether `pointer` lies in one of the context's SVM ranges.
bool IsSvmPointer(cl_context context, const void* pointer);
/// Whether all of [pointer, pointer + size) does.
bool IsSvmRange(cl_context context, const void* pointer, size_t size);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_MEM_H_
