// SPDX-License-Identifier: Apache-2.0
// Buffers and sub-buffers. In a context whose devices work on the shared heap a buffer is a piece of it; else it is
// the device's, and initial contents travel in the message or on the bulk channel.
#include "interposer/opencl/entry.h"
#include "interposer/opencl/mem.h"
#include "interposer/opencl/mem_flags.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// Room in the heap; what was released but is not free yet may be by now.
uint64_t HeapRoom(cl_context context, size_t size) {
  if (!context->shared_memory) return guest::Session::kNoHeap;
  guest::Session* session = context->session;
  const uint64_t room = session->HeapAllocate(size);
  if (room != guest::Session::kNoHeap) return room;
  session->Flush();
  session->Poll();
  return session->HeapAllocate(size);
}

/// The buffer lies over a piece of shared virtual memory, which kernels see under both names.
bool IsSvm(cl_mem mem) { return mem->host_ptr != nullptr && IsSvmRange(mem->context, mem->host_ptr, mem->size); }

cl_int SendCreate(cl_mem mem, const void* contents) {
  guest::Session* session = mem->session;
  opencl::CreateBuffer message;
  message.buffer = mem->id;
  message.context = mem->context->id;
  message.flags = mem->flags;
  message.size = mem->size;
  message.heap_offset = mem->heap_offset;
  if (IsSvm(mem)) {
    // The device's bytes are the truth: the host may have touched its copy only while it was mapped.
    message.svm_address = reinterpret_cast<uintptr_t>(mem->host_ptr);
    return session->Send(message);
  }
  if (mem->owns_heap) {
    if (contents != nullptr) std::memcpy(session->heap_base() + mem->heap_offset, contents, mem->size);
    return session->Send(message);
  }
  if (contents == nullptr) return session->Send(message);
  if (mem->size <= session->inline_limit()) {
    message.data = wire::AsBytes(contents, mem->size);
    return session->Send(message);
  }
  message.transfer = session->NewTransfer();
  const cl_int error = session->Send(message);
  return error == CL_SUCCESS ? session->SendBulk(message.transfer, wire::AsBytes(contents, mem->size)) : error;
}

cl_int CheckCreate(cl_context context, cl_mem_flags flags, size_t size, const void* host_ptr) {
  cl_int error = CheckHandle(context);
  if (error != CL_SUCCESS) return error;
  if (size == 0) return CL_INVALID_BUFFER_SIZE;
  error = CheckMemFlags(flags);
  if (error == CL_SUCCESS) error = CheckHostPtr(flags, host_ptr);
  if (error != CL_SUCCESS) return error;
  return size > MaxAllocation(context) ? CL_INVALID_BUFFER_SIZE : CL_SUCCESS;
}

}  // namespace

cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host_ptr,
                                  cl_int* errcode_ret) {
  return ocl::clCreateBufferWithProperties(context, nullptr, flags, size, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties,
                                                cl_mem_flags flags, size_t size, void* host_ptr, cl_int* errcode_ret) {
  cl_int error = CheckCreate(context, flags, size, host_ptr);
  if (error == CL_SUCCESS) error = CheckMemProperties(properties);
  if (error != CL_SUCCESS) return ReturnMem(nullptr, error, errcode_ret);
  cl_mem mem = NewMem(context, CL_MEM_OBJECT_BUFFER, flags == 0 ? CL_MEM_READ_WRITE : flags);
  KeepMemProperties(mem, properties);
  mem->size = size;
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) mem->host_ptr = host_ptr;
  if (!IsSvm(mem)) mem->heap_offset = HeapRoom(context, size);
  mem->owns_heap = mem->heap_offset != guest::Session::kNoHeap;
  return ReturnMem(mem, SendCreate(mem, host_ptr), errcode_ret);
}

cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* info,
                                     cl_int* errcode_ret) {
  cl_int error = CheckHandle(buffer);
  if (error == CL_SUCCESS && (buffer->type != CL_MEM_OBJECT_BUFFER || buffer->parent != nullptr)) {
    error = CL_INVALID_MEM_OBJECT;
  }
  if (error == CL_SUCCESS && (info == nullptr || type != CL_BUFFER_CREATE_TYPE_REGION)) error = CL_INVALID_VALUE;
  if (error != CL_SUCCESS) return ReturnMem(nullptr, error, errcode_ret);
  const auto& region = *static_cast<const cl_buffer_region*>(info);
  cl_mem_flags inherited = 0;
  if (region.size == 0) {
    error = CL_INVALID_BUFFER_SIZE;
  } else if (region.origin > buffer->size || region.size > buffer->size - region.origin) {
    error = CL_INVALID_VALUE;
  } else {
    error = InheritFlags(buffer->flags, flags, &inherited);
  }
  if (error == CL_SUCCESS) {
    bool aligned = false;
    for (cl_device_id device : buffer->context->devices) {
      const size_t alignment = device->base_align_bits / 8;
      aligned = aligned || alignment <= 1 || region.origin % alignment == 0;
    }
    if (!aligned) error = CL_MISALIGNED_SUB_BUFFER_OFFSET;
  }
  if (error != CL_SUCCESS) return ReturnMem(nullptr, error, errcode_ret);
  cl_mem mem = NewMem(buffer->context, CL_MEM_OBJECT_BUFFER, inherited);
  mem->parent = Use(buffer);
  mem->origin = region.origin;
  mem->size = region.size;
  if (buffer->host_ptr != nullptr) mem->host_ptr = static_cast<std::byte*>(buffer->host_ptr) + region.origin;
  if (buffer->heap_offset != guest::Session::kNoHeap) mem->heap_offset = buffer->heap_offset + region.origin;
  opencl::CreateSubBuffer message;
  message.buffer = mem->id;
  message.parent = buffer->id;
  message.flags = flags;
  message.origin = region.origin;
  message.size = region.size;
  return ReturnMem(mem, buffer->session->Send(message), errcode_ret);
}

}  // namespace hawser::ocl
