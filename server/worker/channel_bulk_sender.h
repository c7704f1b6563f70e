// SPDX-License-Identifier: Apache-2.0
// BulkSender over the bulk channel.
//
// Threads: any thread queues; one thread of its own, started with the first transfer, writes and may
// wait for the guest. Lock: mutex_ guards the queue; nothing is called under it.
#ifndef HAWSER_SERVER_WORKER_CHANNEL_BULK_SENDER_H_
#define HAWSER_SERVER_WORKER_CHANNEL_BULK_SENDER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "server/session_stats.h"
#include "server/worker/services.h"
#include "wire/channel.h"

namespace hawser::server {

class ChannelBulkSender final : public BulkSender {
 public:
  /// `chunk`: bytes of each chunk but the last, at most wire::kMaxBulkChunk.
  ChannelBulkSender(wire::Channel* channel, uint32_t chunk, SessionStatsPage* stats = UncountedSession());
  /// The channel must be shut down, or the queue empty. Runs what is still to be done.
  ~ChannelBulkSender() override;

  void Send(uint64_t transfer, wire::Bytes data, std::function<void()> done) override;
  void Abort(uint64_t transfer, int32_t status) override;

 private:
  struct Item {
    uint64_t transfer = 0;
    wire::Bytes data;
    std::function<void()> done;
    int32_t abort_status = 0;  ///< Not 0: an abort, without data.
  };

  void Queue(Item item);
  void Run();
  wire::Status Write(const Item& item);

  wire::Channel* const channel_;
  const uint32_t chunk_;
  SessionStatsPage* const stats_;

  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Item> queue_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_CHANNEL_BULK_SENDER_H_
