// SPDX-License-Identifier: Apache-2.0
// A channel whose other end is the test.
#ifndef HAWSER_TESTS_UNIT_SERVER_FAKE_CHANNEL_H_
#define HAWSER_TESTS_UNIT_SERVER_FAKE_CHANNEL_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "wire/channel.h"

namespace hawser::server {

class FakeChannel final : public wire::Channel {
 public:
  // ---------------------------------------------------------------- the test's end
  void Feed(wire::Bytes bytes) {
    std::lock_guard lock(mutex_);
    in_.insert(in_.end(), bytes.begin(), bytes.end());
    changed_.notify_all();
  }
  /// What was fed so far can still be read; then the stream has ended.
  void FeedEnd() {
    std::lock_guard lock(mutex_);
    end_ = true;
    changed_.notify_all();
  }
  /// At most so many written bytes may wait for Take().
  void SetCapacity(size_t capacity) {
    std::lock_guard lock(mutex_);
    capacity_ = capacity;
    changed_.notify_all();
  }
  /// Everything written and flushed so far.
  std::vector<std::byte> Take() {
    std::lock_guard lock(mutex_);
    std::vector<std::byte> taken = std::move(out_);
    out_.clear();
    flushed_ = 0;
    changed_.notify_all();
    return taken;
  }
  /// Waits until that many bytes were written, and takes them all.
  std::vector<std::byte> TakeAtLeast(size_t size) {
    std::vector<std::byte> taken;
    while (taken.size() < size) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !out_.empty() || shut_down_; });
        if (out_.empty()) return taken;
      }
      const std::vector<std::byte> part = Take();
      taken.insert(taken.end(), part.begin(), part.end());
    }
    return taken;
  }
  /// Waits until the code under test has read everything that was fed.
  void WaitConsumed() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_.empty() || shut_down_; });
  }
  size_t unread() const {
    std::lock_guard lock(mutex_);
    return in_.size();
  }
  bool shut_down() const {
    std::lock_guard lock(mutex_);
    return shut_down_;
  }
  int flushes() const {
    std::lock_guard lock(mutex_);
    return flushes_;
  }

  // ---------------------------------------------------------------- wire::Channel
  wire::Result<size_t> TryRead(std::span<std::byte> buffer) override {
    std::lock_guard lock(mutex_);
    if (in_.empty()) {
      if (end_ || shut_down_) return wire::Status(wire::Code::kClosed, "the test closed the channel");
      return size_t{0};
    }
    const size_t size = std::min(buffer.size(), in_.size());
    std::copy_n(in_.begin(), size, buffer.begin());
    in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(size));
    if (in_.empty()) changed_.notify_all();
    return size;
  }
  wire::Status WaitReadable(wire::SpinPolicy, std::optional<std::chrono::nanoseconds> timeout) override {
    return Wait(timeout, [&] { return !in_.empty() || end_ || shut_down_; });
  }
  wire::Result<size_t> TryWrite(wire::Bytes bytes) override {
    std::lock_guard lock(mutex_);
    if (shut_down_) return wire::Status(wire::Code::kClosed, "the channel was shut down");
    const size_t size = std::min(bytes.size(), capacity_ - std::min(capacity_, out_.size()));
    out_.insert(out_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    changed_.notify_all();
    return size;
  }
  wire::Result<bool> TryFlush() override {
    std::lock_guard lock(mutex_);
    if (shut_down_) return wire::Status(wire::Code::kClosed, "the channel was shut down");
    ++flushes_;
    flushed_ = out_.size();
    return true;
  }
  wire::Status WaitWritable(std::optional<std::chrono::nanoseconds> timeout) override {
    return Wait(timeout, [&] { return out_.size() < capacity_ || shut_down_; });
  }
  size_t unflushed() const override {
    std::lock_guard lock(mutex_);
    return out_.size() - std::min(out_.size(), flushed_);
  }
  void Shutdown() override {
    std::lock_guard lock(mutex_);
    shut_down_ = true;
    changed_.notify_all();
  }
  void Abandon() override { Shutdown(); }

 private:
  template <typename Ready>
  wire::Status Wait(std::optional<std::chrono::nanoseconds> timeout, Ready ready) {
    std::unique_lock lock(mutex_);
    if (!timeout) {
      changed_.wait(lock, ready);
      return {};
    }
    if (changed_.wait_for(lock, *timeout, ready)) return {};
    return wire::Status(wire::Code::kTimeout, "nothing happened in time");
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::byte> in_;
  std::vector<std::byte> out_;
  size_t flushed_ = 0;
  int flushes_ = 0;
  size_t capacity_ = SIZE_MAX;
  bool end_ = false;
  bool shut_down_ = false;
};

}  // namespace hawser::server

#endif  // HAWSER_TESTS_UNIT_SERVER_FAKE_CHANNEL_H_
