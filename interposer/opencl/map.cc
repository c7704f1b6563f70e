// SPDX-License-Identifier: Apache-2.0
// clEnqueueMapBuffer, clEnqueueMapImage, clEnqueueUnmapMemObject.
//
// Where a mapping points: into the heap, where the device works on the same bytes, so that nothing is copied; else to
// the application's own memory (CL_MEM_USE_HOST_PTR) or to the object's shadow, filled when mapped and written back
// when unmapped.
#include "interposer/opencl/image_shape.h"
#include "interposer/opencl/mapping_book.h"
#include "interposer/opencl/mem.h"
#include "interposer/opencl/transfers.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

/// A command without data in its place among the queue's commands. A marker waits for everything before it, which an
/// out-of-order queue does not promise and a program may not expect: there a read of one byte takes its place.
cl_int SubmitPlace(Enqueue& enqueue, cl_mem mem) {
  if (!enqueue.queue()->out_of_order()) return SubmitMarker(enqueue);
  if (mem->type == CL_MEM_OBJECT_BUFFER) {
    opencl::ReadBuffer message;
    message.buffer = mem->id;
    message.size = 1;
    return SubmitRead(enqueue, opencl::Opcode::kEnqueueReadBuffer, message, nullptr, Region::Flat(1), false);
  }
  opencl::ReadImage message;
  message.image = mem->id;
  message.region = {1, 1, 1};
  message.size = mem->element_size;
  return SubmitRead(enqueue, opencl::Opcode::kEnqueueReadImage, message, nullptr, Region::Flat(mem->element_size),
                    false);
}

cl_int SubmitPlaceAndWait(Enqueue& enqueue, cl_mem mem, bool blocking) {
  if (blocking) enqueue.ForceEvent();
  const cl_int error = SubmitPlace(enqueue, mem);
  return error == CL_SUCCESS && blocking ? AwaitMade(enqueue) : error;
}

/// Maps a buffer of the heap. `host`: the application's memory, to be filled; null when the heap itself is given out.
cl_int MapInPlace(Enqueue& enqueue, cl_mem mem, bool blocking, std::byte* host, const std::byte* heap, size_t size) {
  cl_int error = CL_SUCCESS;
  if (ReadyInPlace(enqueue, blocking, &error)) {
    if (error != CL_SUCCESS) return error;
    if (host != nullptr) std::memcpy(host, heap, size);
    return enqueue.CompleteLocally();
  }
  if (host == nullptr) {
    if (!blocking && !enqueue.wants_event() && !enqueue.waits()) return CL_SUCCESS;
    return SubmitPlaceAndWait(enqueue, mem, blocking);
  }
  CopyWhenComplete(enqueue, host, heap, size);
  return SubmitPlaceAndWait(enqueue, mem, blocking);
}

/// Keeps the mapping and one use of the object until it is unmapped.
void Keep(cl_mem mem, const _cl_mem::Mapping& mapping) {
  Use(mem);
  std::lock_guard lock(mem->mutex);
  mem->mappings.push_back(mapping);
}

void Forget(cl_mem mem, const void* pointer) {
  {
    std::lock_guard lock(mem->mutex);
    _cl_mem::Mapping mapping;
    if (!TakeMapping(mem->mappings, pointer, &mapping)) return;
  }
  DropUse(mem);
}

void* Return(void* pointer, cl_int error, cl_int* errcode_ret) {
  if (errcode_ret != nullptr) *errcode_ret = error;
  return error == CL_SUCCESS ? pointer : nullptr;
}

cl_int MapBuffer(Enqueue& enqueue, cl_mem mem, bool blocking, const _cl_mem::Mapping& mapping) {
  const std::byte* heap = HeapPointer(mem);
  const bool contents = MapsContents(mapping.flags);
  auto* target = static_cast<std::byte*>(mapping.pointer);
  const bool copies = mem->host_ptr != nullptr && contents;
  if (heap != nullptr && !(copies && enqueue.queue()->out_of_order())) {
    std::byte* host = copies ? target : nullptr;
    return MapInPlace(enqueue, mem, blocking, host, heap + mapping.offset, mapping.size);
  }
  if (!contents) {
    if (enqueue.QueueIdle() && !enqueue.queue()->profiling()) return enqueue.CompleteLocally();
    return SubmitPlaceAndWait(enqueue, mem, blocking);
  }
  opencl::ReadBuffer message;
  message.buffer = mem->id;
  message.offset = mapping.offset;
  message.size = mapping.size;
  return SubmitRead(enqueue, opencl::Opcode::kEnqueueReadBuffer, message, target, Region::Flat(mapping.size), blocking);
}

template <typename Message>
void FillPart(Message& message, cl_mem image, const _cl_mem::Mapping& mapping, const Region& region) {
  message.image = image->id;
  for (size_t i = 0; i < 3; ++i) {
    message.origin[i] = mapping.origin[i];
    message.region[i] = mapping.region[i];
  }
  message.size = region.bytes();
}

cl_int UnmapBuffer(Enqueue& enqueue, cl_mem mem, const _cl_mem::Mapping& mapping) {
  const bool writes = MapsForWriting(mapping.flags);
  std::byte* const heap = HeapPointer(mem);
  // What reads are still to bring into the mapping only this library puts there: the server has to hear when.
  const bool read_into = writes && !enqueue.EarlierReads(mapping.pointer, mapping.size).empty();
  if (heap != nullptr && !read_into) {
    if (writes && mem->host_ptr != nullptr) std::memcpy(heap + mapping.offset, mapping.pointer, mapping.size);
  } else if (writes) {
    opencl::WriteBuffer message;
    message.buffer = mem->id;
    message.offset = mapping.offset;
    message.size = mapping.size;
    return SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteBuffer, message, mapping.pointer,
                       Region::Flat(mapping.size));
  }
  // Nothing is left to do: only somebody who asks, or what comes after the wait list, needs a command.
  if (enqueue.QueueIdle() && !enqueue.queue()->profiling()) return enqueue.CompleteLocally();
  if (!enqueue.wants_event() && !enqueue.waits()) return CL_SUCCESS;
  return SubmitPlace(enqueue, mem);
}

cl_int UnmapImage(Enqueue& enqueue, cl_mem image, const _cl_mem::Mapping& mapping) {
  if (!MapsForWriting(mapping.flags)) {
    if (enqueue.QueueIdle() && !enqueue.queue()->profiling()) return enqueue.CompleteLocally();
    if (!enqueue.wants_event() && !enqueue.waits()) return CL_SUCCESS;
    return SubmitPlace(enqueue, image);
  }
  Region region;
  HostRegion(image->desc, image->element_size, mapping.region, mapping.row_pitch, mapping.slice_pitch, &region);
  opencl::WriteImage message;
  FillPart(message, image, mapping, region);
  return SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteImage, message, mapping.pointer, region);
}

}  // namespace

void* CL_API_CALL clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                                     size_t offset, size_t size, cl_uint num_events, const cl_event* wait_list,
                                     cl_event* event, cl_int* errcode_ret) {
  Enqueue enqueue(queue, CL_COMMAND_MAP_BUFFER, num_events, wait_list, event);
  wire::Id id;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(buffer, &id);
  if (error == CL_SUCCESS) error = CheckBuffer(queue, buffer);
  if (error == CL_SUCCESS && (size == 0 || !InBounds(buffer, offset, size))) error = CL_INVALID_VALUE;
  if (error == CL_SUCCESS) error = CheckMapFlags(flags);
  if (error == CL_SUCCESS) error = CheckMapAccess(buffer->flags, flags);
  if (error == CL_SUCCESS && blocking && enqueue.waits_for_failed()) {
    error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  if (error != CL_SUCCESS) return Return(nullptr, error, errcode_ret);
  auto* base = static_cast<std::byte*>(buffer->host_ptr);
  if (base == nullptr) base = HeapPointer(buffer);
  if (base == nullptr) base = Shadow(buffer);
  if (base == nullptr) return Return(nullptr, CL_MAP_FAILURE, errcode_ret);
  _cl_mem::Mapping mapping = {};
  mapping.pointer = base + offset;
  mapping.flags = flags;
  mapping.offset = offset;
  mapping.size = size;
  Keep(buffer, mapping);
  error = MapBuffer(enqueue, buffer, blocking != CL_FALSE, mapping);
  if (error != CL_SUCCESS) Forget(buffer, mapping.pointer);
  return Return(mapping.pointer, error, errcode_ret);
}

void* CL_API_CALL clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking, cl_map_flags flags,
                                    const size_t* origin, const size_t* region, size_t* row_pitch, size_t* slice_pitch,
                                    cl_uint num_events, const cl_event* wait_list, cl_event* event,
                                    cl_int* errcode_ret) {
  Enqueue enqueue(queue, CL_COMMAND_MAP_IMAGE, num_events, wait_list, event);
  wire::Id id;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(image, &id);
  if (error == CL_SUCCESS && image->element_size == 0) error = CL_INVALID_MEM_OBJECT;
  if (error == CL_SUCCESS && !queue->device->images) error = CL_INVALID_OPERATION;
  if (error == CL_SUCCESS) error = CheckMapFlags(flags);
  if (error == CL_SUCCESS) error = CheckImagePart(image->desc, origin, region);
  if (error == CL_SUCCESS && row_pitch == nullptr) error = CL_INVALID_VALUE;
  if (error == CL_SUCCESS && slice_pitch == nullptr && image->slice_pitch != 0) error = CL_INVALID_VALUE;
  if (error == CL_SUCCESS) error = CheckMapAccess(image->flags, flags);
  if (error == CL_SUCCESS && blocking && enqueue.waits_for_failed()) {
    error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  if (error != CL_SUCCESS) return Return(nullptr, error, errcode_ret);
  auto* base = static_cast<std::byte*>(image->host_ptr);
  if (base == nullptr) base = Shadow(image);
  if (base == nullptr) return Return(nullptr, CL_MAP_FAILURE, errcode_ret);
  _cl_mem::Mapping mapping = {};
  mapping.flags = flags;
  for (size_t i = 0; i < 3; ++i) {
    mapping.origin[i] = origin[i];
    mapping.region[i] = region[i];
  }
  mapping.row_pitch = image->row_pitch;
  mapping.slice_pitch = image->slice_pitch;
  mapping.pointer = base + HostOffset(image->desc, image->element_size, origin, image->row_pitch, image->slice_pitch);
  Region host;
  HostRegion(image->desc, image->element_size, region, image->row_pitch, image->slice_pitch, &host);
  Keep(image, mapping);
  if (MapsContents(flags)) {
    opencl::ReadImage message;
    FillPart(message, image, mapping, host);
    error =
        SubmitRead(enqueue, opencl::Opcode::kEnqueueReadImage, message, mapping.pointer, host, blocking != CL_FALSE);
  } else if (enqueue.QueueIdle() && !queue->profiling()) {
    error = enqueue.CompleteLocally();
  } else {
    error = SubmitPlaceAndWait(enqueue, image, blocking != CL_FALSE);
  }
  if (error != CL_SUCCESS) {
    Forget(image, mapping.pointer);
  } else {
    *row_pitch = mapping.row_pitch;
    if (slice_pitch != nullptr) *slice_pitch = mapping.slice_pitch;
  }
  return Return(mapping.pointer, error, errcode_ret);
}

cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void* pointer, cl_uint num_events,
                                           const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_UNMAP_MEM_OBJECT, num_events, wait_list, event);
  wire::Id id;
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(mem, &id);
  if (error != CL_SUCCESS) return error;
  _cl_mem::Mapping mapping;
  {
    std::lock_guard lock(mem->mutex);
    if (!TakeMapping(mem->mappings, pointer, &mapping)) return CL_INVALID_VALUE;
  }
  error = mem->element_size == 0 ? UnmapBuffer(enqueue, mem, mapping) : UnmapImage(enqueue, mem, mapping);
  DropUse(mem);  // The mapping's.
  return error;
}

}  // namespace hawser::ocl
