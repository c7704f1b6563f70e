// SPDX-License-Identifier: Apache-2.0
// Launches that wait for their turn: until the gate opens for them, until what is before them in their stream is over,
// or because they run in parts, between which others have theirs.
//
// While a launch is here the executor gives its stream nothing (deferral.h), so parts go into the guest's own stream,
// one behind the other, and the driver keeps all order. When the last part is given to the driver the stream goes on.
//
// Of a kernel that was never measured one part is under way at a time: the first, as large as paper 004's formula says,
// is measured before there is a second. Likewise of one none of whose parts has ended yet in this session: when that
// one does not end, the rest of the launch is given to the device beside it, in a stream of its own, for which the
// guest's then waits (server/worker/split_alarm.h).
//
// A unit is asked for only when it could run at once: one that was granted and then waited, for a host function or for
// another stream, would keep the device from everybody. Whoever waits longer than kPatience for that is given to the
// driver as it is, so that streams which wait for each other in ways that only the guest knows go on; it is asked for
// when it runs (strays.h).
//
// When a grant ends, its last unit leaves the gate shortly before it is over (server/worker/early_leave.h), so that the
// next tenant gets ready meanwhile: turns' thread sees to that while it has a launch that asks for the next grant.
// Where nothing more is wanted nobody leaves early: the scheduler would take the tenant for idle before it is.
//
// Alone, a launch only comes here when its stream is too far ahead of the device (server/worker/open_flight.h). It is
// not run here: it waits, with the same patience, and is then the executor's again.
//
// Who runs what
//   executor      Add(), TakeOver(). Hears through `wake` that launches are over.
//   turns' thread takes the launches in turn, one part each; waits in the gate. Started with the first.
//   units' thread OnUnitOver(), Owe().
// Lock: mutex_, a leaf; neither the driver, the gate nor the units are called with it.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_TURNS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_TURNS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "server/backends/cuda/kernel_launch.h"
#include "server/backends/cuda/part_sizes.h"
#include "server/backends/cuda/sliced_kernels.h"
#include "server/backends/cuda/strays.h"
#include "server/backends/cuda/units.h"
#include "server/worker/split_alarm.h"
#include "wire/frame.h"
#include "wire/id.h"

namespace hawser::server::cuda_backend {

/// One launch on its way. Handed over, never shared.
struct Turn {
  std::shared_ptr<StreamState> stream;
  std::shared_ptr<EventPool> timers;
  KernelLaunch launch;
  std::shared_ptr<KernelFacts> kernel;
  std::shared_ptr<const SlicedKernel> sliced;  ///< Null: runs whole.
  uint64_t next_block = 0;                     ///< Of a sliced one.
  uint64_t part_blocks = 0;                    ///< Of its next part.
  /// Of the part under way, while it must be the only one: when the device begins it, and for how long it is waited
  /// for.
  std::shared_ptr<const PooledEvent> begun;
  std::optional<PartWatch> watch;
  /// The copy that can run in parts is being made: it is not run before, or others would wait for all of it. It waits
  /// for kPatience at most.
  bool awaits_copy = false;
  /// These must be idle before it may run.
  std::vector<std::shared_ptr<StreamState>> before;
  /// Not null: it only waits for this event, and is not run here; it runs ahead of the device (OpenFlight).
  std::shared_ptr<const PooledEvent> pause;
  std::chrono::nanoseconds patience{0};  ///< How long it waits for that.
  bool late = false;                     ///< In vain.
  std::chrono::steady_clock::time_point since;
  std::shared_ptr<std::atomic<uint32_t>> under_way = std::make_shared<std::atomic<uint32_t>>(0);
  std::vector<wire::Id> events;  ///< That the launch records.
  wire::Id exec;                 ///< The graph that is launched; else null.
  uint64_t hold = 0;             ///< Deferral's, on its stream; 0: none yet.
  wire::FrameHeader header;      ///< The command whose outcome is told when it is over.
  wire::Id context;
  CUresult result = CUDA_SUCCESS;
};

class Turns {
 public:
  static constexpr std::chrono::milliseconds kPatience{100};

  /// All borrowed.
  Turns(const DriverTable* driver, LaunchGate* gate, Units* units, const PartSizes* sizes, SlicedKernels* sliced,
        SplitAlarms* alarms, Strays* strays, std::function<void()> wake);
  ~Turns() { Stop(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Ends the thread; what waits is dropped. The gate has been cancelled.
  void Stop();

  // ---------------------------------------------------------------- the executor's
  /// Nobody waits, so the executor may ask the gate itself.
  bool idle() const { return waiting_.load(std::memory_order_acquire) == 0; }
  void Add(std::unique_ptr<Turn> turn);
  /// Some are over.
  bool has_over() const { return has_over_.load(std::memory_order_acquire); }
  std::vector<std::unique_ptr<Turn>> TakeOver();
  /// Gives one unit of it to the driver, whose context is current. `entered`: the gate, which was asked for `asked`, is
  /// to be left. Nanoseconds; `estimate`: 0, not known. True: it was the last, or it failed. Turns' thread also.
  bool Give(Turn& turn, uint64_t estimate, uint64_t asked, bool entered, bool late = false);

  void OnUnitOver();
  void Owe(uint64_t nanoseconds) { owed_.fetch_add(nanoseconds, std::memory_order_relaxed); }

 private:
  void Thread();
  /// Waits for something to do; `seen`: units_over_ of last time. With the lock.
  void Sleep(std::unique_lock<std::mutex>* lock, const std::list<std::unique_ptr<Turn>>& turns, uint64_t seen);
  /// True when something was done.
  bool Try(std::list<std::unique_ptr<Turn>>& turns);
  bool MayRun(Turn& turn, bool* late);
  /// True: there is nothing (more) to wait for.
  bool HasCopy(Turn& turn);
  enum class Outcome : uint8_t { kNotNow, kMore, kOver };
  /// `may_wait`: for the gate; else it is kNotNow when that is shut.
  Outcome Step(Turn& turn, bool late, bool may_wait);
  /// Blocks of the next part.
  uint64_t NextBlocks(const Turn& turn) const;
  bool GiveUnit(Turn& turn, uint64_t estimate, uint64_t asked, bool entered, bool late);
  /// A moment of the turn's stream; null when there is none to be had.
  std::shared_ptr<const PooledEvent> Mark(const Turn& turn) const;
  /// The part under way must end before there is another one.
  bool IsOnlyPart(const Turn& turn) const;
  bool IsStuck(Turn& turn);
  /// Gives the device all that is left of it, beside the part that does not end. Always the last of it.
  void GiveRest(Turn& turn);
  /// Passes the gate; false: the session ends.
  bool Enter(uint64_t estimate);
  /// As LaunchGate::EnterPart(); if it may not wait, as TryEnterPart().
  bool EnterPart(uint64_t* estimate, const LaunchGate::Resize& resize, bool may_wait);
  /// If the grant has ended: AwaitLeft(), for whoever asks for the next one.
  void AwaitEnd(uint64_t estimate);
  /// The grant has ended: waits until its last unit has left the gate, early if its end can be foreseen.
  void AwaitLeft();

  const DriverTable* const driver_;
  LaunchGate* const gate_;
  Units* const units_;
  const PartSizes* const sizes_;
  SlicedKernels* const sliced_;
  SplitAlarms* const alarms_;
  Strays* const strays_;
  const std::function<void()> wake_;
  std::atomic<uint64_t> owed_{0};
  std::atomic<uint32_t> waiting_{0};
  std::atomic<bool> has_over_{false};
  CUcontext current_ = nullptr;  ///< The thread's.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::unique_ptr<Turn>> added_;
  std::vector<std::unique_ptr<Turn>> over_;
  uint64_t units_over_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_TURNS_H_
