// SPDX-License-Identifier: Apache-2.0
// clEnqueueReadBuffer, clEnqueueWriteBuffer and their rectangles.
#include "interposer/opencl/transfers.h"

#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// Nothing to move: the command only takes its place in the queue.
cl_int SubmitEmpty(Enqueue& enqueue, bool blocking) {
  cl_int error = CL_SUCCESS;
  if (ReadyInPlace(enqueue, blocking, &error)) return error == CL_SUCCESS ? enqueue.CompleteLocally() : error;
  if (blocking) enqueue.ForceEvent();
  error = SubmitMarker(enqueue);
  return error == CL_SUCCESS && blocking ? AwaitMade(enqueue) : error;
}

/// One rectangle's two sides.
struct Rect {
  Region buffer, host;
  size_t buffer_start = 0, host_start = 0;  // Offsets of the first byte.
};

cl_int ResolveRect(cl_mem mem, const size_t* buffer_origin, const size_t* host_origin, const size_t* region,
                   size_t* buffer_row, size_t* buffer_slice, size_t host_row, size_t host_slice, Rect* rect) {
  if (buffer_origin == nullptr || host_origin == nullptr || region == nullptr) return CL_INVALID_VALUE;
  if (!ResolvePitches(region, buffer_row, buffer_slice) || !ResolvePitches(region, &host_row, &host_slice) ||
      !RectFits(mem->size, buffer_origin, region, *buffer_row, *buffer_slice)) {
    return CL_INVALID_VALUE;
  }
  rect->buffer = {region[0], region[1], region[2], *buffer_row, *buffer_slice};
  rect->host = {region[0], region[1], region[2], host_row, host_slice};
  rect->buffer_start = buffer_origin[2] * *buffer_slice + buffer_origin[1] * *buffer_row + buffer_origin[0];
  rect->host_start = host_origin[2] * host_slice + host_origin[1] * host_row + host_origin[0];
  return CL_SUCCESS;
}

template <typename Message>
void FillRect(Message& message, const size_t* origin, const size_t* region, size_t row_pitch, size_t slice_pitch) {
  for (size_t i = 0; i < 3; ++i) {
    message.origin[i] = origin[i];
    message.region[i] = region[i];
  }
  message.row_pitch = row_pitch;
  message.slice_pitch = slice_pitch;
}

}  // namespace

cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                       size_t size, void* ptr, cl_uint num_events, const cl_event* wait_list,
                                       cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_READ_BUFFER, num_events, wait_list, event);
  opencl::ReadBuffer message;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(buffer, &message.buffer);
  if (error == CL_SUCCESS) error = CheckBuffer(queue, buffer);
  if (error == CL_SUCCESS) error = CheckHostRead(buffer);
  if (error != CL_SUCCESS) return error;
  if (ptr == nullptr || !InBounds(buffer, offset, size)) return CL_INVALID_VALUE;
  if (size == 0) return SubmitEmpty(enqueue, blocking != CL_FALSE);
  if (const std::byte* heap = HeapPointer(buffer); heap != nullptr && ReadyInPlace(enqueue, blocking, &error)) {
    if (error != CL_SUCCESS) return error;
    std::memcpy(ptr, heap + offset, size);
    return enqueue.CompleteLocally();
  }
  message.offset = offset;
  message.size = size;
  return SubmitRead(enqueue, opencl::Opcode::kEnqueueReadBuffer, message, ptr, Region::Flat(size), blocking);
}

cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                        size_t size, const void* ptr, cl_uint num_events, const cl_event* wait_list,
                                        cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_WRITE_BUFFER, num_events, wait_list, event);
  opencl::WriteBuffer message;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(buffer, &message.buffer);
  if (error == CL_SUCCESS) error = CheckBuffer(queue, buffer);
  if (error == CL_SUCCESS) error = CheckHostWrite(buffer);
  if (error != CL_SUCCESS) return error;
  if (ptr == nullptr || !InBounds(buffer, offset, size)) return CL_INVALID_VALUE;
  if (size == 0) return SubmitEmpty(enqueue, blocking != CL_FALSE);
  if (blocking && enqueue.waits_for_failed()) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  // A small write behind other commands is better sent than waited for; a large one is better copied once.
  const bool wait = blocking && size > queue->session->inline_limit();
  if (std::byte* heap = HeapPointer(buffer); heap != nullptr && ReadyInPlace(enqueue, wait, &error)) {
    if (error != CL_SUCCESS) return error;
    std::memcpy(heap + offset, ptr, size);
    return enqueue.CompleteLocally();
  }
  message.offset = offset;
  message.size = size;
  return SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteBuffer, message, ptr, Region::Flat(size),
                     blocking != CL_FALSE);
}

cl_int CL_API_CALL clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                           const size_t* buffer_origin, const size_t* host_origin, const size_t* region,
                                           size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
                                           size_t host_slice_pitch, void* ptr, cl_uint num_events,
                                           const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_READ_BUFFER_RECT, num_events, wait_list, event);
  opencl::ReadBufferRect message;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(buffer, &message.buffer);
  if (error == CL_SUCCESS) error = CheckBuffer(queue, buffer);
  if (error == CL_SUCCESS) error = CheckHostRead(buffer);
  if (error != CL_SUCCESS) return error;
  Rect rect;
  if (ptr == nullptr) return CL_INVALID_VALUE;
  error = ResolveRect(buffer, buffer_origin, host_origin, region, &buffer_row_pitch, &buffer_slice_pitch,
                      host_row_pitch, host_slice_pitch, &rect);
  if (error != CL_SUCCESS) return error;
  std::byte* target = static_cast<std::byte*>(ptr) + rect.host_start;
  if (const std::byte* heap = HeapPointer(buffer); heap != nullptr && ReadyInPlace(enqueue, blocking, &error)) {
    if (error != CL_SUCCESS) return error;
    CopyRegion(target, rect.host, heap + rect.buffer_start, rect.buffer);
    return enqueue.CompleteLocally();
  }
  FillRect(message, buffer_origin, region, buffer_row_pitch, buffer_slice_pitch);
  return SubmitRead(enqueue, opencl::Opcode::kEnqueueReadBufferRect, message, target, rect.host, blocking);
}

cl_int CL_API_CALL clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                            const size_t* buffer_origin, const size_t* host_origin,
                                            const size_t* region, size_t buffer_row_pitch, size_t buffer_slice_pitch,
                                            size_t host_row_pitch, size_t host_slice_pitch, const void* ptr,
                                            cl_uint num_events, const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_WRITE_BUFFER_RECT, num_events, wait_list, event);
  opencl::WriteBufferRect message;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(buffer, &message.buffer);
  if (error == CL_SUCCESS) error = CheckBuffer(queue, buffer);
  if (error == CL_SUCCESS) error = CheckHostWrite(buffer);
  if (error != CL_SUCCESS) return error;
  Rect rect;
  if (ptr == nullptr) return CL_INVALID_VALUE;
  error = ResolveRect(buffer, buffer_origin, host_origin, region, &buffer_row_pitch, &buffer_slice_pitch,
                      host_row_pitch, host_slice_pitch, &rect);
  if (error != CL_SUCCESS) return error;
  if (blocking && enqueue.waits_for_failed()) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  const std::byte* source = static_cast<const std::byte*>(ptr) + rect.host_start;
  const bool wait = blocking && rect.host.bytes() > queue->session->inline_limit();
  if (std::byte* heap = HeapPointer(buffer); heap != nullptr && ReadyInPlace(enqueue, wait, &error)) {
    if (error != CL_SUCCESS) return error;
    CopyRegion(heap + rect.buffer_start, rect.buffer, source, rect.host);
    return enqueue.CompleteLocally();
  }
  FillRect(message, buffer_origin, region, buffer_row_pitch, buffer_slice_pitch);
  return SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteBufferRect, message, source, rect.host,
                     blocking != CL_FALSE);
}

}  // namespace hawser::ocl
