// SPDX-License-Identifier: Apache-2.0
// What the generated entry points of copies, fills and migrations check beyond handles, wait list and null pointers.
#include "interposer/opencl/image_shape.h"
#include "interposer/opencl/mem.h"
#include "interposer/opencl/transfers.h"

namespace hawser::ocl {
namespace {

bool IsPowerOfTwo(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

cl_int CheckImage(Enqueue& enqueue, cl_mem image) {
  if (image->element_size == 0) return CL_INVALID_MEM_OBJECT;
  return enqueue.queue()->device->images ? CL_SUCCESS : CL_INVALID_OPERATION;
}

/// Where a buffer's byte 0 lies in its root: for comparing sub-buffers.
cl_mem Root(cl_mem mem, size_t* origin) {
  if (mem->parent != nullptr && mem->type == CL_MEM_OBJECT_BUFFER) {
    *origin = mem->origin;
    return mem->parent;
  }
  *origin = 0;
  return mem;
}

struct Sizes {
  size_t value[3];
  explicit Sizes(const std::array<uint64_t, 3>& from) : value{from[0], from[1], from[2]} {}
};

}  // namespace

cl_int Check(Enqueue& enqueue, const opencl::EnqueueFillBuffer& message) {
  const cl_int error = CheckBuffer(enqueue.queue(), enqueue.mem(0));
  if (error != CL_SUCCESS) return error;
  const size_t pattern = message.pattern.size();
  if (!IsPowerOfTwo(pattern) || pattern > 128) return CL_INVALID_VALUE;
  if (!InBounds(enqueue.mem(0), message.offset, message.size)) return CL_INVALID_VALUE;
  return message.offset % pattern != 0 || message.size % pattern != 0 ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyBuffer& message) {
  cl_mem source = enqueue.mem(0);
  cl_mem destination = enqueue.mem(1);
  cl_int error = CheckBuffer(enqueue.queue(), source);
  if (error == CL_SUCCESS) error = CheckBuffer(enqueue.queue(), destination);
  if (error != CL_SUCCESS) return error;
  if (message.size == 0 || !InBounds(source, message.source_offset, message.size) ||
      !InBounds(destination, message.destination_offset, message.size)) {
    return CL_INVALID_VALUE;
  }
  size_t source_origin = 0;
  size_t destination_origin = 0;
  if (Root(source, &source_origin) != Root(destination, &destination_origin)) return CL_SUCCESS;
  const size_t from = source_origin + message.source_offset;
  const size_t to = destination_origin + message.destination_offset;
  return from < to + message.size && to < from + message.size ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}

cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyBufferRect& message) {
  cl_mem source = enqueue.mem(0);
  cl_mem destination = enqueue.mem(1);
  cl_int error = CheckBuffer(enqueue.queue(), source);
  if (error == CL_SUCCESS) error = CheckBuffer(enqueue.queue(), destination);
  if (error != CL_SUCCESS) return error;
  const Sizes from(message.source_origin);
  const Sizes to(message.destination_origin);
  const Sizes region(message.region);
  size_t from_row = message.source_row_pitch;
  size_t from_slice = message.source_slice_pitch;
  size_t to_row = message.destination_row_pitch;
  size_t to_slice = message.destination_slice_pitch;
  if (!ResolvePitches(region.value, &from_row, &from_slice) || !ResolvePitches(region.value, &to_row, &to_slice) ||
      !RectFits(source->size, from.value, region.value, from_row, from_slice) ||
      !RectFits(destination->size, to.value, region.value, to_row, to_slice)) {
    return CL_INVALID_VALUE;
  }
  if (source != destination) return CL_SUCCESS;
  if (from_row != to_row || from_slice != to_slice) return CL_INVALID_VALUE;
  return RectsOverlap(from.value, to.value, region.value, from_row, from_slice) ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}

cl_int Check(Enqueue& enqueue, const opencl::EnqueueFillImage& message) {
  cl_mem image = enqueue.mem(0);
  const cl_int error = CheckImage(enqueue, image);
  if (error != CL_SUCCESS) return error;
  return CheckImagePart(image->desc, Sizes(message.origin).value, Sizes(message.region).value);
}

cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyImage& message) {
  cl_mem source = enqueue.mem(0);
  cl_mem destination = enqueue.mem(1);
  cl_int error = CheckImage(enqueue, source);
  if (error == CL_SUCCESS) error = CheckImage(enqueue, destination);
  if (error != CL_SUCCESS) return error;
  if (source->format.image_channel_order != destination->format.image_channel_order ||
      source->format.image_channel_data_type != destination->format.image_channel_data_type) {
    return CL_IMAGE_FORMAT_MISMATCH;
  }
  const Sizes from(message.source_origin);
  const Sizes to(message.destination_origin);
  const Sizes region(message.region);
  error = CheckImagePart(source->desc, from.value, region.value);
  if (error == CL_SUCCESS) error = CheckImagePart(destination->desc, to.value, region.value);
  if (error != CL_SUCCESS || source != destination) return error;
  for (int i = 0; i < 3; ++i) {
    if (from.value[i] >= to.value[i] + region.value[i] || to.value[i] >= from.value[i] + region.value[i]) {
      return CL_SUCCESS;
    }
  }
  return CL_MEM_COPY_OVERLAP;
}

cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyImageToBuffer& message) {
  cl_mem image = enqueue.mem(0);
  cl_mem buffer = enqueue.mem(1);
  cl_int error = CheckImage(enqueue, image);
  if (error == CL_SUCCESS) error = CheckBuffer(enqueue.queue(), buffer);
  const Sizes region(message.region);
  if (error == CL_SUCCESS) error = CheckImagePart(image->desc, Sizes(message.origin).value, region.value);
  if (error != CL_SUCCESS) return error;
  const size_t bytes = region.value[0] * region.value[1] * region.value[2] * image->element_size;
  return InBounds(buffer, message.destination_offset, bytes) ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int Check(Enqueue& enqueue, const opencl::EnqueueCopyBufferToImage& message) {
  cl_mem buffer = enqueue.mem(0);
  cl_mem image = enqueue.mem(1);
  cl_int error = CheckBuffer(enqueue.queue(), buffer);
  if (error == CL_SUCCESS) error = CheckImage(enqueue, image);
  const Sizes region(message.region);
  if (error == CL_SUCCESS) error = CheckImagePart(image->desc, Sizes(message.origin).value, region.value);
  if (error != CL_SUCCESS) return error;
  const size_t bytes = region.value[0] * region.value[1] * region.value[2] * image->element_size;
  return InBounds(buffer, message.source_offset, bytes) ? CL_SUCCESS : CL_INVALID_VALUE;
}

cl_int Check(Enqueue&, const opencl::EnqueueMigrateMemObjects& message) {
  constexpr cl_mem_migration_flags kKnown = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  return (message.flags & ~kKnown) != 0 ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_int Check(Enqueue&, const opencl::EnqueueMarkerWithWaitList&) { return CL_SUCCESS; }
cl_int Check(Enqueue&, const opencl::EnqueueBarrierWithWaitList&) { return CL_SUCCESS; }

cl_int Check(Enqueue& enqueue, const opencl::EnqueueSVMMemFill& message) {
  const size_t pattern = message.pattern.size();
  if (!IsPowerOfTwo(pattern) || pattern > 128 || message.address == 0 || message.address % pattern != 0 ||
      message.size == 0 || message.size % pattern != 0) {
    return CL_INVALID_VALUE;
  }
  // Fine-grained system memory is not offered: the range must be one that clSVMAlloc gave.
  return IsSvmRange(enqueue.queue()->context, reinterpret_cast<void*>(message.address), message.size)
             ? CL_SUCCESS
             : CL_INVALID_VALUE;
}

}  // namespace hawser::ocl
