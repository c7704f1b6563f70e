// SPDX-License-Identifier: Apache-2.0
// The sending side of the command channel: one ordered stream for all threads of the process.
//
// Locks: the stream mutex (here), then the reply table's or the bulk order's. StreamEvents are called under the stream
// mutex. The path of a command without reply, up to kStackFrame bytes: encode on the stack, lock, copy into the
// channel, unlock. Nothing allocates; over shared memory no system call happens unless the server sleeps.
#ifndef HAWSER_INTERPOSER_CORE_COMMAND_STREAM_H_
#define HAWSER_INTERPOSER_CORE_COMMAND_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/core/api.h"
#include "interposer/core/bulk_order.h"
#include "interposer/core/command_trace.h"
#include "interposer/core/reply_table.h"
#include "interposer/core/session.h"
#include "wire/channel.h"
#include "wire/frame.h"
#include "wire/status.h"

namespace hawser::guest {

/// What the stream tells its owner, under the stream mutex: the functions must neither wait nor send.
class StreamEvents {
 public:
  virtual void OnUnflushed() = 0;  ///< A batch began that somebody must flush.
  virtual void OnBusy() = 0;       ///< Many commands were sent: somebody should receive what they caused.
  /// The channel is full: until OnUnblocked() somebody must receive, so that the server can go on.
  virtual void OnBlocked() = 0;
  virtual void OnUnblocked() = 0;
  virtual void OnStreamFailed(const wire::Status& status) = 0;

 protected:
  ~StreamEvents() = default;
};

/// One command before it has a number. Points to the caller's message.
struct Command {
  uint16_t opcode;
  uint16_t flags;  ///< wire::FrameFlags
  size_t size;     ///< Of the payload.
  void (*encode)(const void* message, wire::Writer& writer);
  const void* message;
  uint64_t transfer = 0;  ///< Whose data the caller sends behind the command; 0: none.
};

class CommandStream {
 public:
  /// All borrowed; `trace` may be null. `gathers`: the channel keeps bytes until a flush (sockets).
  CommandStream(wire::Channel* channel, bool gathers, ReplyTable* replies, BulkOrder* order, Stats* stats,
                CommandTrace* trace, StreamEvents* events, const Api& api);

  /// Numbers and sends a command; `sink` (may be null) is registered before the server can see it.
  /// False: nothing was sent and the sink will not be called.
  bool Send(const Command& command, ReplySink* sink);
  /// Hands everything to the transport, waiting for room if need be.
  void Flush() {
    if (unflushed_.load(std::memory_order_acquire)) FlushNow();
  }
  /// The same without waiting for room: what does not fit is left to whoever armed the flush (OnUnflushed).
  void FlushWhatFits();
  /// Counts the batches that OnUnflushed() announced.
  uint64_t batch() const { return batch_.load(std::memory_order_relaxed); }
  bool unflushed() const { return unflushed_.load(std::memory_order_acquire); }
  /// From now on nothing is sent. Does not lock.
  void Close() { closed_.store(true, std::memory_order_release); }

 private:
  static constexpr size_t kStackFrame = 512;

  bool Encode(const Command& command, std::byte* payload) const;
  bool SendLarge(const Command& command, ReplySink* sink);
  bool Write(const Command& command, std::byte* frame, size_t size, ReplySink* sink);
  bool WriteRest(wire::Bytes rest);
  template <typename Step>
  bool RepeatWithRoom(Step step);
  void FlushNow();
  bool FlushLocked();
  bool WaitForRoom();
  void Fail(const wire::Status& status);

  wire::Channel* const channel_;
  const bool gathers_;
  ReplyTable* const replies_;
  BulkOrder* const order_;
  Stats* const stats_;
  CommandTrace* const trace_;
  StreamEvents* const events_;
  const Api& api_;

  std::atomic<bool> closed_{false};
  std::atomic<bool> unflushed_{false};  ///< Written under the mutex.
  std::atomic<bool> blocked_{false};    ///< The holder of the mutex waits for room.
  std::atomic<uint64_t> batch_{0};      ///< Written under the mutex.
  std::mutex mutex_;
  uint64_t seq_ = 0;              ///< Of the last command.
  std::vector<std::byte> large_;  ///< For frames beyond kStackFrame.
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_COMMAND_STREAM_H_
