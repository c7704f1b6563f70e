// SPDX-License-Identifier: Apache-2.0
// Units of work on the device: each is a launch, a part of one, or a graph, between two events that measure it. When it
// is over its gate is left, its kernel's speed learnt, and it is written into the trace if somebody listens.
//
// Who runs what
//   any thread     Run(), with the unit's context current. One unit after the other for a stream.
//   units' thread  waits for the units in the order in which they were run, started with the first; leaves the gate.
//                  Looks now and then at those that were run without asking, while there are some.
//   turns' thread  LeaveEarly(): leaves it for the last unit of a grant shortly before that ends.
// A unit for which the gate was asked is run only when nothing but the device's own work is before it, so it ends by
// itself. One that was run without asking may be behind something that waits for the guest: nobody waits for it, or the
// gate would not be left by others, who then never come to what the guest waits for.
//
// Lock: mutex_, a leaf; the driver is not called with it, and of the gate only what takes no lock: Ends() and
// LeaveEarly(), so that the unit's LeaveLate() comes after that.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_UNITS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_UNITS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "server/backends/cuda/sliced_kernels.h"
#include "server/backends/cuda/waits.h"
#include "server/session_stats.h"
#include "server/worker/launch_gate.h"
#include "server/worker/split_alarm.h"

namespace hawser::server::cuda_backend {

struct Unit {
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<EventPool> timers;  ///< Of its context.
  CUevent begin = nullptr, end = nullptr;
  uint64_t estimate = 0;  ///< Nanoseconds; 0: not known.
  uint64_t asked = 0;     ///< What the gate was asked for.
  bool entered = false;   ///< The gate is to be left.
  bool late = false;      ///< It ran without asking and is to be paid for.
  uint64_t threads = 0;   ///< That it runs.
  uint64_t blocks = 0;    ///< Only to be measured: blocks that end at once.
  bool part = false;      ///< Of a launch; how long it takes is looked at.
  uint64_t expected = 0;  ///< Of a part: nanoseconds that it should take; 0: not known.
  std::shared_ptr<KernelFacts> kernel;
  uint32_t track = 0;                                ///< In the trace.
  std::shared_ptr<std::atomic<uint32_t>> under_way;  ///< One less when it is over; may be null.
  // The units' affair, with their lock.
  Clock::time_point run_at, begins_about, ends_about;
  bool behind = false;  ///< When it was run another one of its grant was under way.
  bool left_early = false;
  bool over = false;
};

class Units {
 public:
  using Log = std::function<void(std::string_view level, const std::string& text)>;

  /// All borrowed. `file`: where the history is kept; may be empty.
  Units(const DriverTable* driver, LaunchGate* gate, scheduler::KernelHistory* history, std::string file,
        SplitAlarms* alarms, SessionStatsPage* stats, Log log)
      : driver_(driver),
        gate_(gate),
        history_(history),
        file_(std::move(file)),
        alarms_(alarms),
        stats_(stats),
        log_(std::move(log)) {}
  ~Units();
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  /// `over` is called after each unit, `owed` with the time of each late one. Before the first Run().
  void OnOver(std::function<void()> over, std::function<void(uint64_t)> owed) {
    over_ = std::move(over);
    owed_ = std::move(owed);
  }

  /// Calls launch() between the unit's events. When it fails the gate is left at once.
  CUresult Run(Unit unit, CUstream stream, const std::function<CUresult()>& launch);
  /// Waits until no unit of this context is left.
  void Drain(CUcontext context);

  /// What a grant that has ended still waits for.
  struct Rest {
    size_t units = 0;  ///< That have not left the gate.
    /// Not null: nothing else is under way, and this is when the only one should leave early.
    std::optional<Unit::Clock::time_point> leaves_at;
  };
  Rest rest();
  /// The only unit leaves the gate now, if it is still that, and the last of its grant.
  void LeaveEarly();

 private:
  void Thread();
  /// Makes the unit's context current. The thread's.
  void Enter(const Unit& unit);
  /// Until it is over: what the driver says of its end.
  CUresult Await(const Unit& unit);
  /// It is over, and this is what the driver says of its end.
  void Finish(Unit& unit, CUresult result);
  /// The first of them, if it is over; `may_wait`: waits for that. False: it is not. The lock is given back meanwhile.
  bool FinishFirst(std::deque<Unit>* units, std::unique_lock<std::mutex>* lock, bool may_wait);
  /// All that are over of those that were run without asking. False: there is none.
  bool FinishUnasked(std::unique_lock<std::mutex>* lock);
  /// What its length says of its kernel.
  void Learn(const Unit& unit, uint64_t length);
  /// The first of units_ has ended: it leaves the gate, unless it has left early; then that is made up for. True: it
  /// had left early. `length`: what it took on the device, 0: not known.
  bool Leave(const Unit& unit, uint64_t bill, uint64_t length);
  /// What is under way, if it is one unit only, has not left the gate, and its end can be foreseen. With the lock.
  Unit* Foreseen();
  void GiveUp(Unit& unit);
  void Save();

  const DriverTable* const driver_;
  LaunchGate* const gate_;
  scheduler::KernelHistory* const history_;
  const std::string file_;
  SplitAlarms* const alarms_;
  SessionStatsPage* const stats_;
  const Log log_;
  std::function<void()> over_;
  std::function<void(uint64_t)> owed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Unit> units_;    ///< For which the gate was asked. The first is being waited for.
  std::deque<Unit> unasked_;  ///< The others. Only the thread takes one away, or gives it another place.
  bool stop_ = false;
  // The thread's.
  Unit last_;  ///< Its end is where the next one may begin to count.
  CUcontext current_ = nullptr;
  std::thread thread_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_UNITS_H_
