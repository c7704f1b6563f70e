// SPDX-License-Identifier: Apache-2.0
// Work that is on the device, or may get there, without having passed the gate: launches that were given to the driver
// because only the guest knew when they could run (turns.h), and what a tenant who was alone had enqueued behind a
// function of its own (gated.cc). When it runs it is asked for afterwards: its tenant pays for it, and when it never
// ends it is its own tenant that keeps the device, and nobody else.
//
// Who runs what
//   any thread       Add().
//   executor         Forget(), Stop().
//   strays' thread   looks at them, waits in the gate for what runs, and holds it until that is over. Started with the
//                    first.
// Lock: mutex_. The driver is asked about events with it, so that a context does not end meanwhile; the gate is not
// called with it.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_STRAYS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_STRAYS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "server/backends/cuda/driver_table.h"
#include "server/backends/cuda/waits.h"
#include "server/worker/launch_gate.h"

namespace hawser::server::cuda_backend {

struct Stray {
  CUcontext context = nullptr;
  std::shared_ptr<const PooledEvent> begin;  ///< Null: `waits` says whether it may have begun.
  std::shared_ptr<const PooledEvent> end;
  /// True while it cannot run, because a function of the guest is before it. Any thread; takes no lock of the
  /// backend's.
  std::function<bool()> waits;
};

class Strays {
 public:
  /// How often it is looked at what becomes of them.
  static constexpr std::chrono::milliseconds kLook{2};

  /// Both borrowed.
  Strays(const DriverTable* driver, LaunchGate* gate) : driver_(driver), gate_(gate) {}
  ~Strays() { Stop(); }
  Strays(const Strays&) = delete;
  Strays& operator=(const Strays&) = delete;

  void Add(Stray stray);
  /// The context is about to end; everything in it is over.
  void Forget(CUcontext context);
  /// The gate has been cancelled.
  void Stop();

 private:
  enum class State : uint8_t { kWaits, kRuns, kOver };
  struct Entry {
    Stray stray;
    uint64_t number = 0;
    bool held = false;  ///< Its time is paid for.
  };

  void Thread();
  /// With the lock, like the next ones.
  State StateOf(const Entry& entry) const;
  Entry* Find(uint64_t number);
  /// Takes those that are over from the list; returns what is owed for them, nanoseconds, and the number of one that
  /// runs, or 0.
  uint64_t Look(uint64_t* running);

  const DriverTable* const driver_;
  LaunchGate* const gate_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> entries_;
  uint64_t next_ = 1;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_STRAYS_H_
