// SPDX-License-Identifier: Apache-2.0
// Runs the application's callbacks, in order, on a thread of their own, so that they may call the API. What this
// library itself has to do in turn has another one: a callback may wait for whatever it likes.
#ifndef HAWSER_INTERPOSER_CORE_CALLBACK_THREAD_H_
#define HAWSER_INTERPOSER_CORE_CALLBACK_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace hawser::guest {

/// The thread starts with the first callback. It has a stack of the usual size: the application's code runs on it.
class CallbackThread {
 public:
  /// `name`: the thread's, of at most 15 characters; not copied.
  explicit CallbackThread(const char* name) : name_(name) {}
  void Post(std::function<void()> function);
  /// For a child of fork() that came out of a callback: its thread ends when the callback returns.
  void AbandonAfterFork() { abandoned_.store(true, std::memory_order_release); }

 private:
  static void Run(void* self) { static_cast<CallbackThread*>(self)->Main(); }
  void Main();

  const char* const name_;
  std::atomic<bool> abandoned_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool started_ = false;
  std::deque<std::function<void()>> queue_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_CALLBACK_THREAD_H_
