// SPDX-License-Identifier: Apache-2.0
// clEnqueueReadImage and clEnqueueWriteImage.
#include "interposer/opencl/image_shape.h"
#include "interposer/opencl/transfers.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

template <typename Message>
cl_int FillPart(Enqueue& enqueue, cl_mem image, const size_t* origin, const size_t* region, size_t row_pitch,
                size_t slice_pitch, const void* ptr, Message* message, Region* host) {
  cl_int error = enqueue.Begin();
  if (error == CL_SUCCESS) error = enqueue.UseMem(image, &message->image);
  if (error != CL_SUCCESS) return error;
  if (image->element_size == 0) return CL_INVALID_MEM_OBJECT;
  if (!enqueue.queue()->device->images) return CL_INVALID_OPERATION;
  if (ptr == nullptr) return CL_INVALID_VALUE;
  error = CheckImagePart(image->desc, origin, region);
  if (error != CL_SUCCESS) return error;
  if (!HostRegion(image->desc, image->element_size, region, row_pitch, slice_pitch, host)) return CL_INVALID_VALUE;
  for (size_t i = 0; i < 3; ++i) {
    message->origin[i] = origin[i];
    message->region[i] = region[i];
  }
  message->size = host->bytes();
  return CL_SUCCESS;
}

}  // namespace

cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t* origin,
                                      const size_t* region, size_t row_pitch, size_t slice_pitch, void* ptr,
                                      cl_uint num_events, const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_READ_IMAGE, num_events, wait_list, event);
  opencl::ReadImage message;
  Region host;
  cl_int error = FillPart(enqueue, image, origin, region, row_pitch, slice_pitch, ptr, &message, &host);
  if (error == CL_SUCCESS) error = CheckHostRead(image);
  if (error != CL_SUCCESS) return error;
  return SubmitRead(enqueue, opencl::Opcode::kEnqueueReadImage, message, ptr, host, blocking);
}

cl_int CL_API_CALL clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t* origin,
                                       const size_t* region, size_t row_pitch, size_t slice_pitch, const void* ptr,
                                       cl_uint num_events, const cl_event* wait_list, cl_event* event) {
  Enqueue enqueue(queue, CL_COMMAND_WRITE_IMAGE, num_events, wait_list, event);
  opencl::WriteImage message;
  Region host;
  cl_int error = FillPart(enqueue, image, origin, region, row_pitch, slice_pitch, ptr, &message, &host);
  if (error == CL_SUCCESS) error = CheckHostWrite(image);
  if (error != CL_SUCCESS) return error;
  if (blocking && enqueue.waits_for_failed()) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  return SubmitWrite(enqueue, opencl::Opcode::kEnqueueWriteImage, message, ptr, host, blocking != CL_FALSE);
}

}  // namespace hawser::ocl
