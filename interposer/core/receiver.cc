// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/receiver.h"

#include <chrono>
#include <utility>

#include "interposer/core/own_thread.h"

namespace hawser::guest {
namespace {

/// How long nobody must have waited before the background thread takes the role from a program that waits often.
constexpr std::chrono::microseconds kHoldOff{500};

thread_local bool t_delivering = false;

}  // namespace

bool Receiver::DeliveringHere() { return t_delivering; }

Receiver::Receiver(Pump* pump, const char* thread_name, std::function<void()> on_ended)
    : pump_(pump), thread_name_(thread_name), on_ended_(std::move(on_ended)) {}

Pump::Outcome Receiver::Deliver() {
  const bool before = std::exchange(t_delivering, true);
  const Pump::Outcome outcome = pump_->Deliver();
  t_delivering = before;
  return outcome;
}

bool Receiver::WaitUntil(Condition done, void* context) {
  std::unique_lock lock(mutex_);
  ++waits_;
  waiters_.fetch_add(1, std::memory_order_relaxed);
  bool is_done = false;
  for (;;) {
    if (!taken_) {
      taken_ = true;
      lock.unlock();
      is_done = Lead(done, context, /*background=*/false) == Left::kDone;
      lock.lock();
      waiters_.fetch_sub(1, std::memory_order_relaxed);
      Leave();
      return is_done;
    }
    const uint64_t seen = epoch_;
    if (background_leads_) pump_->Interrupt();
    lock.unlock();
    is_done = done(context);
    lock.lock();
    if (is_done) break;
    ++sleepers_;
    while (taken_ && epoch_ == seen) changed_.wait(lock);
    --sleepers_;
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  WakeBackground();
  return true;
}

Receiver::Left Receiver::Lead(Condition done, void* context, bool background) {
  if (done(context)) return Left::kDone;
  for (;;) {
    switch (Deliver()) {
      case Pump::Outcome::kEnded:
        return done(context) ? Left::kDone : Left::kEnded;
      case Pump::Outcome::kProgress:
        if (done(context)) return Left::kDone;
        Announce();
        break;
      case Pump::Outcome::kIdle:
        if (done(context)) return Left::kDone;
        pump_->Park(/*spin=*/!background);
        break;
    }
  }
}

void Receiver::Announce() {
  std::lock_guard lock(mutex_);
  ++epoch_;
  if (sleepers_ != 0) changed_.notify_all();
}

void Receiver::Leave() {
  taken_ = false;
  ++epoch_;
  if (sleepers_ != 0) changed_.notify_all();
  WakeBackground();
}

void Receiver::Poll() {
  {
    std::lock_guard lock(mutex_);
    if (taken_) return;
    taken_ = true;
  }
  while (Deliver() == Pump::Outcome::kProgress) Announce();
  std::lock_guard lock(mutex_);
  Leave();
}

void Receiver::Wake() {
  std::lock_guard lock(mutex_);
  ++epoch_;
  if (sleepers_ != 0) changed_.notify_all();
  if (taken_) pump_->Interrupt();
}

void Receiver::Exclusively(const std::function<void()>& function) {
  {
    std::unique_lock lock(mutex_);
    waiters_.fetch_add(1, std::memory_order_relaxed);
    ++sleepers_;
    while (taken_) {
      if (background_leads_) pump_->Interrupt();
      changed_.wait(lock);
    }
    --sleepers_;
    taken_ = true;
  }
  const bool before = std::exchange(t_delivering, true);
  function();
  t_delivering = before;
  std::lock_guard lock(mutex_);
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  Leave();
}

void Receiver::AddInterest() {
  std::lock_guard lock(mutex_);
  if (interest_.fetch_add(1, std::memory_order_relaxed) != 0) return;
  StartBackground();
  WakeBackground();
}

void Receiver::RemoveInterest() {
  std::lock_guard lock(mutex_);
  if (interest_.fetch_sub(1, std::memory_order_relaxed) == 1 && background_leads_) pump_->Interrupt();
}

void Receiver::DrainInBackground() {
  std::lock_guard lock(mutex_);
  if (taken_ && !background_leads_) return;  // Somebody is receiving.
  drain_ = true;
  StartBackground();
  WakeBackground();
}

void Receiver::EndInBackground() {
  std::lock_guard lock(mutex_);
  drain_ = true;
  holding_off_ = false;
  StartBackground();
  background_.notify_one();
}

void Receiver::WakeBackground() {
  if (!background_started_ || taken_ || holding_off_ || waiters_.load(std::memory_order_relaxed) != 0) return;
  if (drain_ || interest_.load(std::memory_order_relaxed) != 0) background_.notify_one();
}

void Receiver::StartBackground() {
  if (background_started_ || background_ended_) return;
  background_started_ = StartThread(thread_name_, kSmallStack, &RunBackground, this);
}

void Receiver::Background() {
  const Condition give_way = [](void* context) {
    const auto* self = static_cast<const Receiver*>(context);
    return self->waiters_.load(std::memory_order_relaxed) != 0 || self->interest_.load(std::memory_order_relaxed) == 0;
  };
  bool ended = false;
  std::unique_lock lock(mutex_);
  while (!ended) {
    const bool wanted = drain_ || interest_.load(std::memory_order_relaxed) != 0;
    if (!wanted || taken_ || waiters_.load(std::memory_order_relaxed) != 0) {
      if (!wanted) holding_off_ = false;
      if (holding_off_) {
        background_.wait_for(lock, kHoldOff);
      } else {
        background_.wait(lock);
      }
      continue;
    }
    if (holding_off_) {
      const uint64_t before = waits_;
      background_.wait_for(lock, kHoldOff);
      if (waits_ == before) holding_off_ = false;
      continue;
    }
    drain_ = false;
    taken_ = background_leads_ = true;
    lock.unlock();
    for (;;) {
      const Pump::Outcome outcome = Deliver();
      ended = outcome == Pump::Outcome::kEnded;
      if (outcome != Pump::Outcome::kProgress) break;
      Announce();
    }
    if (!ended) ended = Lead(give_way, this, /*background=*/true) == Left::kEnded;
    lock.lock();
    background_leads_ = false;
    holding_off_ = waiters_.load(std::memory_order_relaxed) != 0;
    Leave();
  }
  background_started_ = false;
  background_ended_ = true;
  lock.unlock();
  if (on_ended_) on_ended_();
}

}  // namespace hawser::guest
