// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/heap_returner.h"

#include <chrono>

#include "interposer/core/own_thread.h"

namespace hawser::guest {
namespace {

constexpr std::chrono::milliseconds kRest{50};

}  // namespace

void HeapReturner::Note() {
  std::lock_guard lock(mutex_);
  ++notes_;
  noted_.notify_one();
  if (!started_) started_ = StartThread("hawser-heap", kSmallStack, &Run, this);
}

uint64_t HeapReturner::AwaitRest(uint64_t done) {
  std::unique_lock lock(mutex_);
  while (notes_ == done) noted_.wait(lock);
  for (uint64_t seen = notes_;; seen = notes_) {
    if (!noted_.wait_for(lock, kRest, [&] { return notes_ != seen; })) return seen;
  }
}

bool HeapReturner::IsNewest(uint64_t number) {
  std::lock_guard lock(mutex_);
  return notes_ == number;
}

void HeapReturner::Main() {
  for (uint64_t done = 0;;) {
    const uint64_t number = AwaitRest(done);
    while (IsNewest(number) && heap_->GiveBack()) {
    }
    // A newer note: it is waited for again, and what is left is given back after it.
    done = number;
  }
}

}  // namespace hawser::guest
