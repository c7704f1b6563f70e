// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/flush_thread.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "interposer/core/own_thread.h"

namespace hawser::guest {
namespace {

constexpr long kShortest = 50'000;  // Nanoseconds.
constexpr long kLongest = 200'000;
/// So many looks without a new batch, then the thread sleeps.
constexpr int kIdleLooks = 4;

void Sleep(long nanoseconds) {
  const timespec time{0, nanoseconds};
  ::nanosleep(&time, nullptr);
}

}  // namespace

void FlushThread::Arm() {
  std::lock_guard lock(mutex_);
  armed_ = true;
  if (!started_) started_ = StartThread("hawser-flush", kSmallStack, &Run, this);
  if (sleeping_) wake_.notify_one();
}

void FlushThread::Main() {
  ::prctl(PR_SET_TIMERSLACK, 1000ul);  // The default would double the 50 us.
  long pause = kShortest;
  int idle = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!armed_ && ++idle > kIdleLooks) {
      sleeping_ = true;
      while (!armed_) wake_.wait(lock);
      sleeping_ = false;
      pause = kShortest;
    }
    const bool watched = armed_;
    if (armed_) idle = 0;
    armed_ = false;
    const uint64_t batch = stream_->batch();
    lock.unlock();
    Sleep(pause);
    if (watched && stream_->unflushed() && stream_->batch() == batch) {
      stream_->Flush();
      pause = kShortest;
    } else {
      pause = std::min(pause * 2, kLongest);
    }
    lock.lock();
  }
}

}  // namespace hawser::guest
