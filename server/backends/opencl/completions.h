// SPDX-License-Identifier: Apache-2.0
// What happens when a command is complete: the guest hears of its event, a finish or a read is answered, staging
// memory is given back. All of it runs in the driver's callback, so an answer costs no hand-off between threads.
//
// Threads: the executor makes and arms completions; they come true on a thread of the driver, or on the executor
// itself when the event was complete already. Free records go back through a lock-free list.
//
// Failed commands. PoCL 3.1 has four habits that matter here. It does not call CL_COMPLETE callbacks of commands that
// end with an error; it never starts a command whose wait list holds an event that had failed before; it aborts when a
// command fails whose event nobody holds, or that is being enqueued at that moment; and it looks at a failed event
// once more when another event, that the command waited for too, is complete. There, commands fail only because a user
// event did. So:
//   * every user event is set here, and a failure is followed by a look at all outstanding completions (Sweep);
//   * while a user event is not set, each command is enqueued under gate() and has a completion, which holds its event;
//   * HasFailed(), under gate(), tells whether an event of a wait list has failed;
//   * failed events are kept (Bury) until nothing is under way that they may have waited for.
// A completion is taken exactly once, by callback or sweep, see Completion::armed.
//
// Lock order: gate() before the driver's own locks. Nothing here calls out under a lock of its own.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_COMPLETIONS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_COMPLETIONS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/backends/opencl/handle.h"
#include "server/backends/opencl/queue.h"
#include "server/worker/services.h"
#include "wire/id.h"

namespace hawser::server::ocl {

class Completions;
struct Completion;

/// What to do first, before the event is announced. Returns true when it will call Completions::Conclude() itself,
/// later: the announcement then waits for that.
using CompletionAction = bool (*)(Completion& completion, int32_t status);

/// A command that is under way and what follows it. Fill in between New() and Arm().
struct alignas(64) Completion {
  CompletionAction action = nullptr;
  // For the action.
  void* context = nullptr;
  uint64_t seq = 0;     ///< The frame that is answered.
  uint16_t opcode = 0;  ///< That frame's.
  uint64_t size = 0;
  wire::Id announce;         ///< Announce completion of this event.
  bool answered = false;     ///< The action sent an answer without a flush; the announcement brings it.
  bool ends = false;         ///< With it the command at this position of an in-order queue has ended.
  Handle<cl_event> started;  ///< Where the times up to the start come from, when not from the event itself.
  Handle<cl_event> ended;    ///< The same for the times of the end.

  Completions& owner() const { return *owner_; }

 private:
  friend class Completions;
  // 0: nobody's. The event: armed. The event + 1: a sweep is looking. kFired: the callback came during that look.
  static constexpr uintptr_t kFired = 2;
  std::atomic<uintptr_t> armed{0};
  int32_t fired_status_ = 0;
  int32_t watched_ = 0;  ///< Which status this waits for: CL_COMPLETE, or CL_RUNNING or CL_SUBMITTED.
  Completions* owner_ = nullptr;
  Handle<cl_event> event_;
  std::shared_ptr<Queue> queue_;
  uint64_t position_ = 0;  ///< In its queue.
  Completion* next_ = nullptr;
};

class Completions {
 public:
  Completions() = default;
  /// Nothing is outstanding; see Outstanding().
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  void SetServices(const Services& services) { services_ = &services; }

  // ---------------------------------------------------------------- the executor's
  /// False when there is no memory for so many more records; ask before a command is enqueued.
  bool Reserve(uint32_t count);
  /// A record for `event` (one more reference), at `position` in `queue`. Null only without Reserve().
  Completion* New(cl_event event, std::shared_ptr<Queue> queue, uint64_t position);
  /// From now on it may come true, perhaps before this returns; the caller no longer owns it.
  void Arm(Completion* completion);
  /// Announces that `event` has reached `status`, CL_SUBMITTED or CL_RUNNING.
  void Watch(cl_event event, wire::Id id, int32_t status);

  /// Held while a command with a wait list is checked and enqueued.
  std::mutex& gate() { return gate_; }
  /// With gate() held, or on the executor: false is certain.
  bool MayHaveFailed() const { return failed_.load(std::memory_order_relaxed); }
  static bool HasFailed(cl_event event);

  // ---------------------------------------------------------------- any thread's
  /// clSetUserEventStatus, and what must follow when the status is an error. Not with gate() held.
  int32_t SetUserEvent(cl_event event, int32_t status);
  /// Announces and frees; see CompletionAction.
  void Conclude(Completion* completion, int32_t status);
  /// Completions that have not come true.
  uint32_t Outstanding() const { return outstanding_.load(std::memory_order_acquire); }
  /// Looks for commands that failed without a word.
  void Sweep();
  /// Failed events are kept.
  bool HasBuried() const { return buried_count_.load(std::memory_order_relaxed) != 0; }
  /// Nothing is under way: gives those events back that were kept already when this was called last.
  void Exhume();

  Replies& replies() { return *services_->replies; }
  const Services& services() const { return *services_; }

 private:
  static constexpr uint32_t kChunk = 256;
  static constexpr uint32_t kMaxChunks = 1u << 14;
  using Chunk = std::array<Completion, kChunk>;

  static void CL_CALLBACK OnEvent(cl_event event, cl_int status, void* completion);
  bool Grow();
  void SweepOnce();
  void Fire(Completion& completion, int32_t status);
  void Free(Completion* completion, int32_t status);
  void Bury(cl_event event);
  static void AddTimes(const Completion& completion, opencl::EventStatus* status);

  const Services* services_ = nullptr;
  Completion* free_ = nullptr;                  ///< The executor's.
  std::atomic<Completion*> returned_{nullptr};  ///< Freed, not yet in free_.
  std::atomic<uint32_t> outstanding_{0};
  std::atomic<uint32_t> sweeps_{0};  ///< Asked for and not done.
  std::atomic<uint32_t> chunk_count_{0};
  std::unique_ptr<std::unique_ptr<Chunk>[]> chunks_ { new std::unique_ptr<Chunk>[ kMaxChunks ] };
  std::mutex gate_;
  std::mutex buried_mutex_;
  std::vector<cl_event> buried_, long_buried_;
  std::atomic<uint32_t> buried_count_{0};
  std::atomic<bool> failed_{false};  ///< Some event ended with an error.
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_COMPLETIONS_H_
