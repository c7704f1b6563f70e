// SPDX-License-Identifier: Apache-2.0
// Hands the receiving side of one channel from thread to thread.
//
// Whoever waits and finds the role free takes it and delivers everybody's messages until its own condition holds;
// so a wait costs no hand-off between threads. The others ("followers") sleep until something was delivered or the
// role is free. A background thread takes the role while somebody is interested and nobody waits; it gives way to
// a waiting thread at once, and stays away for a while, so that a program which waits often receives by itself.
//
// Locks: one mutex, held for a few instructions; neither conditions nor the pump run under it (except
// Pump::Interrupt, which never waits).
// No wake-up is lost: a follower registers (under the mutex), looks at its condition (without), and sleeps (under the
// mutex) unless the epoch has moved; the role's holder moves the epoch (under the mutex) after each delivery.
#ifndef HAWSER_INTERPOSER_CORE_RECEIVER_H_
#define HAWSER_INTERPOSER_CORE_RECEIVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace hawser::guest {

/// What the holder of the receive role does. Called by one thread at a time.
class Pump {
 public:
  enum class Outcome : uint8_t {
    kIdle,      ///< Nothing is there now.
    kProgress,  ///< Something was delivered; perhaps more is there.
    kEnded,     ///< The session is over.
  };
  /// Delivers a bounded amount of what is there. Never waits.
  virtual Outcome Deliver() = 0;
  /// Waits until Deliver() has something to do, or until Interrupt(). `spin`: a thread of the application waits.
  virtual void Park(bool spin) = 0;
  /// Ends a Park(), or the next one. Any thread; never waits.
  virtual void Interrupt() = 0;

 protected:
  ~Pump() = default;
};

class Receiver {
 public:
  using Condition = bool (*)(void* context);

  /// `on_ended` runs on the background thread when it finds the session over. `thread_name`: at most 15 characters.
  Receiver(Pump* pump, const char* thread_name, std::function<void()> on_ended);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// Waits until done(context). False if the session ended before.
  bool WaitUntil(Condition done, void* context);
  /// Delivers what is there, if nobody else does; never waits.
  void Poll();
  /// Makes all waiting threads look at their conditions.
  void Wake();
  /// Takes the role, waiting for its holder to leave, and runs `function`.
  void Exclusively(const std::function<void()>& function);

  /// While somebody is interested the background thread receives.
  void AddInterest();
  void RemoveInterest();
  /// The background thread takes the role once, if nobody has it, and delivers what is there.
  void DrainInBackground();
  /// The session is over: `on_ended` runs on the background thread as soon as the role is free.
  void EndInBackground();

  /// Whether the calling thread is delivering for any receiver.
  static bool DeliveringHere();

 private:
  enum class Left : uint8_t { kDone, kEnded };

  Left Lead(Condition done, void* context, bool background);
  Pump::Outcome Deliver();
  void Announce();
  /// Gives the role back; the mutex is held.
  void Leave();
  void WakeBackground();
  void StartBackground();
  static void RunBackground(void* self) { static_cast<Receiver*>(self)->Background(); }
  void Background();

  Pump* const pump_;
  const char* const thread_name_;
  const std::function<void()> on_ended_;

  std::mutex mutex_;
  std::condition_variable changed_;     ///< Followers: the epoch moved or the role is free.
  std::condition_variable background_;  ///< The background thread: there may be something to do.
  bool taken_ = false;
  bool background_leads_ = false;
  bool background_started_ = false;
  bool background_ended_ = false;
  bool holding_off_ = false;  ///< The background thread stays away for a while.
  bool drain_ = false;
  uint64_t epoch_ = 0;
  uint64_t waits_ = 0;  ///< Calls of WaitUntil so far.
  uint32_t sleepers_ = 0;
  std::atomic<uint32_t> waiters_{0};   ///< Threads in WaitUntil or Exclusively. Written under the mutex.
  std::atomic<uint32_t> interest_{0};  ///< Written under the mutex.
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_RECEIVER_H_
