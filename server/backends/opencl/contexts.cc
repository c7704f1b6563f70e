// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, queues, samplers; releasing any object.
#include <algorithm>
#include <vector>

#include "server/backends/opencl/backend.h"

namespace hawser::server::ocl {
namespace {

// What a context's error callback is given. Lives until the context is really gone.
struct ContextErrors {
  Replies* replies;
  wire::Id context;
};

constexpr size_t kLongestNotice = 65536;

void CL_CALLBACK OnContextError(const char* text, const void* private_info, size_t size, void* user_data) {
  const auto* errors = static_cast<const ContextErrors*>(user_data);
  opencl::ContextError notice;
  notice.context = errors->context;
  if (text != nullptr) notice.text = std::string_view(text).substr(0, kLongestNotice);
  if (private_info != nullptr) notice.private_info = wire::AsBytes(private_info, std::min(size, kLongestNotice));
  errors->replies->Notify(notice, true);
}

void CL_CALLBACK OnContextDestroyed(cl_context, void* user_data) { delete static_cast<ContextErrors*>(user_data); }

}  // namespace

int32_t OpenClBackend::GetInventory(const opencl::Call& call, const opencl::Nothing&) {
  inventory_->Send(*services_.replies, call);
  return CL_SUCCESS;
}

int32_t OpenClBackend::CreateSubDevices(const opencl::Call& call, const opencl::CreateSubDevices& message) {
  inventory_->CreateSubDevices(*services_.replies, call, message);
  return CL_SUCCESS;
}

int32_t OpenClBackend::CreateContext(const opencl::Call& call, const opencl::CreateContext& message) {
  int32_t status = CL_SUCCESS;
  Context context;
  std::vector<cl_device_id> devices;
  cl_platform_id platform = nullptr;
  context.version = UINT32_MAX;
  for (uint32_t i = 0; i < message.devices.size(); ++i) {
    const Device* device = UseDevice(message.devices[i], &status);
    if (device == nullptr) return Fail(call, status, message.context);
    if (platform != nullptr && device->platform != platform) {
      return Fail(call, Explain(CL_INVALID_DEVICE, "devices of several platforms"), message.context);
    }
    platform = device->platform;
    context.version = std::min(context.version, device->version);
    devices.push_back(device->device);
    context.devices.push_back(device->id);
  }
  if (devices.empty()) return Fail(call, Explain(CL_INVALID_VALUE, "no devices"), message.context);

  std::vector<cl_context_properties> properties = {CL_CONTEXT_PLATFORM,
                                                   reinterpret_cast<cl_context_properties>(platform)};
  for (uint32_t i = 0; i + 1 < message.properties.size(); i += 2) {
    // Other properties are handles and pointers of the guest.
    if (message.properties[i] != CL_CONTEXT_INTEROP_USER_SYNC) {
      return Fail(call, Explain(CL_INVALID_PROPERTY, "a property that means nothing here"), message.context);
    }
    properties.push_back(static_cast<cl_context_properties>(message.properties[i]));
    properties.push_back(static_cast<cl_context_properties>(message.properties[i + 1]));
  }
  properties.push_back(0);

  auto errors = std::make_unique<ContextErrors>(ContextErrors{services_.replies, message.context});
  context.native = Handle<cl_context>(clCreateContext(properties.data(), static_cast<cl_uint>(devices.size()),
                                                      devices.data(), &OnContextError, errors.get(), &status));
  if (status != CL_SUCCESS) return Fail(call, status, message.context);
  for (const wire::Id& device : context.devices) inventory_->NoteContext(device);
  // Without a destructor callback (before 3.0) the few bytes stay as long as the session: the driver may use them as
  // long as anything keeps the context alive.
  auto* kept = errors.release();
  if (context.version >= 30) clSetContextDestructorCallback(context.native.get(), &OnContextDestroyed, kept);
  builder_->Prepare();
  return Keep(call, message.context, std::move(context));
}

int32_t OpenClBackend::CreateCommandQueueWithProperties(const opencl::Call& call, const opencl::CreateQueue& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  const Device* device = context == nullptr ? nullptr : UseDevice(message.device, &status);
  if (device == nullptr) return Fail(call, status, message.queue);

  QueueRecipe recipe;
  recipe.context = context->native.get();
  recipe.device = device->device;
  recipe.version = device->version;
  for (uint32_t i = 0; i + 1 < message.properties.size(); i += 2) {
    recipe.properties.push_back(message.properties[i]);
    recipe.properties.push_back(message.properties[i + 1]);
  }

  QueueObject object;
  object.queue = std::make_shared<Queue>();
  Queue& queue = *object.queue;
  // Launches are measured where they are split or gated; the guest does not see that.
  status = queue.native.Create(recipe, splitter_ != nullptr);
  if (status != CL_SUCCESS) return Fail(call, status, message.queue);
  queue.context = Handle<cl_context>::Share(context->native.get());
  queue.in_order = recipe.in_order();
  queue.profiling = recipe.measures();
  queue.version = device->version;
  if (splitter_ != nullptr) splitter_->AddQueue(object.queue, device->key);
  return Keep(call, message.queue, std::move(object));
}

int32_t OpenClBackend::SetDefaultDeviceCommandQueue(const opencl::Call& call,
                                                    const opencl::SetDefaultDeviceCommandQueue& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  const Device* device = context == nullptr ? nullptr : UseDevice(message.device, &status);
  const QueueObject* queue = device == nullptr ? nullptr : Use<QueueObject>(message.queue, "queue", &status);
  if (queue == nullptr) return Fail(call, status);
  if (device->version < 21) return Fail(call, CL_INVALID_OPERATION);
  status = clSetDefaultDeviceCommandQueue(context->native.get(), device->device, queue->queue->native.get());
  return status == CL_SUCCESS ? CL_SUCCESS : Fail(call, status, {}, message.queue);
}

int32_t OpenClBackend::GetDeviceAndHostTimer(const opencl::Call& call, const opencl::GetDeviceAndHostTimer& message) {
  opencl::Timers reply;
  const Device* device = UseDevice(message.device, &reply.status);
  if (device != nullptr) {
    cl_ulong device_time = 0, host_time = 0;
    reply.status =
        device->version < 21 ? CL_INVALID_OPERATION : clGetDeviceAndHostTimer(device->device, &device_time, &host_time);
    reply.device = device_time;
    reply.host = host_time;
  }
  if (reply.status != CL_SUCCESS) Fail(call, reply.status);
  Reply(call, reply);
  return CL_SUCCESS;
}

int32_t OpenClBackend::CreateSamplerWithProperties(const opencl::Call& call, const opencl::CreateSampler& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return Fail(call, status, message.sampler);
  std::vector<cl_sampler_properties> properties;
  cl_bool normalized = CL_TRUE;
  cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
  cl_filter_mode filter = CL_FILTER_NEAREST;
  for (uint32_t i = 0; i + 1 < message.properties.size(); i += 2) {
    const uint64_t value = message.properties[i + 1];
    properties.push_back(message.properties[i]);
    properties.push_back(value);
    switch (message.properties[i]) {
      case CL_SAMPLER_NORMALIZED_COORDS:
        normalized = static_cast<cl_bool>(value);
        break;
      case CL_SAMPLER_ADDRESSING_MODE:
        addressing = static_cast<cl_addressing_mode>(value);
        break;
      case CL_SAMPLER_FILTER_MODE:
        filter = static_cast<cl_filter_mode>(value);
        break;
      default:
        break;
    }
  }
  properties.push_back(0);
  Sampler sampler;
  if (context->version >= 20) {
    sampler.native =
        Handle<cl_sampler>(clCreateSamplerWithProperties(context->native.get(), properties.data(), &status));
  } else {
    sampler.native =
        Handle<cl_sampler>(clCreateSampler(context->native.get(), normalized, addressing, filter, &status));
  }
  if (status != CL_SUCCESS) return Fail(call, status, message.sampler);
  return Keep(call, message.sampler, std::move(sampler));
}

int32_t OpenClBackend::ReleaseObject(const opencl::Call& call, const opencl::Release& message) {
  const wire::Id id = message.object;
  const auto erase = [&](auto& table) {
    wire::Lookup why = wire::Lookup::kOk;
    if (table.Find(id, &why) == nullptr) {
      ExplainLookup(id, "object", why);
      return false;
    }
    table.Erase(id);
    return true;
  };
  switch (static_cast<opencl::Handle>(id.type())) {
    case opencl::Handle::kMem: {
      wire::Lookup why = wire::Lookup::kOk;
      if (objects_->Table<Memory>().Find(id, &why) == nullptr) {
        ExplainLookup(id, "object", why);
        return Fail(call, CL_INVALID_MEM_OBJECT);
      }
      ReleaseMemory(id, message.notify != 0);
      return CL_SUCCESS;  // Announced when it is really gone.
    }
    case opencl::Handle::kQueue:
      ReleaseQueue(id);
      if (!erase(objects_->Table<QueueObject>())) return Fail(call, CL_INVALID_COMMAND_QUEUE);
      break;
    case opencl::Handle::kEvent:
      ReleaseEvent(id);
      if (!erase(objects_->Table<Event>())) return Fail(call, CL_INVALID_EVENT);
      break;
    case opencl::Handle::kContext:
      if (!erase(objects_->Table<Context>())) return Fail(call, CL_INVALID_CONTEXT);
      break;
    case opencl::Handle::kSampler:
      if (!erase(objects_->Table<Sampler>())) return Fail(call, CL_INVALID_SAMPLER);
      break;
    case opencl::Handle::kProgram:
      if (!erase(objects_->Table<ProgramObject>())) return Fail(call, CL_INVALID_PROGRAM);
      break;
    case opencl::Handle::kKernel:
      if (!erase(objects_->Table<Kernel>())) return Fail(call, CL_INVALID_KERNEL);
      break;
    case opencl::Handle::kDevice:
      inventory_->Release(id);
      break;
    case opencl::Handle::kPlatform:
      break;
    default:
      return Fail(call, CL_INVALID_VALUE);
  }
  if (message.notify != 0) {
    opencl::Released notice;
    notice.object = id;
    services_.replies->Notify(notice, false);
  }
  return CL_SUCCESS;
}

}  // namespace hawser::server::ocl
