// SPDX-License-Identifier: Apache-2.0
// Waiting for the device, so that the executor never does.
//
// Who runs what
//   executor thread  After(), OnEvent(): leave a job behind what is enqueued now.
//   lane threads     each waits for the events of its jobs, one after the other, and calls what shall happen then.
// A stream that has waited for something keeps a lane of its own, so that nobody waits behind another stream; a wait
// for an event borrows one. Beyond kMaxLanes they share.
//   driver threads   where the driver calls back at no cost (the software device), Tell() needs no lane: who ends the
// work answers, and one hand-off less lies between the end and the guest.
//
// Order: a job may *land* data (hand it to the bulk channel, or put it into a reply). A job's `done` runs only after
// all data has landed that was enqueued earlier and whose event is complete: so a guest that learns of a completion
// finds that the data before it is on its way.
//
// Lock order: Root::mutex first; mutex_ and Lane::mutex are leaves but for board_mutex_, under which cuEventQuery is
// called.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_WAITS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_WAITS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

/// Events of one context, for reuse. Thread-safe.
class EventPool {
 public:
  EventPool(const DriverTable* driver, CUcontext context,
            unsigned flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC)
      : driver_(driver), context_(context), flags_(flags) {}

  /// On a thread whose current context is the pool's.
  CUresult Take(CUevent* event);
  void Return(CUevent event);
  /// The context is about to end, and all of its events with it.
  void Retire();
  CUcontext context() const { return context_; }

 private:
  const DriverTable* const driver_;
  const CUcontext context_;
  const unsigned flags_;
  std::mutex mutex_;
  bool retired_ = false;
  std::vector<CUevent> free_;
};

/// An event that goes back to its pool with its last owner.
class PooledEvent {
 public:
  /// Null when the driver makes none. On a thread whose current context is the pool's.
  static std::shared_ptr<const PooledEvent> Take(const std::shared_ptr<EventPool>& pool);
  ~PooledEvent() { pool_->Return(event_); }
  PooledEvent(const PooledEvent&) = delete;
  PooledEvent& operator=(const PooledEvent&) = delete;
  CUevent native() const { return event_; }

 private:
  PooledEvent(std::shared_ptr<EventPool> pool, CUevent event) : pool_(std::move(pool)), event_(event) {}

  const std::shared_ptr<EventPool> pool_;
  const CUevent event_;
};

class Waits {
 public:
  static constexpr size_t kMaxLanes = 64;
  using Done = std::function<void(CUresult)>;
  /// Hears of each result, on the lane's thread, before `done` does.
  using Observer = std::function<void(CUcontext, CUresult)>;

  class Lane;
  using LaneHandle = std::shared_ptr<Lane>;

  /// Launches of a stream that are over once what came behind them is; any thread may tell the stream.
  struct Progress {
    std::shared_ptr<std::atomic<uint64_t>> over;  ///< Of the first so many it is known. Null: nobody wants to know.
    uint64_t launches = 0;

    void NoteOver() const {
      if (over == nullptr) return;
      uint64_t known = over->load(std::memory_order_relaxed);
      while (known < launches && !over->compare_exchange_weak(known, launches, std::memory_order_relaxed)) {
      }
    }
  };

  /// Where a stream's jobs wait. Executor's.
  struct StreamLane {
    LaneHandle lane;
    const uint64_t* launches = nullptr;  ///< What the stream was given so far; the stream's. Null: not known.
    std::shared_ptr<std::atomic<uint64_t>> over = std::make_shared<std::atomic<uint64_t>>(0);

    Progress Newest() const { return launches != nullptr ? Progress{over, *launches} : Progress{}; }
  };

  /// `calls_back`: cuStreamAddCallback() costs less than a thread that waits, and when it calls, what kernels printed
  /// before is out.
  Waits(const DriverTable* driver, bool calls_back, std::function<void()> drain_output, Observer observer);
  /// Jobs that still wait are dropped; a thread that is within the driver is waited for.
  ~Waits();

  /// Runs done(result) once everything that is in the stream now is over. The stream's context is current. An error: it
  /// could not be enqueued, and `done` will not run.
  CUresult After(StreamLane* where, CUstream stream, const std::shared_ptr<EventPool>& events, bool lands, Done done);
  /// After() for a `done` that only sends an answer: it may run on a thread of the driver, and must neither call the
  /// driver nor wait for the device.
  CUresult Tell(StreamLane* where, CUstream stream, const std::shared_ptr<EventPool>& events, Done done);
  /// The same for an event that was recorded, which `owner` keeps alive. `where`: null: on a lane that it borrows.
  void OnEvent(CUcontext context, CUevent event, std::shared_ptr<const void> owner, Done done,
               StreamLane* where = nullptr);
  /// Runs `function` on a lane, after the data that landed before.
  void Post(std::function<void()> function);

  /// True when no data is still to be handed over of what is complete: then a completion that was seen before this call
  /// may be announced at once. `current`: the calling thread's context, which it stays.
  bool AllHandedOver(CUcontext current) { return nothing_lands() || NoneIsComplete(current); }
  /// Waits until no job of this context is left. The device must come to an end by itself.
  void Drain(CUcontext context);

 private:
  bool nothing_lands() const { return landing_.load(std::memory_order_acquire) == 0; }
  bool NoneIsComplete(CUcontext current);

  struct Job {
    CUcontext context = nullptr;
    CUevent event = nullptr;            ///< Null: nothing to wait for.
    std::shared_ptr<EventPool> events;  ///< Where the event goes back to; null: not ours.
    std::shared_ptr<const void> owner;
    bool lands = false;
    uint64_t ticket = 0;
    Progress behind;
    LaneHandle borrowed;  ///< Given back when the job is over.
    Done done;
  };
  struct Landing {
    uint64_t ticket = 0;
    CUcontext context = nullptr;
    CUevent event = nullptr;
  };

  /// What callbacks under way and lanes that are lent hold: they may outlive the rest.
  struct Root {
    std::shared_mutex mutex;  ///< Shared by callbacks while they run, and by who gives a lane back.
    Waits* waits = nullptr;   ///< Null: gone.
  };
  struct Callback {
    std::shared_ptr<Root> root;
    Job job;
  };

  static void CUDA_CB OnCallback(CUstream stream, CUresult result, void* data);
  /// Enters a job into the counts.
  void Count(Job& job);
  void Uncount(CUcontext context);
  LaneHandle Acquire();
  void GiveBack(Lane* lane);
  void Submit(Lane& lane, Job job);
  void Run(Lane& lane);
  CUresult WaitFor(const Job& job, CUcontext* current);
  void AwaitLandings(uint64_t before);
  void Finish(Job& job, CUresult result);

  const DriverTable* const driver_;
  const bool calls_back_;
  const std::function<void()> drain_output_;
  const Observer observer_;
  const std::shared_ptr<Root> root_ = std::make_shared<Root>();

  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> idle_;
  size_t next_shared_ = 0;
  bool stop_ = false;

  std::atomic<uint64_t> next_ticket_{1};
  std::atomic<uint32_t> landing_{0};
  std::mutex board_mutex_;
  std::condition_variable landed_;
  std::list<Landing> board_;

  std::mutex count_mutex_;
  std::condition_variable count_changed_;
  std::vector<std::pair<CUcontext, uint64_t>> counts_;  ///< Jobs of each context.
};

class Waits::Lane {
 public:
  std::mutex mutex;
  std::condition_variable work;
  std::deque<Job> jobs;
  bool stop = false;
  std::thread thread;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_WAITS_H_
