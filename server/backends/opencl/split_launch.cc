// SPDX-License-Identifier: Apache-2.0
// A launch that is split, or that asks the gate before it runs: what the executor does. The rest is in splitter.h.
#include <sched.h>

#include <algorithm>

#include "server/backends/opencl/command.h"
#include "server/backends/opencl/slicing/carry.h"
#include "server/backends/opencl/splitter.h"

namespace hawser::server::ocl {
namespace {

slicing::LaunchShape ShapeOf(const opencl::EnqueueNDRangeKernel& message) {
  slicing::LaunchShape shape;
  shape.dimensions = message.work_dim;
  for (uint32_t d = 0; d < message.work_dim && d < 3; ++d) {
    if (!message.offset.empty()) shape.offset[d] = message.offset[d];
    shape.global[d] = message.global.empty() ? 0 : message.global[d];
    if (!message.local.empty()) shape.local[d] = message.local[d];
  }
  return shape;
}

// No estimate is longer; the gate's are bounded too.
constexpr double kMostEstimateNs = 1e12;

bool IsComplete(const Handle<cl_event>& event) {
  if (!event) return true;
  cl_int execution = CL_QUEUED;
  return clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution, nullptr) ==
             CL_SUCCESS &&
         execution <= CL_COMPLETE;
}

// Nanoseconds on the device from one's end to the other's; 0: not known.
uint64_t BetweenEnds(const Handle<cl_event>& one, const Handle<cl_event>& other) {
  cl_ulong from = 0, to = 0;
  if (clGetEventProfilingInfo(one.get(), CL_PROFILING_COMMAND_END, sizeof(from), &from, nullptr) != CL_SUCCESS ||
      clGetEventProfilingInfo(other.get(), CL_PROFILING_COMMAND_END, sizeof(to), &to, nullptr) != CL_SUCCESS) {
    return 0;
  }
  return to > from ? to - from : 0;
}

// A command that does nothing but wait for its list. PoCL's markers on out-of-order queues wait for all commands before
// them whatever their list; a fill of a few bytes does not. Fresh bytes, because PoCL also orders commands by buffer.
cl_int EnqueueNothing(const Queue& queue, cl_uint count, const cl_event* wait_list, cl_event* event) {
  if (queue.in_order) return clEnqueueMarkerWithWaitList(queue.native.get(), count, wait_list, event);
  cl_int status = CL_SUCCESS;
  const cl_uint nothing = 0;
  const Handle<cl_mem> bytes(clCreateBuffer(queue.context.get(), CL_MEM_READ_WRITE, sizeof(nothing), nullptr, &status));
  if (status != CL_SUCCESS) return status;
  return clEnqueueFillBuffer(queue.native.get(), bytes.get(), &nothing, sizeof(nothing), 0, sizeof(nothing), count,
                             wait_list, event);
}

}  // namespace

// What the kernel's arguments name stays until the last part is enqueued. False when some of it is gone: then the
// launch is the driver's affair.
bool OpenClBackend::HoldArguments(const Kernel& kernel, SplitJob* job) {
  for (const wire::Id id : kernel.objects) {
    if (!id) continue;
    if (static_cast<opencl::Handle>(id.type()) == opencl::Handle::kMem) {
      const Memory* memory = objects_->Table<Memory>().Find(id);
      if (memory == nullptr || memory->error != 0) return false;
      job->memory.push_back(Handle<cl_mem>::Share(memory->native.get()));
    } else if (static_cast<opencl::Handle>(id.type()) == opencl::Handle::kSampler) {
      const Sampler* sampler = objects_->Table<Sampler>().Find(id);
      if (sampler == nullptr || sampler->error != 0) return false;
      job->samplers.push_back(Handle<cl_sampler>::Share(sampler->native.get()));
    } else {
      return false;
    }
  }
  return kernel.SetLocalsOf(job->kernel.get()) == CL_SUCCESS;
}

bool Splitter::LaneIsEmpty(Queue& queue) {
  const auto empty = [&] { return queue.in_lane.load(std::memory_order_acquire) == 0; };
  if (empty()) {
    queue.tiny_held = 0;
    return true;
  }
  if (++queue.tiny_held < kTinyHeld << queue.lane_waits || queue.gate->UnitNs() != 0) return false;
  queue.tiny_held = 0;
  // And what follows from the last one's, so that the next launch need not ask.
  const auto end = Clock::now() + kLaneWait;
  while ((!empty() || user_events_.AnyUnset()) && Clock::now() < end) ::sched_yield();
  const bool is_empty = empty();
  queue.lane_waits = is_empty ? 0 : std::min(queue.lane_waits + 1, kMaxLaneWaits);
  return is_empty;
}

bool Splitter::HoldSlowly(Queue& queue) {
  if (queue.held) {
    if (queue.in_lane.load(std::memory_order_acquire) != 0) return true;
    // All of it has passed the gate. What of that is not over yet is on its way, and counted.
    queue.held = false;
    (void)queue.open.Take();
    const bool idle = IsComplete(queue.last);
    if (idle || queue.ahead == Queue::Ahead::kLane) queue.ahead = Queue::Ahead::kNothing;
    if (!idle) queue.open.Assume(Handle<cl_event>::Share(queue.last.get()), queue.open.cap_ns() / 2);
    return false;
  }
  LookOpen(queue, false);
  if (!queue.open.full() || !queue.open.has_marks()) return false;
  // Behind what waits for others the guest is not ahead of the device; and it asks in any case.
  Settle(queue);
  return queue.ahead != Queue::Ahead::kUnknown;
}

void Splitter::Hold(SplitJob* job) {
  Queue& queue = *job->queue;
  if (queue.gate->UnitNs() != 0) return;  // Somebody has come.
  job->held = true;
  if (queue.open.full() && queue.open.has_marks()) {
    job->resume = Handle<cl_event>::Share(queue.open.ResumeAt().get());
  }
}

void Splitter::LearnOpen(Queue& queue, KernelSplit& kernel) {
  cl_device_id device = nullptr;
  clGetCommandQueueInfo(queue.native.get(), CL_QUEUE_DEVICE, sizeof(device), &device, nullptr);
  OpenKernel& open = *kernel.open;
  if (const double rate = history_.Rate(KeyOf(&kernel, device)); rate > 0) {
    open.speed.Set(1 / rate);
  } else if (open.sample && IsComplete(open.sample)) {
    // What lies between two launches, as OpenFlight sees it, is the guest's pause if it waits for each.
    const auto time = static_cast<double>(std::max<uint64_t>(1, TimeOf(open.sample.get())));
    open.speed.Set(time / static_cast<double>(std::max<uint64_t>(1, open.sample_items)));
    open.sample.Reset();
  }
}

void Splitter::LookOpen(Queue& queue, bool quickly) {
  // Each launch is a command, and one may just be on its way.
  const uint64_t not_over = queue.number + 1 - queue.done.load(std::memory_order_relaxed);
  if (queue.open.given() > not_over) queue.open.Over(queue.open.given() - not_over);
  queue.open.Look([](const Handle<cl_event>& mark) { return IsComplete(mark); }, &BetweenEnds, quickly);
  // The newest launch may be behind it.
  if ((!quickly || queue.open.NeedsProof()) && queue.open.given() > 0 && IsComplete(queue.last)) {
    queue.open.Over(queue.open.given() - 1);
  }
}

void Splitter::PutMark(Queue& queue, KernelSplit& kernel, cl_event event, uint64_t items) {
  LookOpen(queue, true);
  if (!queue.open.Due()) return;
  // Whether the device has idled since the mark before is of interest now.
  LookOpen(queue, false);
  const bool plain = queue.native.is_plain();
  Handle<cl_event> mark = plain ? queue.native.MeasuredEnd(event) : Handle<cl_event>();
  if (!mark) mark = Handle<cl_event>::Share(event);
  queue.open.Put(std::move(mark), std::shared_ptr<OpenSpeed>(kernel.open, &kernel.open->speed), items,
                 queue.gate->OpenCapNs());
  if (!plain && !kernel.open->speed.known() && !kernel.open->sample) {
    kernel.open->sample = Handle<cl_event>::Share(event);
    kernel.open->sample_items = items;
  }
  KeepOpen(queue, event);
  ChooseNative(queue, kernel.open->speed, event, items);
}

void Splitter::ChooseNative(Queue& queue, const OpenSpeed& speed, cl_event newest, uint64_t items) {
  // How long kernels take must be known, and who asks for a timeline gets the device's times. What waits for the guest
  // may fail, and with it what is behind it; that stays in one queue.
  if (!IsTiny(speed, items) || queue.held || trace_.Wanted() || user_events_.AnyUnset()) {
    queue.tiny_marks = 0;
    (void)queue.native.UseMeasuring(newest);
  } else if (queue.tiny_marks < kTinyMarks && ++queue.tiny_marks == kTinyMarks) {
    (void)queue.native.UsePlain(newest);
  }
}

void Splitter::AwaitResume(const std::shared_ptr<Lane>& lane, const SplitJob& job) {
  // The driver may call back long after this has ended its wait.
  const auto resume = std::make_shared<Resume>(Resume{lane, false});
  auto context = std::make_unique<std::shared_ptr<Resume>>(resume);
  if (clSetEventCallback(job.resume.get(), CL_COMPLETE, &OnResume, context.get()) != CL_SUCCESS) return;
  (void)context.release();  // OnResume()'s.
  std::unique_lock<std::mutex> lock(lane->mutex);
  // When somebody has come (OnClosed()), the gate is what is waited for.
  lane->changed.wait_until(lock, Clock::now() + std::chrono::milliseconds(settings_.hold_ms),
                           [&] { return resume->passed || lane->gate->UnitNs() != 0 || stopping_; });
}

void CL_CALLBACK Splitter::OnResume(cl_event, cl_int, void* context) {
  const std::unique_ptr<std::shared_ptr<Resume>> owned(static_cast<std::shared_ptr<Resume>*>(context));
  Resume& resume = **owned;
  const std::lock_guard<std::mutex> lock(resume.lane->mutex);
  resume.passed = true;
  resume.lane->changed.notify_all();
}

void Splitter::OnClosed() {
  const std::lock_guard<std::mutex> lock(lanes_mutex_);
  for (auto& [device, lane] : lanes_) {
    const std::lock_guard<std::mutex> held(lane->mutex);
    lane->changed.notify_all();
  }
}

int32_t OpenClBackend::LaunchSplit(const opencl::Call& call, const opencl::EnqueueNDRangeKernel& message,
                                   Command& command, bool is_open, bool hold, bool* taken) {
  Kernel* kernel = command.Use<Kernel>(message.kernel, "kernel");
  const slicing::LaunchShape shape = ShapeOf(message);
  // Ids that would look like a carried launch's: see slicing/carry.h.
  if (shape.dimensions == 3 && kernel->split.program != nullptr && kernel->split.program->carries &&
      (shape.offset[2] >= slicing::kFirstCarryWord || shape.global[2] >= slicing::kFirstCarryWord - shape.offset[2])) {
    *taken = true;
    command.Require(false, CL_INVALID_GLOBAL_OFFSET, "ids in the third dimension are beyond 2^58");
    return command.Fail();
  }
  if (is_open) return CL_SUCCESS;
  const std::shared_ptr<Queue>& queue = command.queue();
  queue->tiny_marks = 0;
  (void)queue->native.UseMeasuring(queue->last.get());
  const std::shared_ptr<SplitJob> job = splitter_->Prepare(kernel->native.get(), &kernel->split, queue, shape);
  if (job == nullptr) return CL_SUCCESS;
  // What it names may be gone: then the launch as it is is the driver's affair.
  if (job->plan && !HoldArguments(*kernel, job.get())) {
    splitter_->MakeWhole(job.get(), job->first.items + job->plan->remaining());
  }
  *taken = true;
  if (hold) splitter_->Hold(job.get());
  // Alone, what is measured one by one may be long ago, or was quick.
  if (const OpenSpeed& speed = kernel->split.open->speed; speed.known() && queue->gate->UnitNs() == 0) {
    job->open_estimate = static_cast<uint64_t>(
        std::clamp(speed.ns_per_item() * static_cast<double>(job->first.items), 1.0, kMostEstimateNs));
  }
  job->seq = call.seq;
  job->opcode = call.opcode;
  job->queue_id = message.queue;
  job->event_id = message.event;

  splitter_->Settle(*queue);
  int32_t status = CL_SUCCESS;
  const auto user_event = [&](Handle<cl_event>* event) {
    if (status == CL_SUCCESS) *event = user_events_->Create(queue->context.get(), CL_DEVICE_NOT_AVAILABLE, &status);
  };
  if (job->plan) user_event(&job->end);
  // Whoever has passed the gate must be able to run: one that waits for a split launch before it would keep the gate
  // from that one's other parts. Out of order, a barrier can be in the way.
  // And parts run beside the guest's queue, so all before them must have ended.
  using Ahead = Queue::Ahead;
  const bool alone = queue->in_order && message.wait_list.empty();
  const bool idle = alone && (job->plan || queue->ahead != Ahead::kNothing) && IsComplete(queue->last);
  if (idle) queue->ahead = Ahead::kNothing;
  std::shared_ptr<ReadyGroup> group;
  if (queue->ahead != Ahead::kUnknown) {
    queue->group.reset();
  } else if (alone && !job->plan && queue->group != nullptr) {
    if (queue->group->IsWithLane()) {
      queue->ahead = Ahead::kLane;
      queue->group.reset();
    } else {
      group = queue->group;
    }
  }
  const bool ready_now = job->plan ? idle : alone && queue->ahead != Ahead::kUnknown;
  const bool open = ready_now && queue->ahead == Ahead::kNothing && !job->held && splitter_->Trusts(*job) &&
                    queue->gate->TryEnter(job->first_estimate);
  const bool has_ready = !open && !ready_now && group == nullptr;
  if (!open || job->plan) Splitter::NoteHeld(*queue);
  if (has_ready || (open && job->plan)) {
    queue->ahead = Ahead::kUnknown;
    queue->group.reset();
  } else if (!open && group == nullptr) {
    queue->ahead = Ahead::kLane;
  }
  if (!open) user_event(&job->grant);

  Handle<cl_event> event, ready;
  if (status != CL_SUCCESS) {
    command.Require(false, status, "no user event");
  } else {
    status = command.Call(
        [&](cl_command_queue native, cl_uint count, const cl_event* wait_list, cl_event* made) {
          cl_event first = nullptr, marker = nullptr, grant = job->grant.get();
          cl_int result = CL_SUCCESS;
          if (has_ready) {
            result = EnqueueNothing(*queue, count, wait_list, &marker);
            ready.Reset(marker);
          }
          if (result == CL_SUCCESS && job->plan) {
            result = Splitter::EnqueuePart(*job, job->first, kernel->native.get(), native, open ? count : 1,
                                           open ? wait_list : &grant, &first);
          } else if (result == CL_SUCCESS) {
            size_t offset[3], global[3], local[3];
            for (uint32_t d = 0; d < 3; ++d) {
              offset[d] = shape.offset[d];
              global[d] = shape.global[d];
              local[d] = shape.local[d];
            }
            result = clEnqueueNDRangeKernel(native, kernel->native.get(), message.work_dim, offset, global,
                                            message.local.empty() ? nullptr : local, open ? count : 1,
                                            open ? wait_list : &grant, &first);
          }
          job->first_event.Reset(first);
          if (result != CL_SUCCESS) return result;
          if (!job->plan) {
            clRetainEvent(first);
            *made = first;
            return CL_SUCCESS;
          }
          const cl_event end = job->end.get();
          return EnqueueNothing(*queue, 1, &end, made);
        },
        &event, 2, nullptr, /*gated=*/true);
  }
  if (status != CL_SUCCESS) {
    // Nothing waits for these, unless only the end could not be enqueued.
    if (job->grant && !job->first_event) user_events_->Forget(job->grant.get());
    if (job->grant && job->first_event) user_events_->Set(job->grant.get(), status);
    if (job->end) user_events_->Forget(job->end.get());
    if (open) queue->gate->Leave(job->first_estimate, 0);
    return command.Fail();
  }

  if (!open || job->plan) queue->in_lane.fetch_add(1, std::memory_order_relaxed);
  if (kernel_trace_->Wanted()) [[unlikely]] {
    kernel_trace_->Watch(job->first_event.get(), kernel->native.get(), message.queue.index());
  }
  // The event of a launch that runs whole is its own end.
  const bool needs_end = job->plan || open || has_ready || group != nullptr;
  Completion* end = command.Accept(std::move(event), needs_end);
  if (end != nullptr && needs_end) {
    end->action = &Splitter::OnEnd;
    end->context = Splitter::Context(job);
  }
  const bool has_start = has_ready || (open && job->plan);
  Completion* start = nullptr;
  if (has_start) {
    auto made = std::make_shared<ReadyGroup>();
    made->jobs.push_back(job);
    start = completions_->New(has_ready ? ready.get() : job->first_event.get(), queue, queue->number);
    start->action = &Splitter::OnReady;
    start->context = Splitter::Context(made);
    if (queue->in_order) queue->group = std::move(made);
  }
  if (end != nullptr) completions_->Arm(end);
  if (start != nullptr) completions_->Arm(start);
  if (!open && !has_ready && (group == nullptr || !group->Add(job))) {
    queue->gate->Announce(job->first_estimate);  // Waking the scheduler and waking the lane take their time together.
    splitter_->Start(job);
  }
  return CL_SUCCESS;
}

}  // namespace hawser::server::ocl
