// SPDX-License-Identifier: Apache-2.0
// Runs launches in parts, so that other tenants get their turn between two of them.
//
// A split launch on the guest's queue is two commands: its first part, with the guest's wait list, and an end: a
// command that does nothing but wait for a user event U and stands for the launch (its event is the guest's event). The
// driver thereby keeps the guest's order by itself: an in-order queue does not go beyond the end before U is set,
// commands of other queues that wait for the launch wait for the end, and the executor goes on at once. When the first
// part is complete, a lane (a thread for each device, made when first needed) enqueues the other parts, in ascending
// order, on an in-order queue of its own beside the guest's (Queue::parts), asking the gate before each; at most two
// are under way. When the last is complete, U is set. A part that fails ends the launch: U is set to its error, and so
// the launch's event fails.
//
// Where the gate is closed when the launch comes, or where something is before it, the first part is not enqueued free
// either: such a command with the guest's wait list (R, ready) goes before it, and it waits for a second user event G
// (grant). When R is complete the lane asks the gate and sets G: who passes the gate can run at once. Launches that run
// whole take the same way, without an end: their one part is the launch.
//
// What is enqueued behind such a launch, on an in-order queue and without a wait list, has no R of its own: the lane is
// given all of them when the first one's R is complete (ReadyGroup).
//
// Of a kernel none of whose parts has ended yet, the first part always waits for a lane, which goes on when that part
// has ended. When it does not end, the lane enqueues all the rest at once, unasked, so that both run where the device
// can (server/worker/split_alarm.h): the first part is on the guest's queue, the rest on the one beside it.
//
// A lane uses a clone of the kernel, made by the executor at the launch, because the guest may set arguments anew at
// once; and it holds what the arguments name, because the guest may release that at once. Without clones (devices
// before OpenCL 2.1) nothing is split.
//
// Threads: Prepare() and what fills a SplitJob run on the executor. OnReady() and OnEnd() are Completion's actions:
// they run on threads of the driver, leave the gate for a first part, and hand the job to a lane. OnPartEnd() runs
// there too and leaves the gate for the other parts, so that nobody needs to be woken before the next tenant can be.
// Lanes wait for the device, for the gate, and set user events. Jobs are handed over, never shared, except `last` and
// `error`, which a lane writes before it sets U and OnEnd() reads after that (or earlier, where what the launch waits
// for has failed: then `error` is still 0), and parts under way (UnderWay). Lock
// order: lanes_mutex_, then a lane's mutex; no other lock and no driver call under either; the gate's Leave functions,
// which take no lock, may be called under a lane's. The driver is called from lanes as from any thread
// (Completions::gate() is taken inside UserEvents::Set only).
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SPLITTER_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SPLITTER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "proto/opencl/messages.h"
#include "scheduler/core/kernel_history.h"
#include "server/backends/opencl/completions.h"
#include "server/backends/opencl/handle.h"
#include "server/backends/opencl/kernel_trace.h"
#include "server/backends/opencl/queue.h"
#include "server/backends/opencl/slicing/kernel_scan.h"
#include "server/backends/opencl/slicing/slice_plan.h"
#include "server/backends/opencl/user_events.h"
#include "server/device_findings.h"
#include "server/session_stats.h"
#include "server/worker/launch_gate.h"
#include "server/worker/open_flight.h"
#include "server/worker/split_alarm.h"
#include "server/worker/split_settings.h"

namespace hawser::server::ocl {

class Splitter;

/// Nanoseconds on the device; 0 when that is not known.
uint64_t TimeOf(cl_event event);
/// How it ended: CL_SUCCESS, or an error.
int32_t WaitFor(cl_event event);

/// What is known of a program once it is built. Never changes; shared by the program and its kernels.
struct ProgramSplit {
  slicing::ProgramTraits traits;
  bool carries = false;  ///< Built with the prelude at work.
  std::string hash;      ///< scheduler::ProgramHash().
};

/// What is known of a kernel that was launched openly.
struct OpenKernel {
  OpenSpeed speed;
  Handle<cl_event> sample;  ///< While the speed is not known: a launch of it.
  uint64_t sample_items = 0;
};

/// What is known of a kernel.
struct KernelSplit {
  std::shared_ptr<const ProgramSplit> program;  ///< Null: not known, so it runs whole.
  const slicing::KernelTraits* traits = nullptr;
  std::string name;
  cl_device_id key_device = nullptr;  ///< Whose `key` is.
  scheduler::KernelKey key;
  bool was_told = false;  ///< How it runs is in the log.
  std::shared_ptr<OpenKernel> open = std::make_shared<OpenKernel>();
};

/// One launch on its way through a lane.
struct SplitJob {
  Splitter* owner = nullptr;
  std::shared_ptr<Queue> queue;
  cl_device_id device = nullptr;
  std::optional<slicing::SlicePlan> plan;  ///< What is left. Empty: runs whole.
  bool carried = false;
  cl_uint dimensions = 1;
  bool has_local = false;
  size_t local[3] = {1, 1, 1};
  std::optional<scheduler::KernelKey> key;
  slicing::SlicePart first;  ///< Its `items` also when it runs whole.
  uint64_t first_estimate = 0;
  uint64_t open_estimate = 0;   ///< By what was learnt while its tenant was alone, as it is; 0: nothing, or it is not.
  uint64_t first_expected = 0;  ///< The same where it is judged by that, else 0.
  std::string name;             ///< Of the kernel, where there is a plan.
  bool held = false;            ///< Nobody else wants the device; the queue is too far ahead of it.
  Handle<cl_event> resume;      ///< Then the lane waits for this first; or null.

  Handle<cl_kernel> kernel;  ///< A clone.
  std::vector<Handle<cl_mem>> memory;
  std::vector<Handle<cl_sampler>> samplers;

  Handle<cl_event> first_event;
  Handle<cl_event> grant;  ///< G; null when the gate was open.
  Handle<cl_event> end;    ///< U; null when it runs whole.
  // Where a late failure is told.
  uint64_t seq = 0;
  uint16_t opcode = 0;
  wire::Id queue_id, event_id;

  int32_t start = 0;      ///< How what the lane waited for ended.
  Handle<cl_event> last;  ///< The last part's.
  uint64_t owed = 0;      ///< Nanoseconds of the device's that nobody was asked for; under the lane's mutex.
  std::atomic<int32_t> error{0};
  std::atomic<bool> passed{false};  ///< The gate, without a lane; whoever sees its end leaves.
};

/// Launches that a lane is given when something is over, in order: the first when what it waits for is, or when its
/// first part is; and those that were enqueued behind it meanwhile and wait for nothing else.
struct ReadyGroup {
  /// False: it is over, and ended so; the lane is to be given the job at once.
  bool Add(const std::shared_ptr<SplitJob>& job);
  /// It is over, and well: what comes behind is the lane's.
  bool IsWithLane();

  std::mutex mutex;  ///< Before lanes_mutex_.
  bool fired = false;
  int32_t status = 0;
  std::vector<std::shared_ptr<SplitJob>> jobs;
};

class Splitter {
 public:
  using Log = std::function<void(std::string_view level, const std::string& text)>;

  /// `gates` may be null: open. All borrowed; what is found out here goes to the findings of `stats`.
  Splitter(SplitSettings settings, LaunchGates* gates, SessionStatsPage& stats, Completions& completions,
           UserEvents& user_events, KernelTrace& trace, Log log);
  /// After Stop() has given true.
  ~Splitter();
  Splitter(const Splitter&) = delete;
  Splitter& operator=(const Splitter&) = delete;

  /// Launches are split when they should be, so programs are prepared for that; otherwise they are gated only.
  bool splits() const { return settings_.splits; }

  // ---------------------------------------------------------------- the builder's
  /// slicing::CarryWorks(), tried once for each device by the tenant's first worker that needs to know.
  bool CanCarry(cl_context context, cl_device_id device);

  // ---------------------------------------------------------------- the executor's
  /// A queue of the guest's, on the device with this key.
  void AddQueue(const std::shared_ptr<Queue>& queue, const std::string& device);
  /// As LaunchGate's: true: the launch needs nothing but the gate's EndOpen() behind it.
  bool BeginOpen(const Queue& queue) const { return settings_.size == 0 && queue.gate->BeginOpen(); }
  /// Whether launches must ask although they could begin openly: some event is not set that is set by hand, by the
  /// guest, with its data, or by a lane. What is launched openly waits for the device and nothing else: so a drain
  /// knows that it ends, and nothing of it runs when nobody counts it.
  bool MustAsk(const Queue& queue) const { return queue.bounded && user_events_.AnyUnset(); }
  /// What is enqueued next may wait for more than the device, like all behind it until a launch is open again.
  static void CloseOpen(Queue& queue);
  /// A launch between BeginOpen() and EndOpen().
  void NoteOpen(Queue& queue, KernelSplit& kernel, cl_event event, uint64_t items) {
    if (!queue.bounded) return;
    if (queue.open_closed) [[unlikely]]
      ReopenOpen(queue);
    if (!queue.in_order) {
      if (++queue.open_count % kOpenStride == 0) KeepOpen(queue, event);
      return;
    }
    if (!kernel.open->speed.known()) [[unlikely]]
      LearnOpen(queue, kernel);
    if (queue.open.Add(kernel.open->speed, items)) PutMark(queue, kernel, event, items);
  }
  /// Whether a launch without a wait list must ask although it could begin openly: the queue is too far ahead of the
  /// device (open_flight.h), or what was held for that has not ended. Then it takes the way of launches that find the
  /// gate shut, Hold(): a lane waits until half of the bound is over, and passes the gate with it, which bounds what is
  /// under way from there on. For in-order queues, and not for tiny launches: there asking takes as long as running.
  /// The same while what had to ask before has not passed the gate: what is launched openly behind that would run when
  /// nobody counts it. Once all of it has passed, launches are open again, although the queue has never been empty.
  bool MustHold(Queue& queue, KernelSplit& kernel, uint64_t items) {
    if (!queue.bounded || (!queue.held && !queue.open.full())) [[likely]]
      return false;
    const OpenSpeed& speed = kernel.open->speed;
    // A lane measures each launch that it lets go. What was learnt before, of one launch perhaps which the machine kept
    // waiting, may be far too much; then a queue that is never empty would be held for ever.
    if (!speed.known() || queue.held) LearnOpen(queue, kernel);
    if (!IsTiny(speed, items)) return HoldSlowly(queue);
    // Held no more, once it is, so that tiny launches are not measured for ever because somebody was there once.
    if (queue.held && LaneIsEmpty(queue)) (void)HoldSlowly(queue);
    return false;
  }
  void Hold(SplitJob* job);
  /// Before a launch on an in-order queue that a lane will let go.
  static void NoteHeld(Queue& queue) { queue.held = queue.held || queue.in_order; }
  /// When no event is unset, nothing is known to wait for more than the device.
  void Settle(Queue& queue) {
    if (queue.ahead != Queue::Ahead::kUnknown || user_events_.AnyUnset()) return;
    queue.ahead = Queue::Ahead::kNothing;
    queue.group.reset();
  }
  /// Decides how a launch runs: null: as if there were no splitter. Otherwise a job with `plan` and `first` filled in,
  /// and the kernel's clone when there is more than that part.
  std::shared_ptr<SplitJob> Prepare(cl_kernel native, KernelSplit* split, const std::shared_ptr<Queue>& queue,
                                    const slicing::LaunchShape& shape);
  /// The job's one part is the launch: so many work-items.
  void MakeWhole(SplitJob* job, uint64_t items);
  /// Enqueues a part, also the first, of a job with a plan.
  static cl_int EnqueuePart(const SplitJob& job, const slicing::SlicePart& part, cl_kernel kernel,
                            cl_command_queue queue, cl_uint count, const cl_event* wait_list, cl_event* event);
  /// False: the first part of the job must be alone, with a lane to watch it.
  bool Trusts(const SplitJob& job) const { return !job.plan || !job.key || alarms_.IsTrusted(*job.key); }
  /// A job whose start is complete already.
  void Start(std::shared_ptr<SplitJob> job) { Push(std::move(job)); }

  // ---------------------------------------------------------------- completions' actions
  // `context` is a shared_ptr on the heap, of a ReadyGroup and of a SplitJob, which they take.
  static bool OnReady(Completion& completion, int32_t status);
  static bool OnEnd(Completion& completion, int32_t status);
  template <typename T>
  static void* Context(const std::shared_ptr<T>& shared) {
    return new std::shared_ptr<T>(shared);
  }

  /// Lets no lane begin anything new and waits until all are idle: false when they are not in time (a part that never
  /// ends). Launches under way end with an error.
  bool Stop(std::chrono::steady_clock::time_point deadline);

 private:
  struct UnderWay;
  /// In the order in which they passed the gate.
  using Parts = std::deque<std::unique_ptr<UnderWay>>;
  struct Lane {
    LaunchGate* gate = nullptr;  ///< Of the device.
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<SplitJob>> jobs;
    bool busy = false;
    bool stop = false;
    Parts parts;  ///< The lane's own thread's; also launches that run whole and that nobody waits for.
    std::thread thread;
  };
  using Clock = std::chrono::steady_clock;
  /// A command that has passed the gate. What follows `behind` is the lane's mutex's; the driver's thread that
  /// completes the command leaves the gate, so that nobody needs to be woken for it.
  struct UnderWay {
    Splitter* owner = nullptr;
    Lane* lane = nullptr;
    SplitJob* job = nullptr;  ///< Whose part it is; null: a launch that runs whole, whose job may be gone.
    std::optional<scheduler::KernelKey> key;
    Handle<cl_event> event;
    uint64_t items = 0;
    uint64_t estimate = 0;
    uint64_t expected = 0;  ///< The same where it is judged by that, else 0.
    bool entered = true;    ///< The gate is to be left; else the time is owed.
    Clock::time_point enqueued_at;
    Clock::time_point ends_about;
    bool behind = false;  ///< When it was enqueued another one of its grant was under way.
    Clock::time_point ended_at;
    uint64_t took = 0;  ///< Nanoseconds on the device; 0: not known.
    bool left_early = false;
    bool ended = false;
    int32_t status = 0;
  };
  /// What a held launch waits for; `passed` is the lane's mutex's.
  struct Resume {
    std::shared_ptr<Lane> lane;
    bool passed = false;
  };
  void Push(std::shared_ptr<SplitJob> job);
  void Run(const std::shared_ptr<Lane>& lane);
  void RunJob(const std::shared_ptr<Lane>& lane, SplitJob& job);
  /// Passes the gate. What is under way leaves it before this waits. False: the splitter stops, or `*status` is an
  /// error.
  bool Enter(Lane& lane, SplitJob& job, uint64_t estimate, int32_t* status);
  /// As Enter(), for the next part: LaunchGate::EnterPart().
  bool EnterPart(Lane& lane, SplitJob& job, uint64_t* estimate, const LaunchGate::Resize& resize, int32_t* status);
  /// Before the gate is waited for.
  bool AwaitEnd(Lane& lane, SplitJob& job, uint64_t estimate, int32_t* status);
  /// A command that is enqueued; `event` is its. `entered`: it has passed the gate.
  void Watch(Lane& lane, SplitJob& job, cl_event event, uint64_t items, uint64_t estimate, bool entered = true);
  static void CL_CALLBACK OnPartEnd(cl_event event, cl_int status, void* part);
  /// Waits until this part has ended, or has left early because it is the last of a grant. Whether it has ended.
  bool AwaitLeft(Lane& lane, UnderWay& part);
  /// Waits until the first of what is under way has ended, and takes it away. If it is the job's and failed that is in
  /// `*status`, unless that is an error already.
  static void AwaitFirst(Lane& lane, SplitJob* job, int32_t* status);
  /// Waits for the first part, which must be alone. True: it does not end, and the rest must not wait for it.
  bool IsStuck(Lane& lane, UnderWay& part, const SplitJob& job);
  /// How long so many work-items should take, where they are judged by that; else 0.
  uint64_t Expected(const std::optional<scheduler::KernelKey>& key, uint64_t items);
  /// What the length of a part says of its kernel; `items`: 0 where it says nothing of its speed.
  void Judge(const SplitJob& job, uint64_t items, uint64_t expected, uint64_t time);
  /// Pays for what ran unasked.
  void Pay(Lane& lane, SplitJob& job);
  void Finish(SplitJob& job, int32_t status, const char* what);
  static constexpr uint32_t kOpenStride = 16;
  static constexpr double kTinyNs = 50'000;
  /// Marks behind tiny launches before they are not measured any more.
  static constexpr uint32_t kTinyMarks = 4;
  /// Tiny launches that are held between two waits for the lane, and how long each may be. Twice as many after each
  /// that was in vain, because who waits is the executor, which other queues need; so often at most.
  static constexpr uint32_t kTinyHeld = 32;
  static constexpr uint32_t kMaxLaneWaits = 16;
  static constexpr std::chrono::milliseconds kLaneWait{2};
  static bool IsTiny(const OpenSpeed& speed, uint64_t items) {
    return speed.known() && speed.ns_per_item() * static_cast<double>(items) < kTinyNs;
  }
  bool HoldSlowly(Queue& queue);
  /// Whether a lane has nothing of this queue, whose launches are tiny, to let go. A guest that always has some under
  /// way may give it new ones as fast as it works; and while it has some, launches must ask. So now and then, while
  /// nobody else is there, this waits for it, for a bounded time.
  bool LaneIsEmpty(Queue& queue);
  static void ReopenOpen(Queue& queue);
  /// What the group waited for has ended so.
  void Release(ReadyGroup& group, int32_t status);
  /// Passes the gate for a launch that runs whole, if it is not shut; it is left when the launch has ended.
  bool PassNow(SplitJob& job);
  /// Of a launch that was held: by now more may be known.
  uint64_t EstimateHeld(const SplitJob& job);
  void LearnOpen(Queue& queue, KernelSplit& kernel);
  /// Takes note of what is over. `quickly`: the driver is asked only for what was not heard.
  static void LookOpen(Queue& queue, bool quickly);
  void PutMark(Queue& queue, KernelSplit& kernel, cl_event event, uint64_t items);
  /// Whether what comes behind `newest`, a launch of so many items, is measured.
  void ChooseNative(Queue& queue, const OpenSpeed& speed, cl_event newest, uint64_t items);
  void AwaitResume(const std::shared_ptr<Lane>& lane, const SplitJob& job);
  static void CL_CALLBACK OnResume(cl_event event, cl_int status, void* resume);
  /// Wakes who waits in AwaitResume(). The gate's thread.
  void OnClosed();
  /// All that the lane has to say to this launch is said; before the driver is told.
  static void LetGo(const SplitJob& job) { job.queue->in_lane.fetch_sub(1, std::memory_order_release); }
  static void KeepOpen(Queue& queue, cl_event event);
  void SaveHistory();
  /// The gate to a device; knows from then on whom to drain.
  LaunchGate& GateOf(const std::string& device);
  /// Waits until what was launched on the guest's queues behind this gate has ended. The gate's thread.
  void Drain(LaunchGate& gate);
  /// Work-items of the next part; 0: all that is left.
  uint64_t PartItems(const SplitJob& job);
  uint64_t Estimate(const std::optional<scheduler::KernelKey>& key, uint64_t items);
  /// Learns from a command that is complete and leaves the gate.
  void Leave(const SplitJob& job, cl_event event, uint64_t items, uint64_t estimate, bool good);
  const scheduler::KernelKey& KeyOf(KernelSplit* split, cl_device_id device);
  /// Says once for each kernel in the log how it runs, and for a bounded number of kernels.
  void Tell(KernelSplit* split, const std::string& how);
  bool Local(const slicing::KernelTraits& traits, cl_kernel kernel, cl_device_id device, slicing::LaunchShape* shape);
  uint64_t Cores(cl_device_id device);

  const SplitSettings settings_;
  OpenGate open_gate_;
  LaunchGates* const all_gates_;  ///< Null: open_gate_.
  DeviceFindings& findings_;
  Completions& completions_;
  UserEvents& user_events_;
  KernelTrace& trace_;
  const Log log_;
  scheduler::KernelHistory history_;
  SplitAlarms alarms_;
  std::mutex save_mutex_;
  std::atomic<bool> stopping_{false};
  uint32_t told_ = 0;  ///< The executor's.

  std::mutex lanes_mutex_;
  std::map<cl_device_id, std::shared_ptr<Lane>> lanes_;

  std::mutex queues_mutex_;  ///< A leaf.
  std::vector<std::weak_ptr<Queue>> queues_;
  std::vector<LaunchGate*> gates_;  ///< In use. The executor's.

  std::mutex devices_mutex_;  ///< A leaf, except for the probe.
  std::map<cl_device_id, bool> can_carry_;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SPLITTER_H_
