// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/info_filter.h"
#include "interposer/opencl/properties.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

cl_int CheckDevice(cl_context context, cl_device_id device) {
  if (const cl_int error = CheckHandle(context)) return error;
  if (const cl_int error = CheckHandle(device)) return error;
  const auto& devices = context->devices;
  return std::find(devices.begin(), devices.end(), device) != devices.end() ? CL_SUCCESS : CL_INVALID_DEVICE;
}

cl_int Create(cl_context context, cl_device_id device, const cl_queue_properties* list, bool keep_list,
              cl_command_queue* out) {
  if (const cl_int error = CheckDevice(context, device)) return error;
  QueueProperties properties;
  if (const cl_int error = ParseQueueProperties(list, device->info, &properties)) return error;
  guest::Session* session = context->session;
  auto* queue = new _cl_command_queue(Magic::kQueue, session, session->NewId(HandleTraits<cl_command_queue>::kType));
  queue->context = Use(context);
  queue->device = Use(device);
  queue->properties = properties.flags;
  queue->size = properties.size;
  queue->has_property_list = keep_list;
  if (keep_list) queue->property_list = CopyProperties(list);
  opencl::CreateQueue message;
  message.queue = queue->id;
  message.context = context->id;
  message.device = device->id;
  message.properties = wire::ArrayView<uint64_t>(properties.forwarded.data(), properties.forwarded.size());
  Registry::Get().Add(queue);
  if (const cl_int error = session->Send(message)) {
    ReleaseObject(queue);
    return error;
  }
  if ((properties.flags & CL_QUEUE_ON_DEVICE_DEFAULT) != 0) {
    std::lock_guard lock(context->mutex);
    context->default_queues[device] = queue;
  }
  if ((properties.flags & CL_QUEUE_ON_DEVICE) == 0) AddToContext(queue);
  *out = queue;
  return CL_SUCCESS;
}

/// A status that somebody waits for, on the stack: a finish allocates nothing.
class StatusSink final : public guest::ReplySink {
 public:
  void OnReply(wire::Bytes payload) override {
    opencl::Status reply;
    wire::Reader reader(payload);
    status_ = reply.Decode(reader) ? reply.status : guest::Session::lost_code();
    done_.store(true, std::memory_order_release);
  }
  void OnLost() override {
    status_ = guest::Session::lost_code();
    done_.store(true, std::memory_order_release);
  }
  bool done() const { return done_.load(std::memory_order_acquire); }
  cl_int status() const { return status_; }

 private:
  std::atomic<bool> done_{false};
  cl_int status_ = CL_SUCCESS;
};

void SendFlush(cl_command_queue queue) {
  if (queue->unflushed.exchange(false, std::memory_order_relaxed)) {
    opencl::Flush message;
    message.queue = queue->id;
    queue->session->Send(message);
  }
  queue->session->Flush();
}

void RaiseTo(std::atomic<uint64_t>& counter, uint64_t value) {
  uint64_t now = counter.load(std::memory_order_relaxed);
  while (now < value && !counter.compare_exchange_weak(now, value, std::memory_order_release)) {
  }
}

}  // namespace

template <>
cl_int ReleaseObject<cl_command_queue>(cl_command_queue queue) {
  if (queue == nullptr || queue->magic != Magic::kQueue) return CL_INVALID_COMMAND_QUEUE;
  guest::Session* session = queue->session;
  uint32_t refs = queue->refs.load(std::memory_order_relaxed);
  if (refs == 0) return CL_INVALID_COMMAND_QUEUE;
  // Each release flushes; the last one by itself, on the server.
  if (refs > 1) SendFlush(queue);
  do {
    if (refs == 0) return CL_INVALID_COMMAND_QUEUE;
  } while (!queue->refs.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel));
  if (refs == 1) {
    BlockingWrites::Mark(queue);
    // Events may use the queue for longer; its commands must start all the same.
    SendFlush(queue);
    DropUse(queue);
  }
  session->Flush();
  return CL_SUCCESS;
}

void Destroy(cl_command_queue queue) {
  Registry::Get().Remove(queue);
  RemoveFromContext(queue);
  if ((queue->properties & CL_QUEUE_ON_DEVICE) != 0) {
    std::lock_guard lock(queue->context->mutex);
    std::erase_if(queue->context->default_queues, [queue](const auto& entry) { return entry.second == queue; });
  }
  SendRelease(*queue);
  cl_context context = queue->context;
  cl_device_id device = queue->device;
  queue->magic = Magic::kFreed;
  delete queue;
  DropUse(context);
  DropUse(device);
}

// ---------------------------------------------------------------------- entry points

cl_command_queue CL_API_CALL clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                                const cl_queue_properties* properties,
                                                                cl_int* errcode) {
  cl_command_queue queue = nullptr;
  const cl_int error = Create(context, device, properties, properties != nullptr, &queue);
  if (errcode != nullptr) *errcode = error;
  return queue;
}

cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                  cl_command_queue_properties properties, cl_int* errcode) {
  constexpr cl_command_queue_properties kLegal = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
  const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
  cl_command_queue queue = nullptr;
  const cl_int error =
      (properties & ~kLegal) != 0 ? cl_int{CL_INVALID_VALUE} : Create(context, device, list, false, &queue);
  if (errcode != nullptr) *errcode = error;
  return queue;
}

cl_int CL_API_CALL clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info param, size_t size, void* value,
                                         size_t* size_ret) {
  if (const cl_int error = CheckHandle(queue)) return error;
  switch (param) {
    case CL_QUEUE_CONTEXT:
      return ReturnInfo(queue->context, size, value, size_ret);
    case CL_QUEUE_DEVICE:
      return ReturnInfo(queue->device, size, value, size_ret);
    case CL_QUEUE_REFERENCE_COUNT:
      return ReturnInfo(cl_uint{queue->refs}, size, value, size_ret);
    case CL_QUEUE_PROPERTIES:
      return ReturnInfo(queue->properties, size, value, size_ret);
    case CL_QUEUE_PROPERTIES_ARRAY:
      return ReturnInfo(queue->property_list.data(), queue->property_list.size() * sizeof(cl_queue_properties), size,
                        value, size_ret);
    case CL_QUEUE_SIZE:
      if ((queue->properties & CL_QUEUE_ON_DEVICE) == 0) return CL_INVALID_COMMAND_QUEUE;
      return ReturnInfo(queue->size, size, value, size_ret);
    case CL_QUEUE_DEVICE_DEFAULT: {
      std::lock_guard lock(queue->context->mutex);
      const auto& queues = queue->context->default_queues;
      const auto it = queues.find(queue->device);
      const cl_command_queue found = it != queues.end() ? it->second : nullptr;
      return ReturnInfo(found, size, value, size_ret);
    }
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int CL_API_CALL clSetDefaultDeviceCommandQueue(cl_context context, cl_device_id device, cl_command_queue queue) {
  if (const cl_int error = CheckDevice(context, device)) return error;
  // Not CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, which implementations give in different sizes.
  if (ValueOr<cl_command_queue_properties>(device->info, CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, 0) == 0) {
    return CL_INVALID_OPERATION;
  }
  if (const cl_int error = CheckHandle(queue)) return error;
  if ((queue->properties & CL_QUEUE_ON_DEVICE) == 0 || queue->device != device || queue->context != context) {
    return CL_INVALID_COMMAND_QUEUE;
  }
  opencl::SetDefaultDeviceCommandQueue message;
  message.context = context->id;
  message.device = device->id;
  message.queue = queue->id;
  if (const cl_int error = context->session->Send(message)) return error;
  std::lock_guard lock(context->mutex);
  context->default_queues[device] = queue;
  return CL_SUCCESS;
}

cl_int CL_API_CALL clFlush(cl_command_queue queue) {
  if (const cl_int error = CheckHandle(queue)) return error;
  if (queue->session->lost()) return guest::Session::lost_code();
  SendFlush(queue);
  return CL_SUCCESS;
}

cl_int CL_API_CALL clFinish(cl_command_queue queue) {
  if (const cl_int error = CheckHandle(queue)) return error;
  guest::Session* session = queue->session;
  if (session->lost()) return guest::Session::lost_code();
  // Not `enqueued`: what another thread is about to send may come behind this finish.
  const uint64_t taken = queue->sent.load(std::memory_order_acquire);
  if (queue->finished.load(std::memory_order_acquire) < queue->enqueued.load(std::memory_order_acquire)) {
    queue->unflushed.store(false, std::memory_order_relaxed);  // A finish flushes.
    opencl::Finish message;
    message.queue = queue->id;
    StatusSink sink;
    if (const cl_int error = session->SendForReply(opencl::Opcode::kFinish, message, &sink)) return error;
    if (const cl_int error = session->WaitUntil([&sink] { return sink.done(); })) return error;
    if (const cl_int error = AwaitData(queue)) return error;
    RaiseTo(queue->finished, taken);
    if (sink.status() != CL_SUCCESS) {
      queue->pending_error.store(CL_SUCCESS, std::memory_order_relaxed);
      return sink.status();
    }
  } else if (const cl_int error = AwaitData(queue)) {
    return error;
  }
  if (queue->pending_error.load(std::memory_order_relaxed) == CL_SUCCESS) return CL_SUCCESS;
  return queue->pending_error.exchange(CL_SUCCESS);
}

}  // namespace hawser::ocl
