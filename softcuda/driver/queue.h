// SPDX-License-Identifier: Apache-2.0
// Work that runs when other work is done. Streams, events and graphs are all built from this: an operation names those
// it waits for; when the last of them is done it runs on one of the queue's threads.
//
// Threads: Submit, Wait, Done from any thread. The queue starts a thread whenever an operation is ready and no thread
// is idle, up to kMostThreads, so operations that wait for each other by other means (a kernel that spins on a flag, a
// host function) do not block the rest. One lock, held for list operations only; nothing else of the driver is locked
// while it is held.
#ifndef HAWSER_SOFTCUDA_DRIVER_QUEUE_H_
#define HAWSER_SOFTCUDA_DRIVER_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace hawser::soft {

class Queue;

/// One operation. Made by Queue only.
class Operation {
 public:
  using Clock = std::chrono::steady_clock;

 private:
  friend class Queue;
  std::function<void()> run_;  ///< Empty: a marker.
  size_t waiting_ = 0;         ///< Unfinished operations that it waits for.
  bool done_ = false;
  Clock::time_point finished_;
  std::vector<std::shared_ptr<Operation>> dependents_;
};

using OperationPtr = std::shared_ptr<Operation>;

class Queue {
 public:
  /// `begin`, which may be empty: what each of its threads does first.
  explicit Queue(std::function<void()> begin = {}) : begin_(std::move(begin)) {}

  /// Adds an operation that runs after all of `after` (null pointers are skipped). An empty `run` is done as soon as
  /// they are.
  OperationPtr Submit(std::function<void()> run, std::span<const OperationPtr> after);
  /// Like Submit() for work that the calling thread does itself, after Await(); others that wait for it go on after
  /// Finish().
  OperationPtr Hold(std::span<const OperationPtr> after);
  /// Returns when everything that a held operation waits for is done.
  void Await(const OperationPtr& operation);
  /// True when Await() would return at once.
  bool Ready(const OperationPtr& operation);
  void Finish(const OperationPtr& operation);

  bool Done(const OperationPtr& operation);
  /// Null is done. Not to be called by an operation for one that waits for it.
  void Wait(const OperationPtr& operation);
  /// When it was done; only when it is.
  Operation::Clock::time_point Finished(const OperationPtr& operation);

  static constexpr size_t kMostThreads = 256;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Link(const OperationPtr& operation, std::span<const OperationPtr> after);
  /// Marks done, and what becomes ready by it; markers at once. With the lock.
  void Complete(const OperationPtr& operation);
  void MakeReady(const OperationPtr& operation, std::vector<OperationPtr>* markers);
  /// Sees to it that `operations` that are ready have threads; returns how many of these are to be woken. With the
  /// lock.
  size_t Staff(size_t operations);
  /// Wakes who can go on after what was done with `lock`, which it gives back first: they need it.
  void Notify(Lock lock, size_t operations);
  void AwaitDone(const std::function<bool()>& over);
  void Thread();

  const std::function<void()> begin_;
  std::mutex mutex_;
  std::condition_variable ready_changed_;
  std::condition_variable done_changed_;
  std::deque<OperationPtr> ready_;
  size_t threads_ = 0;
  size_t idle_ = 0;
  size_t waiting_ = 0;      ///< Threads in Await() or Wait().
  bool completed_ = false;  ///< Something was, and those who wait have not been told.
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_QUEUE_H_
