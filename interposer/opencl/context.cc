// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/platforms.h"
#include "interposer/opencl/properties.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

using Notify = void(CL_CALLBACK*)(const char*, const void*, size_t, void*);

/// The platform that the properties name; without one the first, or `devices`' own.
cl_int SelectPlatform(const ContextProperties& properties, cl_platform_id otherwise, cl_platform_id* platform) {
  *platform = properties.has_platform ? properties.platform : otherwise;
  return CheckHandle(*platform) == CL_SUCCESS ? CL_SUCCESS : CL_INVALID_PLATFORM;
}

cl_int Create(const cl_context_properties* list, const ContextProperties& properties, std::vector<cl_device_id> devices,
              Notify notify, void* notify_data, cl_context* out) {
  guest::Session* session = devices.front()->session;
  if (session->lost()) return guest::Session::lost_code();
  auto* context = new _cl_context(Magic::kContext, session, session->NewId(HandleTraits<cl_context>::kType));
  context->devices = std::move(devices);
  context->properties = CopyProperties(list);
  context->notify = notify;
  context->notify_data = notify_data;
  context->shared_memory = session->heap_base() != nullptr;
  std::vector<wire::Id> ids;
  for (cl_device_id device : context->devices) {
    Use(device);
    ids.push_back(device->id);
    context->shared_memory = context->shared_memory && device->shared_memory;
  }
  opencl::CreateContext message;
  message.context = context->id;
  message.devices = wire::ArrayView<wire::Id>(ids.data(), ids.size());
  message.properties = wire::ArrayView<int64_t>(properties.forwarded.data(), properties.forwarded.size());
  Registry::Get().Add(context);
  if (const cl_int error = session->Send(message)) {
    ReleaseObject(context);
    return error;
  }
  *out = context;
  return CL_SUCCESS;
}

cl_int CreateChecked(const cl_context_properties* list, cl_uint num_devices, const cl_device_id* devices, Notify notify,
                     void* notify_data, cl_context* out) {
  Platforms::Get().Refresh();
  ContextProperties properties;
  if (const cl_int error = ParseContextProperties(list, &properties)) return error;
  if (devices == nullptr || num_devices == 0 || (notify == nullptr && notify_data != nullptr)) return CL_INVALID_VALUE;
  std::vector<cl_device_id> chosen;
  for (cl_uint i = 0; i < num_devices; ++i) {
    if (const cl_int error = CheckHandle(devices[i])) return error;
    if (devices[i]->platform != devices[0]->platform) return CL_INVALID_DEVICE;
    // The specification ignores repetitions.
    if (std::find(chosen.begin(), chosen.end(), devices[i]) == chosen.end()) chosen.push_back(devices[i]);
  }
  cl_platform_id platform = nullptr;
  if (const cl_int error = SelectPlatform(properties, devices[0]->platform, &platform)) return error;
  if (platform != devices[0]->platform) return CL_INVALID_DEVICE;
  return Create(list, properties, std::move(chosen), notify, notify_data, out);
}

cl_int CreateFromType(const cl_context_properties* list, cl_device_type type, Notify notify, void* notify_data,
                      cl_context* out) {
  Platforms::Get().Refresh();
  ContextProperties properties;
  if (const cl_int error = ParseContextProperties(list, &properties)) return error;
  if (notify == nullptr && notify_data != nullptr) return CL_INVALID_VALUE;
  const std::vector<cl_platform_id> platforms = Platforms::Get().List();
  cl_platform_id platform = nullptr;
  if (const cl_int error = SelectPlatform(properties, platforms.empty() ? nullptr : platforms.front(), &platform)) {
    return error;
  }
  if (!IsLegalDeviceType(type)) return CL_INVALID_DEVICE_TYPE;
  std::vector<cl_device_id> devices = DevicesOfType(platform, type);
  if (devices.empty()) return CL_DEVICE_NOT_FOUND;
  return Create(list, properties, std::move(devices), notify, notify_data, out);
}

}  // namespace

void Destroy(cl_context context) {
  // The callbacks come while the context is still whole, the last registered first.
  RunDestructors(context->session, std::move(context->destructors));
  Registry::Get().Remove(context);
  SendRelease(*context);
  const std::vector<cl_device_id> devices = std::move(context->devices);
  context->magic = Magic::kFreed;
  delete context;
  for (cl_device_id device : devices) DropUse(device);
}

// ---------------------------------------------------------------------- entry points

cl_context CL_API_CALL clCreateContext(const cl_context_properties* properties, cl_uint num_devices,
                                       const cl_device_id* devices, Notify notify, void* user_data, cl_int* errcode) {
  cl_context context = nullptr;
  const cl_int error = CreateChecked(properties, num_devices, devices, notify, user_data, &context);
  if (errcode != nullptr) *errcode = error;
  return context;
}

cl_context CL_API_CALL clCreateContextFromType(const cl_context_properties* properties, cl_device_type type,
                                               Notify notify, void* user_data, cl_int* errcode) {
  cl_context context = nullptr;
  const cl_int error = CreateFromType(properties, type, notify, user_data, &context);
  if (errcode != nullptr) *errcode = error;
  return context;
}

cl_int CL_API_CALL clGetContextInfo(cl_context context, cl_context_info param, size_t size, void* value,
                                    size_t* size_ret) {
  if (const cl_int error = CheckHandle(context)) return error;
  switch (param) {
    case CL_CONTEXT_REFERENCE_COUNT:
      return ReturnInfo(cl_uint{context->refs}, size, value, size_ret);
    case CL_CONTEXT_NUM_DEVICES:
      return ReturnInfo(static_cast<cl_uint>(context->devices.size()), size, value, size_ret);
    case CL_CONTEXT_DEVICES:
      return ReturnInfo(context->devices.data(), context->devices.size() * sizeof(cl_device_id), size, value, size_ret);
    case CL_CONTEXT_PROPERTIES:
      return ReturnInfo(context->properties.data(), context->properties.size() * sizeof(cl_context_properties), size,
                        value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clSetContextDestructorCallback(cl_context context, void(CL_CALLBACK* function)(cl_context, void*),
                                                  void* user_data) {
  if (const cl_int error = CheckHandle(context)) return error;
  if (function == nullptr) return CL_INVALID_VALUE;
  std::lock_guard lock(context->mutex);
  context->destructors.push_back([context, function, user_data] { function(context, user_data); });
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetSupportedImageFormats(cl_context context, cl_mem_flags flags, cl_mem_object_type type,
                                              cl_uint num_entries, cl_image_format* formats, cl_uint* num_formats) {
  if (const cl_int error = CheckHandle(context)) return error;
  if (type < CL_MEM_OBJECT_IMAGE2D || type > CL_MEM_OBJECT_IMAGE1D_BUFFER) return CL_INVALID_VALUE;
  constexpr cl_mem_flags kLegal = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR |
                                  CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR | CL_MEM_HOST_WRITE_ONLY |
                                  CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_KERNEL_READ_AND_WRITE;
  if ((flags & ~kLegal) != 0) return CL_INVALID_VALUE;
  if (formats != nullptr && num_entries == 0) return CL_INVALID_VALUE;

  const std::pair<cl_mem_flags, cl_uint> key{flags, type};
  std::vector<cl_image_format> list;
  bool known = false;
  {
    std::lock_guard lock(context->mutex);
    if (const auto it = context->image_formats.find(key); it != context->image_formats.end()) {
      list = it->second;
      known = true;
    }
  }
  if (!known) {
    opencl::GetSupportedImageFormats message;
    message.context = context->id;
    message.flags = flags;
    message.image_type = type;
    std::vector<std::byte> payload;
    if (const cl_int error = context->session->Call(opencl::Opcode::kGetSupportedImageFormats, message, &payload)) {
      return error;
    }
    opencl::ImageFormats reply;
    wire::Reader reader(payload);
    if (!reply.Decode(reader)) return guest::Session::lost_code();
    if (reply.status != CL_SUCCESS) return reply.status;
    for (size_t i = 0; i < std::min(reply.orders.size(), reply.types.size()); ++i) {
      list.push_back({reply.orders[i], reply.types[i]});
    }
    std::lock_guard lock(context->mutex);
    context->image_formats.emplace(key, list);
  }
  if (num_formats != nullptr) *num_formats = static_cast<cl_uint>(list.size());
  if (formats != nullptr) std::copy_n(list.begin(), std::min<size_t>(num_entries, list.size()), formats);
  return CL_SUCCESS;
}

}  // namespace hawser::ocl
