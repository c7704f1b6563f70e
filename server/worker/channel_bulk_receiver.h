// SPDX-License-Identifier: Apache-2.0
// BulkReceiver over the bulk channel.
//
// Threads: the receiver thread (started by the first announcement) reads chunks, straight into the
// target when it is known and into staging memory otherwise. The finisher thread (started when first
// needed) completes transfers whose data came before their announcement. Any thread announces.
// Lock: mutex_ guards the table; it is not held while bytes are read or copied (the transfer is
// marked busy instead), nor while `done` runs.
//
// What bounds it: data of an unknown transfer waits in the channel until the executor announces it.
// A guest sends data in the order of its commands, so what the executor waits for within a command is
// never behind it; a guest that does not stops only itself. Only while the executor itself waits in Receive() are
// unknown transfers staged, because their announcements are then behind the command that waits. When staging memory is
// full the receiver waits for room for as long as `staging_patience`, then that transfer fails with
// CL_OUT_OF_HOST_MEMORY and its bytes are read and dropped: nothing behind it is ever stuck.
#ifndef HAWSER_SERVER_WORKER_CHANNEL_BULK_RECEIVER_H_
#define HAWSER_SERVER_WORKER_CHANNEL_BULK_RECEIVER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "server/session_stats.h"
#include "server/worker/name_window.h"
#include "server/worker/services.h"
#include "server/worker/staging_buffer.h"
#include "wire/channel.h"
#include "wire/frame.h"

namespace hawser::server {

class ChannelBulkReceiver final : public BulkReceiver {
 public:
  struct Options {
    uint64_t staging_memory = 1u << 30;
    std::chrono::milliseconds staging_patience{2000};
    SessionStatsPage* stats = UncountedSession();  ///< Borrowed.
  };

  /// `on_violation` runs once, on the receiver thread, when the guest breaks the protocol; the text
  /// says how. Nothing more is received afterwards.
  ChannelBulkReceiver(wire::Channel* channel, const Options& options,
                      std::function<void(const std::string&)> on_violation);
  /// Shuts the channel down and joins the threads. Transfers that are not complete end with
  /// CL_OUT_OF_RESOURCES.
  ~ChannelBulkReceiver() override;

  bool Expect(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done) override;
  bool Drop(uint64_t transfer, uint64_t size) override;
  void SetTarget(uint64_t transfer, std::byte* target) override;
  int32_t Receive(uint64_t transfer, uint64_t size, std::byte* target) override;

  /// Bytes of staging memory held now.
  uint64_t staged() const;
  /// Transfers in the table now.
  size_t pending() const;

 private:
  struct Transfer {
    uint64_t size = 0;      ///< As announced.
    uint64_t received = 0;  ///< Bytes that arrived, wherever they are.
    std::byte* target = nullptr;
    StagingBuffer staging;  ///< Bytes [0, received) while the target is not known.
    std::function<void(int32_t)> done;
    bool announced = false;
    bool busy = false;    ///< Some thread reads into or copies out of its memory; not to be erased.
    bool ended = false;   ///< The guest sent the last chunk, or an abort.
    bool failed = false;  ///< Bytes are dropped; `done` has run, or will when it is announced.
    int32_t failure = 0;
  };
  using Table = std::unordered_map<uint64_t, Transfer>;
  using Lock = std::unique_lock<std::mutex>;

  /// Under the lock; `failure` not 0: the bytes are dropped.
  bool Announce(uint64_t transfer, uint64_t size, std::byte* target, std::function<void(int32_t)> done,
                int32_t failure);
  void Run();
  /// False when the receiver must stop; `violation` then says why, if the guest is to blame.
  bool Handle(const wire::BulkHeader& header, std::string* violation);
  /// The transfer with this name, not busy. Null: the receiver must stop.
  Transfer* FindOrWait(uint64_t name, Lock& lock, std::string* violation);
  /// Where the next `size` bytes go: the target, staging, or null: drop them.
  std::byte* Place(Transfer* transfer, uint64_t size, Lock& lock);
  bool Discard(uint64_t size);
  /// Copies staged bytes to the target, if there are any and it is known. Releases the lock meanwhile.
  void MoveStaged(Transfer* transfer, Lock& lock);
  /// If the transfer is over, removes it and runs `done`. Releases the lock when it does.
  void FinishIfOver(uint64_t name, Lock& lock);
  void FinishLater(uint64_t name);
  void FinishLoop();
  void EndAll();

  wire::Channel* const channel_;
  const Options options_;
  std::function<void(const std::string&)> on_violation_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Table table_;
  NameWindow names_;
  StagingAccount account_;
  int receiving_ = 0;   ///< Threads inside Receive().
  bool ended_ = false;  ///< No bytes will come any more.
  bool stop_ = false;
  std::thread receiver_;
  std::deque<uint64_t> to_finish_;
  std::thread finisher_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_CHANNEL_BULK_RECEIVER_H_
