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

void Queue::Wake(size_t operations) {
  for (size_t i = 0; i < operations; ++i) {
    if (idle_ > i || threads_ >= kMostThreads) {
      ready_changed_.notify_one();
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
  done_changed_.notify_all();
}

OperationPtr Queue::Submit(std::function<void()> run, std::span<const OperationPtr> after) {
  auto operation = std::make_shared<Operation>();
  operation->run_ = std::move(run);
  const Lock lock(mutex_);
  Link(operation, after);
  if (operation->waiting_ == 0) {
    std::vector<OperationPtr> markers;
    MakeReady(operation, &markers);
    if (!markers.empty()) Complete(operation);
    Wake(ready_.size());
  }
  return operation;
}

OperationPtr Queue::Hold(std::span<const OperationPtr> after) {
  auto operation = std::make_shared<Operation>();
  operation->waiting_ = 1;  // One more than it waits for, so that it never becomes ready by itself.
  const Lock lock(mutex_);
  Link(operation, after);
  return operation;
}

void Queue::Await(const OperationPtr& operation) {
  Lock lock(mutex_);
  done_changed_.wait(lock, [&] { return operation->waiting_ == 1; });
}

bool Queue::Ready(const OperationPtr& operation) {
  const Lock lock(mutex_);
  return operation->waiting_ == 1;
}

void Queue::Finish(const OperationPtr& operation) {
  const Lock lock(mutex_);
  Complete(operation);
  Wake(ready_.size());
}

bool Queue::Done(const OperationPtr& operation) {
  if (operation == nullptr) return true;
  const Lock lock(mutex_);
  return operation->done_;
}

void Queue::Wait(const OperationPtr& operation) {
  if (operation == nullptr) return;
  Lock lock(mutex_);
  done_changed_.wait(lock, [&] { return operation->done_; });
}

Operation::Clock::time_point Queue::Finished(const OperationPtr& operation) {
  const Lock lock(mutex_);
  return operation->finished_;
}

void Queue::Thread() {
  ::pthread_setname_np(::pthread_self(), "hawser-soft");
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
    if (ready_.size() > 1) Wake(ready_.size() - 1);  // This thread takes one of them, most often the stream's next.
  }
}

}  // namespace hawser::soft
