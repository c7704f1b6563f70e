// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/splitter.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "scheduler/core/thread_group.h"
#include "server/backends/opencl/slicing/carry.h"
#include "server/backends/opencl/slicing/carry_probe.h"
#include "server/worker/early_leave.h"
#include "server/worker_settings.h"
#include "wire/short_slice.h"

namespace hawser::server::ocl {
namespace {

using scheduler::KernelKey;
using slicing::KernelTraits;
using slicing::LaunchShape;
using slicing::SlicePart;
using slicing::SlicePlan;

// So that the device finds the next part at once.
constexpr size_t kUnderWay = 2;
// So many whole launches; the gate bounds their time.
constexpr size_t kWholeUnderWay = 256;
// A launch is never cut into more: each part costs some microseconds.
constexpr uint64_t kMostParts = 4096;
// Work-items that one compute unit is taken to run at once, where the settings do not say.
constexpr uint64_t kCoresOfUnit = 64;
// A session's log is not for guests to fill.
constexpr uint32_t kMostTold = 64;
// Taken for the length of launches of which nothing is known yet, so that not too many are under way.
constexpr uint64_t kUnknownNs = 250'000;
// How often at most the history is written.
constexpr std::chrono::milliseconds kBetweenSaves{200};

cl_device_id DeviceOf(cl_command_queue queue) {
  cl_device_id device = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, nullptr);
  return device;
}

std::string NameOf(cl_device_id device) {
  std::string all;
  for (const cl_device_info param : {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION}) {
    char text[256] = {};
    clGetDeviceInfo(device, param, sizeof(text) - 1, text, nullptr);
    all.append(text).append("\n");
  }
  return all;
}

bool IsUniform(const LaunchShape& shape) {
  for (uint32_t d = 0; d < shape.dimensions; ++d) {
    if (shape.local[d] != 0 && shape.global[d] % shape.local[d] != 0) return false;
  }
  return true;
}

}  // namespace

int32_t WaitFor(cl_event event) {
  const cl_int status = clWaitForEvents(1, &event);
  cl_int execution = CL_COMPLETE;
  clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution, nullptr);
  return execution < 0 ? execution : status;
}

uint64_t TimeOf(cl_event event) {
  cl_ulong start = 0, end = 0;
  if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, nullptr) != CL_SUCCESS ||
      clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) != CL_SUCCESS) {
    return 0;
  }
  return end > start ? end - start : 0;
}

Splitter::Splitter(SplitSettings settings, LaunchGates* gates, SessionStatsPage& stats, Completions& completions,
                   UserEvents& user_events, KernelTrace& trace, Log log)
    : settings_(std::move(settings)),
      all_gates_(gates),
      findings_(stats.findings),
      completions_(completions),
      user_events_(user_events),
      trace_(trace),
      log_(std::move(log)),
      alarms_(kOpenClSplit.variable, log_, &stats.split_alarms) {
  if (settings_.history.empty()) return;
  if (const wire::Status status = history_.Load(settings_.history); !status.ok()) log_("warn", status.text());
}

Splitter::~Splitter() {
  for (LaunchGate* gate : gates_) {
    gate->SetClosed(nullptr);
    gate->SetDrain(nullptr);
  }
  for (auto& [device, lane] : lanes_) {
    {
      const std::lock_guard<std::mutex> lock(lane->mutex);
      lane->stop = true;
    }
    lane->changed.notify_all();
    if (lane->thread.joinable()) lane->thread.join();
  }
}

bool Splitter::CanCarry(cl_context context, cl_device_id device) {
  const std::lock_guard<std::mutex> lock(devices_mutex_);
  const auto found = can_carry_.find(device);
  if (found != can_carry_.end()) return found->second;
  const uint64_t key = slicing::CarryKey(device);
  const std::optional<bool> known = findings_.Find(key);
  const bool works = known ? *known : slicing::CarryWorks(context, device);
  findings_.Add(key, works);
  if (!works)
    log_("warn", "kernels that ask for their work-group are not split on this device: it has no offset carry");
  can_carry_[device] = works;
  return works;
}

uint64_t Splitter::Cores(cl_device_id device) {
  if (settings_.cores != 0) return settings_.cores;
  cl_uint units = 1;
  clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, nullptr);
  return units * kCoresOfUnit;
}

uint64_t Splitter::Estimate(const std::optional<KernelKey>& key, uint64_t items) {
  return (key ? history_.Estimate(*key, items) : std::nullopt).value_or(kUnknownNs);
}

uint64_t Splitter::PartItems(const SplitJob& job) {
  if (settings_.size != 0) return settings_.size;
  const LaunchGate& gate = *job.queue->gate;
  const bool is_known = job.key && job.plan && !job.plan->done();
  const uint64_t grain = is_known ? history_.Estimate(*job.key, job.plan->NextItems(1)).value_or(0) : 0;
  const uint64_t unit = gate.PieceNs(grain);
  if (unit == 0) return 0;
  if (unit == LaunchGate::kWhole) return UINT64_MAX;
  const double rate = job.key ? history_.Rate(*job.key) : 0;
  if (rate > 0) return static_cast<uint64_t>(std::clamp(static_cast<double>(unit) * rate, 1.0, 1e18));
  return std::max<uint64_t>(1, scheduler::FirstGroup(Cores(job.device), settings_.beta, gate.Tenants()));
}

const KernelKey& Splitter::KeyOf(KernelSplit* split, cl_device_id device) {
  if (split->key_device != device) {
    // Without the program's text only the name tells kernels apart; good enough to learn from launch to launch.
    split->key = KernelKey::Of(NameOf(device), split->program != nullptr ? split->program->hash : "", split->name);
    split->key_device = device;
  }
  return split->key;
}

void Splitter::Tell(KernelSplit* split, const std::string& how) {
  if (split->was_told || told_ >= kMostTold) return;
  split->was_told = true;
  ++told_;
  log_("info", "kernel '" + OneLine(split->name.substr(0, 128)) + "' " + how);
}

// A local size where the guest gave none; false when the launch must run whole because the driver's choice may show.
bool Splitter::Local(const KernelTraits& traits, cl_kernel kernel, cl_device_id device, LaunchShape* shape) {
  size_t required[3] = {0, 0, 0};
  if (clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof(required), required,
                               nullptr) == CL_SUCCESS &&
      required[0] != 0) {
    for (uint32_t d = 0; d < shape->dimensions; ++d) shape->local[d] = required[d];
    return true;
  }
  if (traits.sees_local_size) return false;
  if (!traits.needs_carry) return true;  // Each part gets what the driver chooses.
  shape->local[0] = 64;
  while (shape->global[0] % shape->local[0] != 0) shape->local[0] /= 2;
  for (uint32_t d = 1; d < shape->dimensions; ++d) shape->local[d] = 1;
  return shape->local[0] >= 8;  // Smaller ones cost more than is won.
}

std::shared_ptr<SplitJob> Splitter::Prepare(cl_kernel native, KernelSplit* split, const std::shared_ptr<Queue>& queue,
                                            const LaunchShape& guest_shape) {
  // Without fixed sizes this is asked only when the gate was found not to be open.
  const bool contended = settings_.size == 0 || queue->gate->UnitNs() != 0;
  auto job = std::make_shared<SplitJob>();
  job->owner = this;
  job->queue = queue;
  job->device = DeviceOf(queue->native.get());
  job->dimensions = guest_shape.dimensions;
  const std::optional<SlicePlan> whole = SlicePlan::Plain(guest_shape);
  // Runs whole, unless what follows finds more.
  const auto as_it_is = [&]() -> std::shared_ptr<SplitJob> {
    if (!contended) return nullptr;
    MakeWhole(job.get(), whole ? whole->total() : 1);
    return job;
  };
  // Sizes that are zero or overflow: if the driver takes them all the same, it is a launch like others.
  if (!whole) return as_it_is();
  job->first.items = whole->total();
  job->key = KeyOf(split, job->device);
  if (!settings_.splits) return as_it_is();
  const KernelTraits* traits = split->traits;
  if (traits == nullptr) {
    Tell(split, "runs whole: its program was not built from source here");
    return as_it_is();
  }
  if (!traits->may_split) {
    Tell(split, "runs whole: " + traits->reason);
    return as_it_is();
  }
  if (traits->needs_carry && !split->program->carries) {
    Tell(split, "runs whole: the launch's true geometry cannot be given to it");
    return as_it_is();
  }

  if (alarms_.IsRaised(*job->key)) return as_it_is();

  LaunchShape shape = guest_shape;
  const uint64_t fewest = whole->total() / kMostParts;
  const uint64_t items = std::max(PartItems(*job), fewest);
  if (items == 0 || items >= whole->total()) return as_it_is();
  if (shape.local[0] == 0 && !Local(*traits, native, job->device, &shape)) return as_it_is();
  // Smaller work-groups at the end: whether the device takes them is seen in the last part only, too late.
  if (!IsUniform(shape)) return as_it_is();
  job->carried = traits->needs_carry;
  // Tests may ask for parts so small that every launch has several.
  const uint64_t wave = settings_.size != 0 && settings_.size < slicing::kWave ? 1 : slicing::kWave;
  job->plan = job->carried ? SlicePlan::Carried(shape, items, wave) : SlicePlan::Plain(shape, wave);
  if (!job->plan) return as_it_is();
  job->has_local = shape.local[0] != 0;
  for (uint32_t d = 0; d < shape.dimensions && job->has_local; ++d) job->local[d] = shape.local[d];
  job->first = job->plan->Next(items);
  if (job->plan->done()) return as_it_is();
  job->first_estimate = Estimate(job->key, job->first.items);
  job->first_expected = Expected(job->key, job->first.items);

  cl_int status = CL_SUCCESS;
  if (queue->version < 21) return as_it_is();
  job->kernel = Handle<cl_kernel>(clCloneKernel(native, &status));
  if (status != CL_SUCCESS) return as_it_is();
  if (!queue->parts) {
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    queue->parts = Handle<cl_command_queue>(
        clCreateCommandQueueWithProperties(queue->context.get(), job->device, properties, &status));
    if (status != CL_SUCCESS) return as_it_is();
  }
  job->name = split->name;
  Tell(split, job->carried ? "is split; it is given the launch's true geometry" : "is split");
  return job;
}

void Splitter::MakeWhole(SplitJob* job, uint64_t items) {
  job->plan.reset();
  job->first.items = items;
  job->first_estimate = Estimate(job->key, items);
}

cl_int Splitter::EnqueuePart(const SplitJob& job, const SlicePart& part, cl_kernel kernel, cl_command_queue queue,
                             cl_uint count, const cl_event* wait_list, cl_event* event) {
  size_t offset[3], global[3];
  for (int d = 0; d < 3; ++d) {
    offset[d] = part.offset[d];
    global[d] = part.global[d];
  }
  if (job.carried) {
    offset[2] +=
        slicing::CarryWord(job.plan->axis(), job.dimensions, part.first_group, job.plan->groups(job.plan->axis()));
  }
  return clEnqueueNDRangeKernel(queue, kernel, job.carried ? 3 : job.dimensions, offset, global,
                                job.has_local ? job.local : nullptr, count, wait_list, event);
}

bool Splitter::OnReady(Completion& completion, int32_t status) {
  const std::unique_ptr<std::shared_ptr<ReadyGroup>> context(
      static_cast<std::shared_ptr<ReadyGroup>*>(completion.context));
  ReadyGroup& group = **context;
  std::shared_ptr<SplitJob> first;
  {
    const std::lock_guard<std::mutex> lock(group.mutex);
    first = group.jobs.front();
  }
  if (!first->grant) {
    first->owner->Leave(*first, first->first_event.get(), first->first.items, first->first_estimate,
                        status == CL_COMPLETE);
  }
  first->owner->Release(group, status < 0 ? status : CL_SUCCESS);
  return false;
}

bool ReadyGroup::Add(const std::shared_ptr<SplitJob>& job) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!fired) jobs.push_back(job);
  job->start = status;
  return !fired;
}

bool ReadyGroup::IsWithLane() {
  const std::lock_guard<std::mutex> lock(mutex);
  return fired && status == CL_SUCCESS;
}

void Splitter::Release(ReadyGroup& group, int32_t status) {
  std::vector<std::shared_ptr<SplitJob>> jobs;
  size_t passed = 0;
  {
    const std::lock_guard<std::mutex> lock(group.mutex);
    group.fired = true;
    group.status = status;
    jobs.swap(group.jobs);
    // Alone the gate is open: no lane needs to be woken.
    if (status == CL_SUCCESS && !jobs.empty() && jobs.front()->queue->gate->UnitNs() == 0) {
      while (passed < jobs.size() && PassNow(*jobs[passed])) ++passed;
    }
    for (size_t i = passed; i < jobs.size(); ++i) {
      jobs[i]->start = status;
      Push(jobs[i]);
    }
  }
  for (size_t i = 0; i < passed; ++i) {
    LetGo(*jobs[i]);
    user_events_.Set(jobs[i]->grant.get(), CL_COMPLETE);
  }
  if (passed != 0) clFlush(jobs[0]->queue->native.get());
}

bool Splitter::PassNow(SplitJob& job) {
  if (job.plan || !job.grant) return false;
  job.first_estimate = EstimateHeld(job);
  if (!job.queue->gate->TryEnter(job.first_estimate)) return false;
  job.passed.store(true, std::memory_order_release);
  return true;
}

uint64_t Splitter::EstimateHeld(const SplitJob& job) {
  // Of what is not known two are under way at a time.
  const bool known = job.key && history_.Rate(*job.key) > 0;
  const bool bounded = job.queue->bounded;
  if (!known && bounded && job.open_estimate == 0) return job.queue->gate->OpenCapNs() / 2;
  return std::max(known || !bounded ? Estimate(job.key, job.first.items) : 0, job.open_estimate);
}

bool Splitter::OnEnd(Completion& completion, int32_t status) {
  const std::unique_ptr<std::shared_ptr<SplitJob>> context(static_cast<std::shared_ptr<SplitJob>*>(completion.context));
  SplitJob& job = **context;
  if (!job.end) {
    // It ran whole, with an open gate: nobody else will say so.
    if (!job.grant || job.passed.load(std::memory_order_acquire)) {
      job.owner->Leave(job, job.first_event.get(), job.first.items, job.first_estimate, status == CL_COMPLETE);
    }
    return false;
  }
  if (status < 0) {
    const int32_t error = job.error.load(std::memory_order_relaxed);
    if (error == 0) return false;
    completion.owner().Conclude(&completion, error);
    return true;
  }
  completion.started = Handle<cl_event>::Share(job.first_event.get());
  completion.ended = Handle<cl_event>::Share(job.last.get());
  return false;
}

void Splitter::Push(std::shared_ptr<SplitJob> job) {
  Lane* lane = nullptr;
  {
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    std::shared_ptr<Lane>& place = lanes_[job->device];
    if (place == nullptr) {
      place = std::make_shared<Lane>();
      place->gate = job->queue->gate;
      // Joined before the splitter ends; whoever holds the lane beyond that uses only its mutex.
      place->thread = std::thread([this, made = place] { Run(made); });
    }
    lane = place.get();
  }
  {
    const std::lock_guard<std::mutex> lock(lane->mutex);
    lane->jobs.push_back(std::move(job));
  }
  lane->changed.notify_all();
}

void Splitter::Leave(const SplitJob& job, cl_event event, uint64_t items, uint64_t estimate, bool good) {
  const uint64_t time = good ? TimeOf(event) : 0;
  if (job.plan) {
    Judge(job, items, job.first_expected, time);
  } else if (job.key) {
    history_.Learn(*job.key, items, time);
  }
  job.queue->gate->Leave(estimate, time);
}

void Splitter::Watch(Lane& lane, SplitJob& job, cl_event event, uint64_t items, uint64_t estimate, bool entered) {
  auto part = std::make_unique<UnderWay>();
  part->owner = this;
  part->lane = &lane;
  part->job = job.plan ? &job : nullptr;
  part->key = job.key;
  part->event = Handle<cl_event>::Share(event);
  part->items = items;
  part->estimate = estimate;
  part->expected = entered ? Expected(job.key, items) : 0;
  part->entered = entered;
  part->enqueued_at = Clock::now();
  const auto begins =
      lane.parts.empty() ? part->enqueued_at : std::max(part->enqueued_at, lane.parts.back()->ends_about);
  part->ends_about = begins + std::chrono::nanoseconds(estimate);
  if (!lane.parts.empty()) {
    const std::lock_guard<std::mutex> lock(lane.mutex);
    part->behind = !lane.parts.back()->ended && !lane.parts.back()->left_early;
  }
  lane.parts.push_back(std::move(part));
  UnderWay* const watched = lane.parts.back().get();
  if (clSetEventCallback(event, CL_COMPLETE, &Splitter::OnPartEnd, watched) != CL_SUCCESS) {
    const int32_t status = WaitFor(event);
    OnPartEnd(event, status == CL_SUCCESS ? CL_COMPLETE : status, watched);
  }
}

void CL_CALLBACK Splitter::OnPartEnd(cl_event event, cl_int status, void* context) {
  UnderWay& part = *static_cast<UnderWay*>(context);
  Splitter& splitter = *part.owner;
  const uint64_t time = status == CL_COMPLETE ? TimeOf(event) : 0;
  Lane& lane = *part.lane;
  bool shared = false;
  if (part.behind) {
    // Then the next tenant was on the device with it. The longer one before it shows better how fast the kernel is.
    const std::lock_guard<std::mutex> lock(lane.mutex);
    shared = part.left_early;
  }
  if (part.job != nullptr) {
    splitter.Judge(*part.job, shared ? 0 : part.items, part.expected, time);
  } else if (part.key && !shared) {
    splitter.history_.Learn(*part.key, part.items, time);
  }
  const std::lock_guard<std::mutex> lock(lane.mutex);
  if (!part.entered) {
    part.job->owed += time;
  } else if (part.left_early) {
    lane.gate->LeaveLate(part.estimate, time);
  } else {
    lane.gate->Leave(part.estimate, time);
  }
  part.status = status < 0 ? status : CL_SUCCESS;
  part.ended_at = Clock::now();
  part.took = time;
  part.ended = true;  // From here on the lane may throw it away.
  lane.changed.notify_all();
}

bool Splitter::AwaitLeft(Lane& lane, UnderWay& part) {
  const std::chrono::nanoseconds early(EarlyRestNs(lane.gate->EarlyNs(), part.estimate));
  std::unique_lock<std::mutex> lock(lane.mutex);
  const auto over = [&part] { return part.ended || part.left_early; };
  if (early.count() == 0) {
    lane.changed.wait(lock, over);
  } else if (!lane.changed.wait_until(lock, part.ends_about - early, over)) {
    if (lane.gate->Ends()) {
      part.left_early = true;
      lane.gate->LeaveEarly(part.estimate);
    } else {
      lane.changed.wait(lock, over);
    }
  }
  return part.ended;
}

void Splitter::AwaitFirst(Lane& lane, SplitJob* job, int32_t* status) {
  const std::unique_ptr<UnderWay> part = std::move(lane.parts.front());
  lane.parts.pop_front();
  {
    std::unique_lock<std::mutex> lock(lane.mutex);
    lane.changed.wait(lock, [&part] { return part->ended; });
  }
  // The next one begins where this one has ended.
  if (!lane.parts.empty()) {
    UnderWay& next = *lane.parts.front();
    const bool alike = part->key && next.key == part->key;
    const uint64_t rest = alike ? RevisedNs(next.estimate, part->estimate, part->took) : next.estimate;
    next.ends_about = std::max(next.enqueued_at, part->ended_at) + std::chrono::nanoseconds(rest);
  }
  if (job == nullptr || part->job != job) return;
  job->last = std::move(part->event);
  if (part->status < 0 && *status == CL_SUCCESS) *status = part->status;
}

bool Splitter::Enter(Lane& lane, SplitJob& job, uint64_t estimate, int32_t* status) {
  if (stopping_) return false;
  if (lane.gate->TryEnter(estimate)) return true;
  return AwaitEnd(lane, job, estimate, status) && lane.gate->Enter(estimate);
}

bool Splitter::AwaitEnd(Lane& lane, SplitJob& job, uint64_t estimate, int32_t* status) {
  // What is under way is left before the gate is waited for: the grant may depend on that. That more will come is said
  // before.
  lane.gate->Announce(estimate);
  while (lane.parts.size() > 1) AwaitFirst(lane, &job, status);
  if (!lane.parts.empty() && AwaitLeft(lane, *lane.parts.front())) AwaitFirst(lane, &job, status);
  return *status == CL_SUCCESS && !stopping_;
}

bool Splitter::EnterPart(Lane& lane, SplitJob& job, uint64_t* estimate, const LaunchGate::Resize& resize,
                         int32_t* status) {
  if (stopping_) return false;
  if (lane.gate->TryEnterPart(estimate, resize)) return true;
  return AwaitEnd(lane, job, *estimate, status) && lane.gate->EnterPart(estimate, resize);
}

void Splitter::Run(const std::shared_ptr<Lane>& shared) {
  (void)wire::TakeShortSlices();
  (void)wire::TakeExactTimers();
  Lane& lane = *shared;
  std::unique_lock<std::mutex> lock(lane.mutex);
  for (;;) {
    lane.busy = !lane.parts.empty();
    lane.changed.notify_all();
    while (!lane.stop && lane.jobs.empty()) {
      if (!lane.parts.empty()) {
        // Launches that run whole end by themselves; they are only thrown away here.
        if (!lane.parts.front()->ended) {
          lane.changed.wait(lock);
          continue;
        }
        lane.parts.pop_front();
        lane.busy = !lane.parts.empty();
        if (!lane.busy) lane.changed.notify_all();
      } else if (settings_.history.empty() || !history_.changed()) {
        lane.changed.wait(lock);
      } else if (lane.changed.wait_for(lock, kBetweenSaves) == std::cv_status::timeout) {
        lock.unlock();
        SaveHistory();
        lock.lock();
      }
    }
    if (lane.jobs.empty()) return;
    const std::shared_ptr<SplitJob> job = std::move(lane.jobs.front());
    lane.jobs.pop_front();
    lane.busy = true;
    lock.unlock();
    RunJob(shared, *job);
    lock.lock();
  }
}

void Splitter::RunJob(const std::shared_ptr<Lane>& shared, SplitJob& job) {
  Lane& lane = *shared;
  int32_t status = job.start;
  const char* what = "the first part";
  if (job.grant) {
    if (job.resume) AwaitResume(shared, job);
    if (job.held || job.open_estimate != 0) job.first_estimate = EstimateHeld(job);
    const bool entered = status == CL_SUCCESS && Enter(lane, job, job.first_estimate, &status);
    if (!entered && status == CL_SUCCESS) status = CL_DEVICE_NOT_AVAILABLE;
    if (!job.plan) LetGo(job);
    user_events_.Set(job.grant.get(), entered ? CL_COMPLETE : status);
    clFlush(job.queue->native.get());
    if (entered) Watch(lane, job, job.first_event.get(), job.first.items, job.first_estimate);
  } else {
    job.last = Handle<cl_event>::Share(job.first_event.get());  // It is complete, and has left the gate.
  }
  if (!job.plan) {
    // Nobody waits for it here.
    while (lane.parts.size() > kWholeUnderWay) AwaitFirst(lane, nullptr, nullptr);
    return;
  }
  const bool is_first = !lane.parts.empty() && lane.parts.back()->job == &job;
  const bool is_stuck = is_first && !Trusts(job) && IsStuck(lane, *lane.parts.back(), job);
  while (!job.plan->done() && status == CL_SUCCESS) {
    uint64_t items = 0;
    const auto resize = [&] {
      items = PartItems(job);
      if (items == 0 || alarms_.IsRaised(*job.key)) items = job.plan->remaining();  // Alone by now; or never again.
      items = std::max(items, job.plan->total() / kMostParts);
      return Estimate(job.key, job.plan->NextItems(items));
    };
    uint64_t estimate = resize();
    if (!is_stuck && !EnterPart(lane, job, &estimate, std::ref(resize), &status)) {
      if (status != CL_SUCCESS) break;
      status = CL_DEVICE_NOT_AVAILABLE;
      what = "the session ends; a part";
      break;
    }
    const SlicePart part = job.plan->Next(items);
    cl_event event = nullptr;
    status = EnqueuePart(job, part, job.kernel.get(), job.queue->parts.get(), 0, nullptr, &event);
    if (status != CL_SUCCESS) {
      if (!is_stuck) lane.gate->Leave(estimate, 0);
      what = "a part";
      break;
    }
    clFlush(job.queue->parts.get());
    Watch(lane, job, event, part.items, estimate, !is_stuck);
    if (trace_.Wanted()) [[unlikely]] {
      trace_.Watch(event, job.kernel.get(), job.queue_id.index());
    }
    clReleaseEvent(event);
    while (lane.parts.size() >= kUnderWay) AwaitFirst(lane, &job, &status);
  }
  while (!lane.parts.empty()) AwaitFirst(lane, &job, &status);
  if (job.end) Finish(job, status, what);
  if (is_stuck) Pay(lane, job);
}

void Splitter::Finish(SplitJob& job, int32_t status, const char* what) {
  job.error.store(status, std::memory_order_relaxed);
  if (status != CL_SUCCESS && job.start == CL_SUCCESS) {
    // What failed was enqueued long after the guest's call returned.
    opencl::CommandFailed notice;
    notice.seq = job.seq;
    notice.opcode = job.opcode;
    notice.status = status;
    notice.queue = job.queue_id;
    const std::string text = std::string("EnqueueNDRangeKernel, split: ") + what + " failed";
    notice.text = text;
    completions_.replies().Notify(notice, true);
  }
  // What the arguments named goes before the guest hears that it may.
  job.kernel.Reset();
  job.memory.clear();
  job.samplers.clear();
  LetGo(job);
  user_events_.Set(job.end.get(), status == CL_SUCCESS ? CL_COMPLETE : status);
}

void Splitter::SaveHistory() {
  const std::lock_guard<std::mutex> lock(save_mutex_);
  if (const wire::Status status = history_.Save(settings_.history); !status.ok()) log_("warn", status.text());
}

bool Splitter::Stop(std::chrono::steady_clock::time_point deadline) {
  stopping_ = true;
  for (LaunchGate* gate : gates_) gate->Cancel();
  bool idle = true;
  std::vector<Lane*> lanes;
  {
    const std::lock_guard<std::mutex> lock(lanes_mutex_);
    for (auto& [device, lane] : lanes_) lanes.push_back(lane.get());
  }
  for (Lane* lane : lanes) {
    std::unique_lock<std::mutex> held(lane->mutex);
    lane->changed.notify_all();  // It looks at stopping_.
    idle = lane->changed.wait_until(held, deadline, [lane] { return !lane->busy && lane->jobs.empty(); }) && idle;
  }
  if (idle && !settings_.history.empty() && history_.changed()) SaveHistory();
  return idle;
}

}  // namespace hawser::server::ocl
