// SPDX-License-Identifier: Apache-2.0
// Events: creation, progress, callbacks.
//
// Threads: the application's, which enqueue, query and wait; the one that delivers (OnEventStatus, landings), which
// alone makes events of commands final; the callback thread, which runs the application's callbacks.
// Locks: the event's mutex guards its callbacks, times and the step to a new status. Nothing is called under it.
#include "interposer/opencl/event_state.h"

#include <algorithm>

#include "interposer/opencl/delivery.h"
#include "interposer/opencl/entry.h"
#include "interposer/opencl/landing.h"

namespace hawser::ocl {
namespace {

/// The last use of an object may send a release; in strict mode that would wait, which delivery must not do.
void DropUseInDelivery(cl_event event) {
  guest::Session* session = event->session;
  if (session->strict()) {
    session->PostCallback([event] { DropUse(event); });
  } else {
    DropUse(event);
  }
}

void Post(cl_event event, const std::vector<_cl_event::Callback>& callbacks, cl_int status) {
  guest::Session* session = event->session;
  for (const auto& callback : callbacks) {
    // A status that was passed is reported as asked for; an error as it is.
    const cl_int shown = status < 0 ? status : callback.status;
    session->PostCallback([event, callback, shown, session] {
      callback.function(event, shown, callback.data);
      session->RemoveListener();
      DropUse(event);
    });
  }
}

/// Moves the event to `status` and posts the callbacks that this makes due.
void Step(cl_event event, cl_int status) {
  std::vector<_cl_event::Callback> due;
  {
    std::lock_guard lock(event->mutex);
    if (event->status.load(std::memory_order_relaxed) <= std::max<cl_int>(status, CL_COMPLETE)) return;
    event->status.store(status, std::memory_order_release);
    auto& waiting = event->callbacks;
    const auto passed = std::stable_partition(waiting.begin(), waiting.end(),
                                              [&](const auto& callback) { return callback.status < status; });
    due.assign(passed, waiting.end());
    waiting.erase(passed, waiting.end());
  }
  std::stable_sort(due.begin(), due.end(), [](const auto& a, const auto& b) { return a.status > b.status; });
  Post(event, due, status);
}

/// The server says that the event is final.
void Announce(cl_event event, const opencl::EventStatus& notice) {
  std::function<void()> on_complete;
  {
    std::lock_guard lock(event->mutex);
    if (event->status.load(std::memory_order_relaxed) <= CL_COMPLETE && event->has_times) return;  // Said before.
    event->server_status.store(notice.status, std::memory_order_relaxed);
    if (notice.has_times != 0) {
      std::copy(notice.times.begin(), notice.times.end(), event->times);
      event->has_times = true;
    }
    on_complete.swap(event->on_complete);
  }
  if (on_complete) on_complete();
  const std::shared_ptr<Landing>& landing = event->landing;
  LandingBook& book = LandingBook::Get();
  if (book.Hold(event)) return;
  ShowFinal(event, landing != nullptr && notice.status == CL_COMPLETE ? landing->failure.load() : notice.status);
}

}  // namespace

cl_event NewEvent(cl_command_queue queue, cl_command_type type) {
  auto* event = new _cl_event(Magic::kEvent, queue->session, queue->session->NewId(HandleTraits<cl_event>::kType));
  event->context = Use(queue->context);
  event->queue = Use(queue);
  event->type = type;
  return event;
}

cl_event NewLocalEvent(cl_command_queue queue, cl_command_type type) {
  auto* event = new _cl_event(Magic::kEvent, queue->session, wire::Id());
  event->context = Use(queue->context);
  event->queue = Use(queue);
  event->type = type;
  event->local = true;
  event->status.store(CL_COMPLETE, std::memory_order_relaxed);
  return event;
}

void Discard(cl_event event) {
  Registry::Get().Remove(event);
  event->session->FreeId(event->id);
  event->local = true;
  if (event->kept.exchange(false)) DropUse(event);
}

void Destroy(cl_event event) {
  if (!event->local) {
    Registry::Get().Remove(event);
    SendRelease(*event);
  }
  event->magic = Magic::kFreed;
  cl_context context = event->context;
  cl_command_queue queue = event->queue;
  delete event;
  DropUse(queue);
  DropUse(context);
}

cl_int StatusOf(cl_event event) {
  const cl_int status = event->status.load(std::memory_order_acquire);
  if (status <= CL_COMPLETE) return status;
  const cl_int failed = event->failed.load(std::memory_order_relaxed);
  if (failed != CL_SUCCESS) return failed;
  if (event->session->lost()) return guest::Session::lost_code();
  return status;
}

void AdvanceFinished(cl_command_queue queue, uint64_t position) {
  uint64_t finished = queue->finished.load(std::memory_order_relaxed);
  while (finished < position && !queue->finished.compare_exchange_weak(finished, position, std::memory_order_acq_rel)) {
  }
}

bool IsDue(cl_event event) {
  if (event->queue == nullptr) return false;
  return event->awaited.load(std::memory_order_acquire) ||
         event->queue->finished.load(std::memory_order_acquire) >= event->queue_bound;
}

void ShowFinal(cl_event event, cl_int status) {
  // A command that failed says nothing of those before it: the server may have refused it at once.
  if (status == CL_COMPLETE && event->queue != nullptr) {
    for (const wire::Id id : event->waits) {
      cl_event waited = Registry::Get().FindEvent(id);
      if (waited == nullptr) continue;
      waited->awaited.store(true, std::memory_order_release);
      DropUseInDelivery(waited);
    }
    if (!event->queue->out_of_order()) AdvanceFinished(event->queue, event->queue_position);
  }
  Step(event, status);
  if (event->kept.exchange(false)) DropUseInDelivery(event);
}

void ShowLanded(const std::vector<cl_event>& events) {
  for (cl_event event : events) {
    cl_int status = event->server_status.load(std::memory_order_relaxed);
    if (status == CL_COMPLETE && event->landing != nullptr) status = event->landing->failure.load();
    ShowFinal(event, status);
    DropUseInDelivery(event);
  }
}

void OnEventStatus(const opencl::EventStatus& notice) {
  cl_event event = Registry::Get().FindEvent(notice.event);
  if (event == nullptr) return;  // Released meanwhile.
  if (notice.status > CL_COMPLETE) {
    Step(event, notice.status);
  } else {
    Announce(event, notice);
  }
  DropUseInDelivery(event);
}

void AddCallback(cl_event event, const _cl_event::Callback& callback) {
  guest::Session* session = event->session;
  Use(event);
  session->AddListener();
  {
    std::lock_guard lock(event->mutex);
    if (StatusOf(event) > callback.status) {
      event->callbacks.push_back(callback);
    } else {
      Post(event, {callback}, StatusOf(event));
      return;
    }
  }
  if (event->queue == nullptr) return;
  if (callback.status != CL_COMPLETE) {
    opencl::WatchEvent watch;
    watch.event = event->id;
    watch.status = callback.status;
    session->Send(watch);
  }
  // Many programs rely on a command with a callback to start by itself.
  FlushQueue(event->queue);
  session->Flush();
}

void OnEventsLost() {
  for (cl_event event : Registry::Get().LiveEvents()) {
    if (event->session->lost()) {
      if (event->landing != nullptr) {
        ShowLanded(LandingBook::Get().Land(event->landing, guest::Session::lost_code()));
      }
      ShowFinal(event, guest::Session::lost_code());
    }
    DropUseInDelivery(event);
  }
}

cl_int WaitForAll(cl_uint count, const cl_event* events) {
  guest::Session* session = nullptr;
  for (cl_uint i = 0; i < count; ++i) {
    if (IsFinal(events[i])) continue;
    session = events[i]->session;
    if (events[i]->queue != nullptr) FlushQueue(events[i]->queue);
  }
  if (session != nullptr) {
    cl_uint next = 0;
    const cl_int error = session->WaitUntil([&] {
      while (next < count && IsFinal(events[next])) ++next;
      return next == count;
    });
    if (error != CL_SUCCESS) return error;
  }
  for (cl_uint i = 0; i < count; ++i) {
    if (StatusOf(events[i]) < 0) return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  return CL_SUCCESS;
}

}  // namespace hawser::ocl
