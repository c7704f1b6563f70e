// SPDX-License-Identifier: Apache-2.0
// Replies over the command channel.
//
// Threads: any thread sends; what the channel does not take at once goes to a backlog, and a thread
// of its own (started the first time that happens) waits for room and writes it. While the backlog
// is being written only that thread touches the channel's sending side. Lock: mutex_, held while a
// frame is copied into the channel; nothing is called under it but the channel.
#ifndef HAWSER_SERVER_WORKER_CHANNEL_REPLIES_H_
#define HAWSER_SERVER_WORKER_CHANNEL_REPLIES_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "server/session_stats.h"
#include "server/worker/services.h"
#include "wire/channel.h"
#include "wire/status.h"

namespace hawser::server {

class ChannelReplies final : public Replies {
 public:
  static constexpr size_t kDefaultMaxBacklog = size_t{64} << 20;

  /// `on_end` runs once, on the thread that noticed, without locks: the guest is gone (kClosed), or
  /// does not read its answers (kExhausted). Nothing is sent any more afterwards.
  ChannelReplies(wire::Channel* channel, size_t max_backlog, std::function<void(const wire::Status&)> on_end,
                 SessionStatsPage* stats = UncountedSession());
  /// Ends the writing thread; the channel must be shut down or writable.
  ~ChannelReplies() override;

  void Flush() override;

  /// Bytes that the guest has not taken yet.
  size_t backlog() const;

  /// For a crash handler: sends a ready frame if that needs no waiting and no lock held by others.
  /// Best effort: false when it could not.
  bool TrySendRaw(wire::Bytes frame);

 protected:
  void SendEncoded(uint16_t opcode, uint64_t seq, size_t size, bool flush, EncodeFunction encode,
                   const void* message) override;

 private:
  struct Pending {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
    size_t sent = 0;
  };

  void Write(wire::Bytes frame, bool flush);
  void Keep(wire::Bytes rest);
  void StartDraining();
  void DrainLoop();
  /// One round without waiting. True when nothing is left.
  wire::Result<bool> DrainSome();
  void End(std::unique_lock<std::mutex>& lock, const wire::Status& status);

  wire::Channel* const channel_;
  const size_t max_backlog_;
  std::function<void(const wire::Status&)> on_end_;
  SessionStatsPage* const stats_;

  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Pending> backlog_;
  size_t backlog_bytes_ = 0;
  bool draining_ = false;
  bool ended_ = false;
  bool stop_ = false;
  std::thread drainer_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_CHANNEL_REPLIES_H_
