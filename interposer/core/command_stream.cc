// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/command_stream.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "interposer/core/log.h"
#include "interposer/core/server_order.h"

namespace hawser::guest {
namespace {

using wire::FrameHeader;

/// A sender that waits for room looks this often whether the session is over.
constexpr std::chrono::milliseconds kSlice{20};
/// The buffer for large frames is given back above this size.
constexpr size_t kKeepLarge = 1u << 20;
/// So many commands without a receiver in between may have left many answers.
constexpr uint64_t kBusyMask = 4096 - 1;
/// FlushWhatFits() looks so often for the mutex.
constexpr int kFlushLooks = 100;

/// Single writer: no read-modify-write is needed.
inline void Bump(std::atomic<uint64_t>& counter, uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

bool CommandStream::Encode(const Command& command, std::byte* payload) const {
  wire::Writer writer(payload, command.size);
  command.encode(command.message, writer);
  if (!writer.failed() && writer.written() == command.size) [[likely]]
    return true;
  Log(LogLevel::kError, "%s cannot be sent: its size changed while it was encoded (%zu bytes announced, %zu written)",
      api_.opcode_name(command.opcode), command.size, writer.written());
  return false;
}

CommandStream::CommandStream(wire::Channel* channel, bool gathers, ReplyTable* replies, BulkOrder* order, Stats* stats,
                             CommandTrace* trace, StreamEvents* events, const Api& api)
    : channel_(channel),
      gathers_(gathers),
      replies_(replies),
      order_(order),
      stats_(stats),
      trace_(trace),
      events_(events),
      api_(api) {}

bool CommandStream::Send(const Command& command, ReplySink* sink) {
  const size_t size = sizeof(FrameHeader) + command.size;
  if (size > kStackFrame) [[unlikely]]
    return SendLarge(command, sink);
  std::byte frame[kStackFrame];
  if (!Encode(command, frame + sizeof(FrameHeader))) [[unlikely]]
    return false;
  if (closed_.load(std::memory_order_acquire)) [[unlikely]]
    return false;
  std::lock_guard lock(mutex_);
  return Write(command, frame, size, sink);
}

bool CommandStream::SendLarge(const Command& command, ReplySink* sink) {
  if (command.size > wire::kMaxFramePayload) {
    Log(LogLevel::kError, "%s cannot be sent: %zu bytes are more than the %u that one command may have",
        api_.opcode_name(command.opcode), command.size, wire::kMaxFramePayload);
    return false;
  }
  if (closed_.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(mutex_);
  const size_t size = sizeof(FrameHeader) + command.size;
  if (large_.size() < size) large_.resize(size);
  const bool sent = Encode(command, large_.data() + sizeof(FrameHeader)) && Write(command, large_.data(), size, sink);
  if (large_.size() > kKeepLarge) {
    large_.clear();
    large_.shrink_to_fit();
  }
  return sent;
}

bool CommandStream::Write(const Command& command, std::byte* frame, size_t size, ReplySink* sink) {
  BeforeServer();
  const uint64_t seq = seq_ + 1;
  const FrameHeader header{static_cast<uint32_t>(command.size), command.opcode, command.flags, seq};
  std::memcpy(frame, &header, sizeof(header));
  // Before the frame is visible: the answer may come at once.
  if (sink != nullptr && !replies_->Add(seq, sink)) return false;
  seq_ = seq;
  if (command.transfer != 0) [[unlikely]]
    order_->Announce(command.transfer);
  if (trace_ != nullptr) [[unlikely]] {
    trace_->Add(seq, command.opcode, wire::Bytes(frame + sizeof(header), command.size));
  }
  const wire::Result<size_t> taken = channel_->TryWrite(wire::Bytes(frame, size));
  if (!taken.ok()) [[unlikely]] {
    Fail(taken.status());
  } else if (taken.value() == size || WriteRest(wire::Bytes(frame, size).subspan(taken.value()))) [[likely]] {
    Bump(stats_->commands, 1);
    Bump(stats_->bytes_up, size);
    if (gathers_ && !unflushed_.load(std::memory_order_relaxed) && channel_->unflushed() != 0) {
      unflushed_.store(true, std::memory_order_release);
      Bump(batch_, 1);
      events_->OnUnflushed();
    }
    if ((seq & kBusyMask) == 0) [[unlikely]]
      events_->OnBusy();
    return true;
  }
  // A sink that is not in the table any more has heard of the loss, or is about to: then it counts as sent.
  return sink != nullptr && replies_->Take(seq) == nullptr;
}

/// Calls step() whenever there is room, until it says that all is done. False when the session is over.
template <typename Step>
bool CommandStream::RepeatWithRoom(Step step) {
  events_->OnBlocked();
  blocked_.store(true, std::memory_order_release);
  bool done = false;
  while (!done && WaitForRoom()) {
    const wire::Result<bool> result = step();
    if (!result.ok()) {
      Fail(result.status());
      break;
    }
    done = result.value();
  }
  blocked_.store(false, std::memory_order_release);
  events_->OnUnblocked();
  return done;
}

bool CommandStream::WriteRest(wire::Bytes rest) {
  return RepeatWithRoom([&]() -> wire::Result<bool> {
    const wire::Result<size_t> taken = channel_->TryWrite(rest);
    if (!taken.ok()) return taken.status();
    rest = rest.subspan(taken.value());
    return rest.empty();
  });
}

bool CommandStream::WaitForRoom() {
  if (closed_.load(std::memory_order_acquire)) return false;
  const wire::Status status = channel_->WaitWritable(kSlice);
  if (status.ok() || status.code() == wire::Code::kTimeout) return true;
  Fail(status);
  return false;
}

void CommandStream::FlushNow() {
  if (closed_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  if (unflushed_.load(std::memory_order_relaxed) && FlushLocked()) unflushed_.store(false, std::memory_order_release);
}

void CommandStream::FlushWhatFits() {
  if (closed_.load(std::memory_order_acquire)) return;
  // Whoever has the mutex copies one frame, or waits for room: that may need what the caller does next.
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int look = 0; !lock.owns_lock(); ++look) {
    if (look == kFlushLooks || blocked_.load(std::memory_order_acquire) || !unflushed()) return;
    std::this_thread::yield();
    (void)lock.try_lock();
  }
  if (!unflushed_.load(std::memory_order_relaxed)) return;
  const wire::Result<bool> done = channel_->TryFlush();
  if (!done.ok()) {
    Fail(done.status());
  } else if (done.value()) {
    unflushed_.store(false, std::memory_order_release);
  }
}

bool CommandStream::FlushLocked() {
  const wire::Result<bool> done = channel_->TryFlush();
  if (!done.ok()) {
    Fail(done.status());
    return false;
  }
  return done.value() || RepeatWithRoom([this] { return channel_->TryFlush(); });
}

void CommandStream::Fail(const wire::Status& status) {
  if (!closed_.exchange(true, std::memory_order_acq_rel)) events_->OnStreamFailed(status);
}

}  // namespace hawser::guest
