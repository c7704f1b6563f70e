// SPDX-License-Identifier: Apache-2.0
// User events, watching events, flush and finish; releasing queues and events.
#include "server/backends/opencl/backend.h"

namespace hawser::server::ocl {

bool OpenClBackend::IsIdle() {
  bool idle = !user_events_->AnyUnset() && completions_->Outstanding() == 0;
  objects_->Table<QueueObject>().ForEach([&](wire::Id, QueueObject& object) {
    if (!idle || object.error != 0 || !object.queue->last) return;
    cl_int status = CL_COMPLETE;
    clGetEventInfo(object.queue->last.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
    idle = status <= CL_COMPLETE;
  });
  return idle;
}

int32_t OpenClBackend::CreateUserEvent(const opencl::Call& call, const opencl::CreateUserEvent& message) {
  int32_t status = CL_SUCCESS;
  const Context* context = Use<Context>(message.context, "context", &status);
  if (context == nullptr) return Fail(call, status, message.event);
  if (completions_->HasBuried() && IsIdle()) completions_->Exhume();
  Event event;
  event.native = user_events_->Create(context->native.get(), CL_DEVICE_NOT_AVAILABLE, &status);
  if (status != CL_SUCCESS) return Fail(call, status, message.event);
  return Keep(call, message.event, std::move(event));
}

int32_t OpenClBackend::SetUserEventStatus(const opencl::Call& call, const opencl::SetUserEventStatus& message) {
  int32_t status = CL_SUCCESS;
  const Event* event = Use<Event>(message.event, "event", &status);
  if (event == nullptr) return Fail(call, status);
  if (event->queue != nullptr) return Fail(call, Explain(CL_INVALID_EVENT, "the event is no user event"));
  if (message.status > CL_COMPLETE) return Fail(call, CL_INVALID_VALUE);
  status = user_events_->Set(event->native.get(), message.status);
  return status == CL_SUCCESS ? CL_SUCCESS : Fail(call, status);
}

int32_t OpenClBackend::WatchEventStatus(const opencl::Call& call, const opencl::WatchEvent& message) {
  int32_t status = CL_SUCCESS;
  const Event* event = Use<Event>(message.event, "event", &status);
  if (event == nullptr) return Fail(call, status);
  if (event->queue != nullptr) {
    // Who watches an event waits for it.
    Queue& queue = *event->queue;
    if (queue.urgent.load(std::memory_order_relaxed) < event->position) {
      queue.urgent.store(event->position, std::memory_order_relaxed);
    }
    clFlush(queue.native.get());
  }
  if (message.status == CL_SUBMITTED || message.status == CL_RUNNING) {
    completions_->Watch(event->native.get(), message.event, message.status);
  } else if (message.status != CL_COMPLETE) {
    return Fail(call, CL_INVALID_VALUE);
  }
  services_.replies->Flush();
  return CL_SUCCESS;
}

int32_t OpenClBackend::Flush(const opencl::Call& call, const opencl::Flush& message) {
  int32_t status = CL_SUCCESS;
  const QueueObject* object = Use<QueueObject>(message.queue, "queue", &status);
  if (object == nullptr) return Fail(call, status, {}, message.queue);
  Queue& queue = *object->queue;
  queue.urgent.store(queue.number, std::memory_order_relaxed);
  status = clFlush(queue.native.get());
  // Completions from before the line above may have been announced without a flush.
  services_.replies->Flush();
  return status == CL_SUCCESS ? CL_SUCCESS : Fail(call, status, {}, message.queue);
}

bool OpenClBackend::AnswerFinish(Completion& completion, int32_t) {
  // A command that failed says so itself; the queue is done in any case.
  completion.owner().replies().Send(static_cast<opencl::Opcode>(completion.opcode), completion.seq, opencl::Status{},
                                    true);
  return false;
}

Completion* OpenClBackend::NewDrain(const std::shared_ptr<Queue>& queue, int32_t* status) {
  if (!completions_->Reserve(1)) {
    *status = CL_OUT_OF_HOST_MEMORY;
    return nullptr;
  }
  if (queue->in_order) return queue->last ? completions_->New(queue->last.get(), queue, queue->number) : nullptr;
  cl_event marker = nullptr;
  *status = clEnqueueMarkerWithWaitList(queue->native.get(), 0, nullptr, &marker);
  if (*status != CL_SUCCESS) return nullptr;
  const Handle<cl_event> owned(marker);
  return completions_->New(marker, queue, queue->number);
}

int32_t OpenClBackend::Finish(const opencl::Call& call, const opencl::Finish& message) {
  int32_t status = CL_SUCCESS;
  const QueueObject* object = Use<QueueObject>(message.queue, "queue", &status);
  if (object == nullptr) return ReplyStatus(call, status);
  Queue& queue = *object->queue;
  queue.urgent.store(queue.number, std::memory_order_relaxed);
  Completion* completion = NewDrain(object->queue, &status);
  if (status == CL_SUCCESS) status = clFlush(queue.native.get());
  if (completion == nullptr) {
    if (status == CL_SUCCESS && services_.drain_kernel_output) services_.drain_kernel_output();
    return ReplyStatus(call, status);
  }
  completion->action = &AnswerFinish;
  completion->opcode = call.opcode;
  completion->seq = call.seq;
  completions_->Arm(completion);
  return CL_SUCCESS;
}

void OpenClBackend::ReleaseQueue(wire::Id id) {
  const QueueObject* object = objects_->Table<QueueObject>().Find(id);
  if (object == nullptr || object->error != 0) return;
  RetireSlab(object->queue);
  if (splitter_ != nullptr) {
    // What a lone tenant has under way there is waited for when somebody comes: until it is over the queue stays known.
    int32_t status = CL_SUCCESS;
    if (Completion* drain = NewDrain(object->queue, &status); drain != nullptr) completions_->Arm(drain);
  }
  // Releasing a queue flushes it; what still runs keeps it alive.
  clFlush(object->queue->native.get());
}

void OpenClBackend::ReleaseEvent(wire::Id id) {
  const Event* event = objects_->Table<Event>().Find(id);
  if (event != nullptr && event->error == 0 && event->queue == nullptr) user_events_->Forget(event->native.get());
}

}  // namespace hawser::server::ocl
