// SPDX-License-Identifier: Apache-2.0
// The API's calls on events, and the old markers and barriers.
#include "interposer/opencl/entry.h"
#include "interposer/opencl/event_state.h"
#include "proto/opencl/guest_entries.h"

namespace hawser::ocl {
namespace {

bool IsEvent(cl_event event) { return event != nullptr && event->magic == Magic::kEvent; }

cl_int CheckEvents(cl_uint count, const cl_event* events) {
  if (count == 0 || events == nullptr) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    if (!IsEvent(events[i])) return CL_INVALID_EVENT;
    if (events[i]->context != events[0]->context) return CL_INVALID_CONTEXT;
  }
  return CL_SUCCESS;
}

/// Takes in what has arrived, and makes sure that somebody who polls sees the end one day.
cl_int PolledStatus(cl_event event) {
  cl_int status = StatusOf(event);
  if (status <= CL_COMPLETE) return status;
  if (event->queue != nullptr) {
    FlushQueue(event->queue);
    event->session->Flush();
  }
  event->session->Poll();
  status = StatusOf(event);
  // Nobody may see it open who has seen what comes after it complete, or whose call was to wait for it.
  if (status > CL_COMPLETE && (event->returned.load(std::memory_order_relaxed) || IsDue(event))) {
    (void)event->session->WaitUntil([event] { return IsFinal(event); });
    status = StatusOf(event);
  }
  // Everything sent is at least submitted.
  return status == CL_QUEUED ? CL_SUBMITTED : status;
}

}  // namespace

cl_int CL_API_CALL clWaitForEvents(cl_uint num_events, const cl_event* events) {
  const cl_int error = CheckEvents(num_events, events);
  return error == CL_SUCCESS ? WaitForAll(num_events, events) : error;
}

cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info param, size_t size, void* value, size_t* size_ret) {
  if (!IsEvent(event)) return CL_INVALID_EVENT;
  switch (param) {
    case CL_EVENT_COMMAND_QUEUE:
      return ReturnInfo(event->queue, size, value, size_ret);
    case CL_EVENT_CONTEXT:
      return ReturnInfo(event->context, size, value, size_ret);
    case CL_EVENT_COMMAND_TYPE:
      return ReturnInfo(event->type, size, value, size_ret);
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
      return ReturnInfo(PolledStatus(event), size, value, size_ret);
    case CL_EVENT_REFERENCE_COUNT:
      return ReturnInfo<cl_uint>(event->refs.load(std::memory_order_relaxed), size, value, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_event CL_API_CALL clCreateUserEvent(cl_context context, cl_int* errcode_ret) {
  cl_int error = CheckHandle(context);
  cl_event event = nullptr;
  if (error == CL_SUCCESS) {
    guest::Session* session = context->session;
    event = new _cl_event(Magic::kEvent, session, session->NewId(HandleTraits<cl_event>::kType));
    event->context = Use(context);
    event->type = CL_COMMAND_USER;
    event->status.store(CL_SUBMITTED, std::memory_order_relaxed);
    Registry::Get().Add(event);
    opencl::CreateUserEvent message;
    message.event = event->id;
    message.context = context->id;
    error = session->Send(message);
    if (error != CL_SUCCESS) {
      Discard(event);
      DropUse(event);
      event = nullptr;
    }
  }
  if (errcode_ret != nullptr) *errcode_ret = error;
  return event;
}

cl_int CL_API_CALL clSetUserEventStatus(cl_event event, cl_int status) {
  if (!IsEvent(event) || event->type != CL_COMMAND_USER) return CL_INVALID_EVENT;
  if (status > CL_COMPLETE) return CL_INVALID_VALUE;
  cl_int unset = CL_QUEUED;
  if (!event->server_status.compare_exchange_strong(unset, status)) return CL_INVALID_OPERATION;
  // Sent before it is shown: what a woken thread enqueues is behind it.
  opencl::SetUserEventStatus message;
  message.event = event->id;
  message.status = status;
  const cl_int error = event->session->Send(message);
  ShowFinal(event, status);
  event->session->Wake();
  return error;
}

cl_int CL_API_CALL clSetEventCallback(cl_event event, cl_int type, void(CL_CALLBACK* notify)(cl_event, cl_int, void*),
                                      void* user_data) {
  if (!IsEvent(event)) return CL_INVALID_EVENT;
  if (notify == nullptr || (type != CL_SUBMITTED && type != CL_RUNNING && type != CL_COMPLETE)) {
    return CL_INVALID_VALUE;
  }
  AddCallback(event, {type, notify, user_data});
  return CL_SUCCESS;
}

cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info param, size_t size, void* value,
                                           size_t* size_ret) {
  if (!IsEvent(event)) return CL_INVALID_EVENT;
  if (event->queue == nullptr || !event->queue->profiling() || PolledStatus(event) != CL_COMPLETE) {
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  }
  if (param < CL_PROFILING_COMMAND_QUEUED || param > CL_PROFILING_COMMAND_COMPLETE) return CL_INVALID_VALUE;
  std::lock_guard lock(event->mutex);
  if (!event->has_times) return CL_PROFILING_INFO_NOT_AVAILABLE;
  return ReturnInfo<cl_ulong>(event->times[param - CL_PROFILING_COMMAND_QUEUED], size, value, size_ret);
}

cl_int CL_API_CALL clEnqueueMarker(cl_command_queue queue, cl_event* event) {
  if (queue == nullptr || queue->magic != Magic::kQueue) return CL_INVALID_COMMAND_QUEUE;
  if (event == nullptr) return CL_INVALID_VALUE;
  return ocl::clEnqueueMarkerWithWaitList(queue, 0, nullptr, event);
}

cl_int CL_API_CALL clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num_events, const cl_event* wait_list) {
  if (queue == nullptr || queue->magic != Magic::kQueue) return CL_INVALID_COMMAND_QUEUE;
  if (num_events == 0 || wait_list == nullptr) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < num_events; ++i) {
    if (!IsEvent(wait_list[i])) return CL_INVALID_EVENT;
  }
  return ocl::clEnqueueBarrierWithWaitList(queue, num_events, wait_list, nullptr);
}

cl_int CL_API_CALL clEnqueueBarrier(cl_command_queue queue) {
  return ocl::clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr);
}

}  // namespace hawser::ocl
