// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/waits.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "wire/short_slice.h"

namespace hawser::server::cuda_backend {
namespace {

/// Looks before a lane sleeps in the driver: short work is over by then.
constexpr int kLooks = 40;

}  // namespace

CUresult EventPool::Take(CUevent* event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      *event = free_.back();
      free_.pop_back();
      return CUDA_SUCCESS;
    }
  }
  return driver_->cuEventCreate(event, flags_);
}

void EventPool::Return(CUevent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!retired_) free_.push_back(event);
}

void EventPool::Retire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  retired_ = true;
  free_.clear();
}

std::shared_ptr<const PooledEvent> PooledEvent::Take(const std::shared_ptr<EventPool>& pool) {
  CUevent event = nullptr;
  if (pool->Take(&event) != CUDA_SUCCESS) return nullptr;
  return std::shared_ptr<const PooledEvent>(new PooledEvent(pool, event));
}

Waits::Waits(const DriverTable* driver, bool calls_back, std::function<void()> drain_output, Observer observer)
    : driver_(driver),
      calls_back_(calls_back && driver->cuStreamAddCallback != nullptr),
      drain_output_(std::move(drain_output)),
      observer_(std::move(observer)) {
  root_->waits = this;
}

Waits::~Waits() {
  {
    const std::unique_lock<std::shared_mutex> lock(root_->mutex);
    root_->waits = nullptr;
  }
  std::vector<Lane*> lanes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    for (const std::unique_ptr<Lane>& lane : lanes_) lanes.push_back(lane.get());
  }
  for (Lane* lane : lanes) {
    std::deque<Job> dropped;
    {
      const std::lock_guard<std::mutex> lock(lane->mutex);
      lane->stop = true;
      dropped.swap(lane->jobs);
    }
    lane->work.notify_all();
  }
  for (Lane* lane : lanes) {
    if (lane->thread.joinable()) lane->thread.join();
  }
}

Waits::LaneHandle Waits::Acquire() {
  Lane* lane = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      lane = idle_.back();
      idle_.pop_back();
    } else if (lanes_.size() >= kMaxLanes) {
      return LaneHandle(lanes_[next_shared_++ % lanes_.size()].get(), [](Lane*) {});
    } else {
      lanes_.push_back(std::make_unique<Lane>());
      lane = lanes_.back().get();
      lane->thread = std::thread([this, lane] { Run(*lane); });
    }
  }
  // Streams of a broken context outlive the rest.
  return LaneHandle(lane, [root = root_](Lane* back) {
    const std::shared_lock<std::shared_mutex> lock(root->mutex);
    if (root->waits != nullptr) root->waits->GiveBack(back);
  });
}

void Waits::GiveBack(Lane* lane) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!stop_) idle_.push_back(lane);
}

void Waits::Count(Job& job) {
  job.ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard<std::mutex> lock(count_mutex_);
  const auto at = std::find_if(counts_.begin(), counts_.end(), [&](const auto& c) { return c.first == job.context; });
  if (at == counts_.end()) {
    counts_.emplace_back(job.context, 1);
  } else {
    ++at->second;
  }
}

void Waits::Uncount(CUcontext of) {
  {
    const std::lock_guard<std::mutex> lock(count_mutex_);
    for (auto& [context, count] : counts_) {
      if (context == of && count > 0) --count;
    }
  }
  count_changed_.notify_all();
}

void Waits::Submit(Lane& lane, Job job) {
  Count(job);
  if (job.lands) {
    landing_.fetch_add(1, std::memory_order_acq_rel);
    const std::lock_guard<std::mutex> lock(board_mutex_);
    board_.push_back({job.ticket, job.context, job.event});
  }
  {
    const std::lock_guard<std::mutex> lock(lane.mutex);
    if (lane.stop) return;
    lane.jobs.push_back(std::move(job));
  }
  lane.work.notify_one();
}

CUresult Waits::After(StreamLane* where, CUstream stream, const std::shared_ptr<EventPool>& events, bool lands,
                      Done done) {
  Job job;
  if (const CUresult result = events->Take(&job.event); result != CUDA_SUCCESS) return result;
  if (const CUresult result = driver_->cuEventRecord(job.event, stream); result != CUDA_SUCCESS) {
    events->Return(job.event);
    return result;
  }
  if (where->lane == nullptr) where->lane = Acquire();
  job.behind = where->Newest();
  job.context = events->context();
  job.events = events;
  job.lands = lands;
  job.done = std::move(done);
  Submit(*where->lane, std::move(job));
  return CUDA_SUCCESS;
}

CUresult Waits::Tell(StreamLane* where, CUstream stream, const std::shared_ptr<EventPool>& events, Done done) {
  // Where data is still to be handed over, somebody has to wait for that.
  if (!calls_back_ || !nothing_lands()) return After(where, stream, events, false, std::move(done));
  auto callback = std::make_unique<Callback>();
  callback->root = root_;
  callback->job.context = events->context();
  callback->job.done = std::move(done);
  callback->job.behind = where->Newest();
  Count(callback->job);
  const CUresult result = driver_->cuStreamAddCallback(stream, OnCallback, callback.get(), 0);
  if (result == CUDA_SUCCESS) {
    (void)callback.release();
  } else {
    Uncount(events->context());
  }
  return result;
}

void CUDA_CB Waits::OnCallback(CUstream, CUresult result, void* data) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  const std::shared_lock<std::shared_mutex> lock(callback->root->mutex);
  if (callback->root->waits != nullptr) callback->root->waits->Finish(callback->job, result);
}

void Waits::OnEvent(CUcontext context, CUevent event, std::shared_ptr<const void> owner, Done done, StreamLane* where) {
  Job job;
  job.context = context;
  job.event = event;
  job.owner = std::move(owner);
  job.done = std::move(done);
  if (where != nullptr) {
    if (where->lane == nullptr) where->lane = Acquire();
    return Submit(*where->lane, std::move(job));
  }
  job.borrowed = Acquire();
  Lane& lane = *job.borrowed;
  Submit(lane, std::move(job));
}

void Waits::Post(std::function<void()> function) {
  Job job;
  job.done = [function = std::move(function)](CUresult) { function(); };
  job.borrowed = Acquire();
  Lane& lane = *job.borrowed;
  Submit(lane, std::move(job));
}

void Waits::Drain(CUcontext context) {
  std::unique_lock<std::mutex> lock(count_mutex_);
  count_changed_.wait(lock, [&] {
    return std::none_of(counts_.begin(), counts_.end(), [&](const auto& c) { return c.first == context && c.second; });
  });
}

void Waits::Run(Lane& lane) {
  (void)wire::TakeShortSlices();
  // What a lane does is of no concern to a capture that is under way in the guest.
  if (driver_->cuThreadExchangeStreamCaptureMode != nullptr) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver_->cuThreadExchangeStreamCaptureMode(&mode);
  }
  CUcontext current = nullptr;
  for (;;) {
    Job job;
    {
      std::unique_lock<std::mutex> lock(lane.mutex);
      lane.work.wait(lock, [&] { return lane.stop || !lane.jobs.empty(); });
      if (lane.stop) return;
      job = std::move(lane.jobs.front());
      lane.jobs.pop_front();
    }
    const CUresult result = job.event != nullptr ? WaitFor(job, &current) : CUDA_SUCCESS;
    Finish(job, result);
  }
}

CUresult Waits::WaitFor(const Job& job, CUcontext* current) {
  if (*current != job.context) {
    if (const CUresult result = driver_->cuCtxSetCurrent(job.context); result != CUDA_SUCCESS) return result;
    *current = job.context;
  }
  for (int i = 0; i < kLooks; ++i) {
    const CUresult result = driver_->cuEventQuery(job.event);
    if (result == CUDA_SUCCESS) break;
    if (result != CUDA_ERROR_NOT_READY) return result;
    ::sched_yield();
  }
  // Also when it is complete: some drivers hand out what kernels printed only here.
  return driver_->cuEventSynchronize(job.event);
}

void Waits::AwaitLandings(uint64_t before) {
  if (nothing_lands()) return;
  std::unique_lock<std::mutex> lock(board_mutex_);
  landed_.wait(lock, [&] {
    return std::none_of(board_.begin(), board_.end(), [&](const Landing& landing) {
      if (landing.ticket >= before) return false;
      (void)driver_->cuCtxSetCurrent(landing.context);
      return driver_->cuEventQuery(landing.event) != CUDA_ERROR_NOT_READY;
    });
  });
}

bool Waits::NoneIsComplete(CUcontext current) {
  CUcontext now = current;
  const std::lock_guard<std::mutex> lock(board_mutex_);
  const bool none = std::none_of(board_.begin(), board_.end(), [&](const Landing& landing) {
    if (std::exchange(now, landing.context) != landing.context) (void)driver_->cuCtxSetCurrent(landing.context);
    return driver_->cuEventQuery(landing.event) != CUDA_ERROR_NOT_READY;
  });
  if (now != current) (void)driver_->cuCtxSetCurrent(current);
  return none;
}

void Waits::Finish(Job& job, CUresult result) {
  if (result == CUDA_SUCCESS) job.behind.NoteOver();
  if (!job.lands) AwaitLandings(job.ticket);
  if (drain_output_) drain_output_();
  if (observer_ && job.context != nullptr) observer_(job.context, result);
  job.done(result);
  job.done = nullptr;
  if (job.lands) {
    {
      const std::lock_guard<std::mutex> lock(board_mutex_);
      board_.remove_if([&](const Landing& landing) { return landing.ticket == job.ticket; });
    }
    landing_.fetch_sub(1, std::memory_order_acq_rel);
    landed_.notify_all();
  }
  if (job.events != nullptr) job.events->Return(job.event);
  job.events.reset();
  job.owner.reset();
  Uncount(job.context);
}

}  // namespace hawser::server::cuda_backend
