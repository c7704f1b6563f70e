// SPDX-License-Identifier: Apache-2.0
// The parts of a session and how they are wired together.
//
// The end of a session. Whoever sees a channel end calls End(), which never waits: it says so once on stderr, closes
// all parts and shuts both channels down, so that everybody who waits comes back. Telling the sinks (Tell()) is done
// once, by the first thread that may: one that waits for answers, or the receiver's background thread; it holds
// both receive roles meanwhile, so that no sink is in use by anybody else. Whoever waits returns after that.
//
// Lock order: stream mutex -> reply table, flusher, receiver. Transfer table -> bulk receiver. Loss -> nothing.
// Command receive role -> bulk receive role (only in Tell()).
#ifndef HAWSER_INTERPOSER_CORE_SESSION_IMPL_H_
#define HAWSER_INTERPOSER_CORE_SESSION_IMPL_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "interposer/core/bulk_order.h"
#include "interposer/core/bulk_pump.h"
#include "interposer/core/bulk_sender.h"
#include "interposer/core/callback_thread.h"
#include "interposer/core/command_pump.h"
#include "interposer/core/command_stream.h"
#include "interposer/core/command_trace.h"
#include "interposer/core/connector.h"
#include "interposer/core/flush_thread.h"
#include "interposer/core/heap_allocator.h"
#include "interposer/core/heap_returner.h"
#include "interposer/core/id_pools.h"
#include "interposer/core/loss.h"
#include "interposer/core/receiver.h"
#include "interposer/core/reply_table.h"
#include "interposer/core/session.h"
#include "interposer/core/transfer_table.h"

namespace hawser::guest {

/// Waits for one reply and keeps it.
class KeptReply final : public ReplySink {
 public:
  explicit KeptReply(std::vector<std::byte>* payload) : payload_(payload) {}
  void OnReply(wire::Bytes payload) override {
    payload_->assign(payload.begin(), payload.end());
    done_.store(true, std::memory_order_release);
  }
  void OnLost() override {}  ///< Whoever waits hears it from WaitUntil.
  bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  std::vector<std::byte>* const payload_;
  std::atomic<bool> done_{false};
};

/// Strict mode: the server's verdict on one command.
class Verdict final : public ReplySink {
 public:
  void OnReply(wire::Bytes payload) override;
  void OnLost() override {}
  bool done() const { return done_.load(std::memory_order_acquire); }
  int32_t status() const { return status_; }

 private:
  int32_t status_ = 0;
  std::atomic<bool> done_{false};
};

class Session::Impl final : private StreamEvents, private LossListener {
 public:
  Impl(Session* session, const Api& api, Connection connection, std::unique_ptr<CommandTrace> trace);

  /// Waits until done(context), then 0; lost_code() when the session ended before and all sinks know.
  int32_t Wait(Receiver& by, bool (*done)(void*), void* context);
  /// Ends the session. The first caller's reason is logged, and its cause kept.
  void End(const std::string& reason, uint32_t cause = 0);
  /// Tells all sinks that the session is over, once.
  void Tell();
  void AbandonAfterFork();

  /// Strict mode: the verdict on a command whose data follows as a transfer.
  void KeepVerdict(uint64_t transfer, std::unique_ptr<Verdict> verdict);
  void DropVerdict(uint64_t transfer);
  int32_t AwaitVerdict(uint64_t transfer);
  int32_t Await(const Verdict& verdict);

  Session* const session;
  const Api& api;
  Connection connection;
  const std::unique_ptr<CommandTrace> trace;
  ReplyTable replies;
  BulkOrder bulk_order;
  CommandStream stream;
  CommandPump command_pump;
  Receiver receiver;
  TransferTable transfers;
  BulkPump bulk_pump;
  Receiver bulk_receiver;
  BulkSender bulk_sender;
  FlushThread flusher;
  CallbackThread callbacks{"hawser-callback"};
  CallbackThread chores{"hawser-chores"};  ///< Of this library.
  HeapAllocator heap;
  HeapReturner heap_returner{&heap};
  IdPools ids;
  Loss loss;
  std::atomic<uint64_t> next_transfer{1};

 private:
  void OnUnflushed() override { flusher.Arm(); }
  void OnBusy() override { receiver.DrainInBackground(); }
  void OnBlocked() override { receiver.AddInterest(); }
  void OnUnblocked() override { receiver.RemoveInterest(); }
  void OnStreamFailed(const wire::Status& status) override { End(status.text()); }
  void OnChannelEnded(const std::string& reason, uint32_t cause) override { End(reason, cause); }

  std::mutex verdicts_mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Verdict>> verdicts_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_SESSION_IMPL_H_
