// SPDX-License-Identifier: Apache-2.0
// Images: creation and queries. An image lives on the device; initial contents travel tightly packed.
#include <algorithm>

#include "interposer/opencl/entry.h"
#include "interposer/opencl/image_shape.h"
#include "interposer/opencl/mem.h"
#include "interposer/opencl/mem_flags.h"
#include "interposer/opencl/transfers.h"
#include "proto/facts/image_formats.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

size_t Limit(cl_device_id device, cl_device_info param) {
  size_t limit = 0;
  return ocl::clGetDeviceInfo(device, param, sizeof(limit), &limit, nullptr) == CL_SUCCESS ? limit : 0;
}

bool FitsDevice(cl_device_id device, const cl_image_desc& desc) {
  switch (desc.image_type) {
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      return desc.image_width <= Limit(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
    case CL_MEM_OBJECT_IMAGE1D:
      return desc.image_width <= Limit(device, CL_DEVICE_IMAGE2D_MAX_WIDTH);
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      return desc.image_width <= Limit(device, CL_DEVICE_IMAGE2D_MAX_WIDTH) &&
             desc.image_array_size <= Limit(device, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE);
    case CL_MEM_OBJECT_IMAGE2D:
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return desc.image_width <= Limit(device, CL_DEVICE_IMAGE2D_MAX_WIDTH) &&
             desc.image_height <= Limit(device, CL_DEVICE_IMAGE2D_MAX_HEIGHT) &&
             (desc.image_type == CL_MEM_OBJECT_IMAGE2D ||
              desc.image_array_size <= Limit(device, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE));
    case CL_MEM_OBJECT_IMAGE3D:
      return desc.image_width <= Limit(device, CL_DEVICE_IMAGE3D_MAX_WIDTH) &&
             desc.image_height <= Limit(device, CL_DEVICE_IMAGE3D_MAX_HEIGHT) &&
             desc.image_depth <= Limit(device, CL_DEVICE_IMAGE3D_MAX_DEPTH);
    default:
      return false;
  }
}

cl_int CheckDevices(cl_context context, const cl_image_desc& desc) {
  const auto& devices = context->devices;
  if (std::none_of(devices.begin(), devices.end(), [](cl_device_id device) { return device->images; })) {
    return CL_INVALID_OPERATION;
  }
  return std::any_of(devices.begin(), devices.end(),
                     [&](cl_device_id device) { return device->images && FitsDevice(device, desc); })
             ? CL_SUCCESS
             : CL_INVALID_IMAGE_SIZE;
}

/// Asks the server for the list the first time; kept by the context.
cl_int CheckFormat(cl_context context, cl_mem_flags flags, cl_mem_object_type type, const cl_image_format& format) {
  flags &= kDeviceAccess;
  if (flags == 0) flags = CL_MEM_READ_WRITE;
  cl_uint count = 0;
  cl_int error = ocl::clGetSupportedImageFormats(context, flags, type, 0, nullptr, &count);
  if (error != CL_SUCCESS) return error;
  std::lock_guard lock(context->mutex);
  const auto found = context->image_formats.find({flags, type});
  if (found == context->image_formats.end()) return CL_IMAGE_FORMAT_NOT_SUPPORTED;
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](const cl_image_format& supported) {
                       return supported.image_channel_order == format.image_channel_order &&
                              supported.image_channel_data_type == format.image_channel_data_type;
                     })
             ? CL_SUCCESS
             : CL_IMAGE_FORMAT_NOT_SUPPORTED;
}

/// An image over a buffer (or a view of another 2D image's memory).
cl_int CheckParent(cl_context context, const cl_image_desc& desc, cl_mem_flags flags, const void* host_ptr,
                   cl_mem_flags* inherited) {
  cl_mem parent = desc.mem_object;
  if (desc.image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
    if (parent == nullptr) return CL_INVALID_IMAGE_DESCRIPTOR;
  } else if (desc.image_type == CL_MEM_OBJECT_IMAGE2D) {
    const bool able = std::any_of(context->devices.begin(), context->devices.end(), [](cl_device_id device) {
      cl_uint alignment = 0;
      return ocl::clGetDeviceInfo(device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT, sizeof(alignment), &alignment, nullptr) ==
                 CL_SUCCESS &&
             alignment != 0;
    });
    if (!able) return CL_INVALID_OPERATION;
  } else {
    return CL_INVALID_IMAGE_DESCRIPTOR;
  }
  const cl_int error = CheckHandle(parent);
  if (error != CL_SUCCESS) return error == CL_INVALID_MEM_OBJECT ? CL_INVALID_IMAGE_DESCRIPTOR : error;
  if (parent->context != context) return CL_INVALID_CONTEXT;
  const bool from_image = desc.image_type == CL_MEM_OBJECT_IMAGE2D && parent->type == CL_MEM_OBJECT_IMAGE2D;
  if (parent->type != CL_MEM_OBJECT_BUFFER && !from_image) return CL_INVALID_IMAGE_DESCRIPTOR;
  if (host_ptr != nullptr) return CL_INVALID_HOST_PTR;
  return InheritFlags(parent->flags, flags, inherited);
}

/// Fields that the type does not use read as 0.
void Normalize(cl_image_desc& desc) {
  const cl_mem_object_type type = desc.image_type;
  if (type == CL_MEM_OBJECT_IMAGE1D || type == CL_MEM_OBJECT_IMAGE1D_BUFFER || type == CL_MEM_OBJECT_IMAGE1D_ARRAY) {
    desc.image_height = 0;
  }
  if (type != CL_MEM_OBJECT_IMAGE3D) desc.image_depth = 0;
  if (type != CL_MEM_OBJECT_IMAGE1D_ARRAY && type != CL_MEM_OBJECT_IMAGE2D_ARRAY) desc.image_array_size = 0;
}

struct Plan {
  cl_image_desc desc = {};
  cl_mem_flags flags = 0;
  size_t element_size = 0, row_pitch = 0, slice_pitch = 0, size = 0;
};

cl_int PlanImage(cl_context context, cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* desc,
                 const void* host_ptr, Plan* plan) {
  cl_int error = CheckHandle(context);
  if (error != CL_SUCCESS) return error;
  if (format == nullptr) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  if (desc == nullptr) return CL_INVALID_IMAGE_DESCRIPTOR;
  error = CheckMemFlags(flags);
  if (error != CL_SUCCESS) return error;
  Extent extent;
  if (!ExtentOf(*desc, &extent) || desc->num_mip_levels != 0 || desc->num_samples != 0) {
    return CL_INVALID_IMAGE_DESCRIPTOR;
  }
  plan->element_size = opencl::ElementSize(format->image_channel_order, format->image_channel_data_type);
  if (plan->element_size == 0) return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
  plan->desc = *desc;
  plan->flags = flags == 0 ? CL_MEM_READ_WRITE : flags;
  Normalize(plan->desc);
  const bool over_buffer = desc->mem_object != nullptr || desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
  if (over_buffer) {
    error = CheckParent(context, *desc, flags, host_ptr, &plan->flags);
  } else {
    error = CheckHostPtr(flags, host_ptr);
  }
  if (error != CL_SUCCESS) return error;
  error = CheckDevices(context, plan->desc);
  if (error != CL_SUCCESS) return error;
  error = ResolveImagePitches(plan->desc, plan->element_size, over_buffer || host_ptr != nullptr, &plan->row_pitch,
                              &plan->slice_pitch, &plan->size);
  if (error != CL_SUCCESS) return error;
  if (over_buffer && desc->mem_object->size < plan->size) return CL_INVALID_IMAGE_DESCRIPTOR;
  return CheckFormat(context, plan->flags, plan->desc.image_type, *format);
}

cl_int SendCreate(cl_mem image, const void* host_ptr) {
  guest::Session* session = image->session;
  opencl::CreateImage message;
  message.image = image->id;
  message.context = image->context->id;
  message.flags = image->flags;
  message.channel_order = image->format.image_channel_order;
  message.channel_type = image->format.image_channel_data_type;
  message.image_type = image->desc.image_type;
  message.width = image->desc.image_width;
  message.height = image->desc.image_height;
  message.depth = image->desc.image_depth;
  message.array_size = image->desc.image_array_size;
  if (image->parent != nullptr) {
    message.row_pitch = image->desc.image_row_pitch;
    message.slice_pitch = image->desc.image_slice_pitch;
    message.parent = image->parent->id;
  }
  if (host_ptr == nullptr) return session->Send(message);
  Extent extent;
  Region region;
  ExtentOf(image->desc, &extent);
  if (!HostRegion(image->desc, image->element_size, extent.size, image->row_pitch, image->slice_pitch, &region)) {
    return CL_INVALID_IMAGE_DESCRIPTOR;
  }
  const auto* bytes = static_cast<const std::byte*>(host_ptr);
  message.data_size = region.bytes();
  if (region.bytes() <= session->inline_limit()) {
    std::vector<std::byte> packed;
    message.data = GatherSmall(bytes, region, &packed);
    return session->Send(message);
  }
  message.transfer = session->NewTransfer();
  const cl_int error = session->Send(message);
  return error == CL_SUCCESS ? SendStrided(session, message.transfer, bytes, region) : error;
}

}  // namespace

cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties,
                                               cl_mem_flags flags, const cl_image_format* format,
                                               const cl_image_desc* desc, void* host_ptr, cl_int* errcode_ret) {
  Plan plan;
  cl_int error = PlanImage(context, flags, format, desc, host_ptr, &plan);
  if (error == CL_SUCCESS) error = CheckMemProperties(properties);
  if (error != CL_SUCCESS) return ReturnMem(nullptr, error, errcode_ret);
  cl_mem image = NewMem(context, plan.desc.image_type, plan.flags);
  KeepMemProperties(image, properties);
  image->format = *format;
  image->desc = plan.desc;
  image->element_size = plan.element_size;
  image->row_pitch = plan.row_pitch;
  image->slice_pitch = plan.slice_pitch;
  image->size = plan.size;
  image->parent = Use(plan.desc.mem_object);
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) image->host_ptr = host_ptr;
  return ReturnMem(image, SendCreate(image, host_ptr), errcode_ret);
}

cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                 const cl_image_desc* desc, void* host_ptr, cl_int* errcode_ret) {
  return ocl::clCreateImageWithProperties(context, nullptr, flags, format, desc, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t row_pitch, void* host_ptr, cl_int* errcode_ret) {
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = width;
  desc.image_height = height;
  desc.image_row_pitch = row_pitch;
  return ocl::clCreateImageWithProperties(context, nullptr, flags, format, &desc, host_ptr, errcode_ret);
}

cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t depth, size_t row_pitch, size_t slice_pitch, void* host_ptr,
                                   cl_int* errcode_ret) {
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE3D;
  desc.image_width = width;
  desc.image_height = height;
  desc.image_depth = depth;
  desc.image_row_pitch = row_pitch;
  desc.image_slice_pitch = slice_pitch;
  return ocl::clCreateImageWithProperties(context, nullptr, flags, format, &desc, host_ptr, errcode_ret);
}

cl_int CL_API_CALL clGetImageInfo(cl_mem image, cl_image_info param, size_t size, void* value, size_t* size_ret) {
  const cl_int error = CheckHandle(image);
  if (error != CL_SUCCESS) return error;
  if (image->element_size == 0) return CL_INVALID_MEM_OBJECT;
  const cl_image_desc& desc = image->desc;
  switch (param) {
    case CL_IMAGE_FORMAT:
      return ReturnInfo(image->format, size, value, size_ret);
    case CL_IMAGE_ELEMENT_SIZE:
      return ReturnInfo(image->element_size, size, value, size_ret);
    case CL_IMAGE_ROW_PITCH:
      return ReturnInfo(image->row_pitch, size, value, size_ret);
    case CL_IMAGE_SLICE_PITCH:
      return ReturnInfo(image->slice_pitch, size, value, size_ret);
    case CL_IMAGE_WIDTH:
      return ReturnInfo(desc.image_width, size, value, size_ret);
    case CL_IMAGE_HEIGHT:
      return ReturnInfo(desc.image_height, size, value, size_ret);
    case CL_IMAGE_DEPTH:
      return ReturnInfo(desc.image_depth, size, value, size_ret);
    case CL_IMAGE_ARRAY_SIZE:
      return ReturnInfo(desc.image_array_size, size, value, size_ret);
    case CL_IMAGE_BUFFER:
      return ReturnInfo(desc.mem_object, size, value, size_ret);
    case CL_IMAGE_NUM_MIP_LEVELS:
      return ReturnInfo(desc.num_mip_levels, size, value, size_ret);
    case CL_IMAGE_NUM_SAMPLES:
      return ReturnInfo(desc.num_samples, size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace hawser::ocl
