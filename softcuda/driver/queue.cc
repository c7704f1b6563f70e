// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/queue.h"

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace hawser::soft {

void Queue::Link(const OperationPtr& operation, std::span<const OperationPtr> after) {
  for (const OperationPtr& before : after) {
    if (before == nullptr || before->done_) continue;
    before->dependents_.push_back(operation);
    ++operation->waiting_;
  }
}

void Queue::MakeReady(const OperationPtr& operation, std::vector<OperationPtr>* markers) {
  if (!operation->run_) {
    markers->push_back(operation);
    return;
  }
  ready_.push_back(operation);
}

size_t Queue::Staff(size_t operations) {
  size_t to_wake = 0;
  for (size_t i = 0; i < operations; ++i) {
    if (idle_ > i || threads_ >= kMostThreads) {
      ++to_wake;
      continue;
    }
    ++threads_;
    // The program's signal handlers must not run on our threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { Thread(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return to_wake;
}

void Queue::Notify(Lock lock, size_t operations) {
  const size_t to_wake = Staff(operations);
  const bool completed = std::exchange(completed_, false) && waiting_ > 0;
  lock.unlock();
  for (size_t i = 0; i < to_wake; ++i) ready_changed_.notify_one();
  if (completed) done_changed_.notify_all();
}

void Queue::Complete(const OperationPtr& operation) {
  std::vector<OperationPtr> completed{operation};
  while (!completed.empty()) {
    const OperationPtr done = std::move(completed.back());
    completed.pop_back();
    done->done_ = true;
    done->finished_ = Operation::Clock::now();
    const std::vector<OperationPtr> dependents = std::exchange(done->dependents_, {});
    for (const OperationPtr& next : dependents) {
      if (--next->waiting_ == 0) MakeReady(next, &completed);
    }
  }
  completed_ = true;
}

OperationPtr Queue::Submit(std::function<void()> run, std::span<const OperationPtr> after) {
  auto operation = std::make_shared<Operation>();
  operation->run_ = std::move(run);
  Lock lock(mutex_);
  Link(operation, after);
  if (operation->waiting_ == 0) {
    std::vector<OperationPtr> markers;
    MakeReady(operation, &markers);
    if (!markers.empty()) Complete(operation);
    Notify(std::move(lock), ready_.size());
  }
  return operation;
}

void Queue::AwaitDone(const std::function<bool()>& over) {
  Lock lock(mutex_);
  ++waiting_;
  done_changed_.wait(lock, over);
  --waiting_;
}

OperationPtr Queue::Hold(std::span<const OperationPtr> after) {
  auto operation = std::make_shared<Operation>();
  operation->waiting_ = 1;  // One more than it waits for, so that it never becomes ready by itself.
  const Lock lock(mutex_);
  Link(operation, after);
  return operation;
}

void Queue::Await(const OperationPtr& operation) {
  AwaitDone([&] { return operation->waiting_ == 1; });
}

bool Queue::Ready(const OperationPtr& operation) {
  const Lock lock(mutex_);
  return operation->waiting_ == 1;
}

void Queue::Finish(const OperationPtr& operation) {
  Lock lock(mutex_);
  Complete(operation);
  Notify(std::move(lock), ready_.size());
}

bool Queue::Done(const OperationPtr& operation) {
  if (operation == nullptr) return true;
  const Lock lock(mutex_);
  return operation->done_;
}

void Queue::Wait(const OperationPtr& operation) {
  if (operation == nullptr) return;
  AwaitDone([&] { return operation->done_; });
}

Operation::Clock::time_point Queue::Finished(const OperationPtr& operation) {
  const Lock lock(mutex_);
  return operation->finished_;
}

void Queue::Thread() {
  ::pthread_setname_np(::pthread_self(), "hawser-soft");
  if (begin_) begin_();
  Lock lock(mutex_);
  for (;;) {
    if (ready_.empty()) {
      ++idle_;
      ready_changed_.wait(lock, [this] { return !ready_.empty(); });
      --idle_;
    }
    const OperationPtr operation = std::move(ready_.front());
    ready_.pop_front();
    std::function<void()> run = std::exchange(operation->run_, nullptr);
    lock.unlock();
    run();
    run = nullptr;  // What it holds may need other locks to go away.
    lock.lock();
    Complete(operation);
    // This thread takes one of them, most often the stream's next.
    const size_t others = ready_.empty() ? 0 : ready_.size() - 1;
    if (others == 0 && waiting_ == 0) {
      completed_ = false;
      continue;
    }
    Notify(std::move(lock), others);
    lock = Lock(mutex_);
  }
}

}  // namespace hawser::soft
