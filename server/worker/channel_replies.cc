// SPDX-License-Identifier: Apache-2.0
#include "server/worker/channel_replies.h"

#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "wire/frame.h"

namespace hawser::server {
namespace {

using wire::Bytes;
using wire::Code;
using wire::Result;
using wire::Status;

/// Frames up to this size are encoded on the stack.
constexpr size_t kSmallFrame = 4096;

}  // namespace

ChannelReplies::ChannelReplies(wire::Channel* channel, size_t max_backlog, std::function<void(const Status&)> on_end,
                               SessionStatsPage* stats)
    : channel_(channel), max_backlog_(max_backlog), on_end_(std::move(on_end)), stats_(stats) {}

ChannelReplies::~ChannelReplies() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  if (drainer_.joinable()) drainer_.join();
}

void ChannelReplies::SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool flush, EncodeFunction encode,
                                 const void* message) {
  if (size > wire::kMaxFramePayload) [[unlikely]] {
    std::unique_lock lock(mutex_);
    End(lock, Status(Code::kExhausted, "an answer (opcode " + std::to_string(opcode) + ") has " + std::to_string(size) +
                                           " bytes, more than a frame may have"));
    return;
  }
  const wire::FrameHeader header{static_cast<uint32_t>(size), opcode, 0, seq};
  const size_t total = sizeof(header) + size;
  std::byte small[kSmallFrame];
  std::unique_ptr<std::byte[]> large;
  std::byte* frame = small;
  if (total > sizeof(small)) {
    large = std::make_unique_for_overwrite<std::byte[]>(total);
    frame = large.get();
  }
  std::memcpy(frame, &header, sizeof(header));
  wire::Writer writer(frame + sizeof(header), size);
  encode(message, writer);
  Write(Bytes(frame, total), flush);
}

void ChannelReplies::Write(Bytes frame, bool flush) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  stats_->reply_bytes.Add(frame.size());
  if (!draining_) [[likely]] {
    Result<size_t> taken = channel_->TryWrite(frame);
    if (!taken.ok()) return End(lock, taken.status());
    frame = frame.subspan(*taken);
    if (frame.empty()) [[likely]] {
      if (!flush) return;
      Result<bool> flushed = channel_->TryFlush();
      if (!flushed.ok()) return End(lock, flushed.status());
      if (!*flushed) StartDraining();
      return;
    }
  }
  if (backlog_bytes_ + frame.size() > max_backlog_) {
    return End(lock, Status(Code::kExhausted, "the guest does not read its answers: " +
                                                  std::to_string(backlog_bytes_ >> 20) + " MiB are waiting"));
  }
  Keep(frame);
  StartDraining();
}

void ChannelReplies::Keep(Bytes rest) {
  Pending pending{std::make_unique_for_overwrite<std::byte[]>(rest.size()), rest.size(), 0};
  std::memcpy(pending.bytes.get(), rest.data(), rest.size());
  backlog_.push_back(std::move(pending));
  backlog_bytes_ += rest.size();
}

void ChannelReplies::StartDraining() {
  if (draining_ || stop_) return;
  draining_ = true;
  if (!drainer_.joinable()) drainer_ = std::thread([this] { DrainLoop(); });
  work_.notify_all();
}

void ChannelReplies::Flush() {
  std::unique_lock lock(mutex_);
  if (ended_ || draining_ || channel_->unflushed() == 0) return;
  Result<bool> flushed = channel_->TryFlush();
  if (!flushed.ok()) return End(lock, flushed.status());
  if (!*flushed) StartDraining();
}

size_t ChannelReplies::backlog() const {
  std::lock_guard lock(mutex_);
  return backlog_bytes_;
}

bool ChannelReplies::TrySendRaw(Bytes frame) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || ended_ || draining_) return false;
  Result<size_t> taken = channel_->TryWrite(frame);
  if (!taken.ok() || *taken != frame.size()) return false;
  Result<bool> flushed = channel_->TryFlush();
  return flushed.ok() && *flushed;
}

Result<bool> ChannelReplies::DrainSome() {
  while (!backlog_.empty()) {
    Pending& front = backlog_.front();
    Result<size_t> taken = channel_->TryWrite(Bytes(front.bytes.get() + front.sent, front.size - front.sent));
    if (!taken.ok()) return taken.status();
    if (*taken == 0) return false;
    front.sent += *taken;
    backlog_bytes_ -= *taken;
    if (front.sent == front.size) backlog_.pop_front();
  }
  return channel_->TryFlush();
}

void ChannelReplies::DrainLoop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stop_ || draining_; });
    if (stop_) return;
    Result<bool> drained = ended_ ? Result<bool>(true) : DrainSome();
    if (!drained.ok()) {
      End(lock, drained.status());
      lock.lock();
      draining_ = false;
      continue;
    }
    if (*drained) {
      draining_ = false;
      continue;
    }
    lock.unlock();
    // A bounded wait, so that the destructor is noticed even if the channel says nothing.
    const Status status = channel_->WaitWritable(std::chrono::milliseconds(500));
    lock.lock();
    if (!status.ok() && status.code() != Code::kTimeout) {
      End(lock, status);
      lock.lock();
      draining_ = false;
    }
  }
}

void ChannelReplies::End(std::unique_lock<std::mutex>& lock, const Status& status) {
  const bool first = !ended_;
  ended_ = true;
  backlog_.clear();
  backlog_bytes_ = 0;
  lock.unlock();
  if (first && on_end_) on_end_(status);
}

}  // namespace hawser::server
