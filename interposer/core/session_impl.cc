// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/session_impl.h"

#include <utility>

#include "interposer/core/log.h"

namespace hawser::guest {
namespace {

using std::chrono::microseconds;

wire::SpinPolicy SpinFor(const Connection& connection) {
  return {connection.gathers() ? microseconds(20) : microseconds(50)};
}

}  // namespace

void Verdict::OnReply(wire::Bytes payload) {
  wire::Reader reader(payload);  // Every API's Status begins with it.
  const auto status = reader.Get<int32_t>();
  status_ = reader.failed() ? Session::lost_code() : status;
  done_.store(true, std::memory_order_release);
}

Session::Impl::Impl(Session* owner, const Api& its_api, Connection set_up, std::unique_ptr<CommandTrace> command_trace)
    : session(owner),
      api(its_api),
      connection(std::move(set_up)),
      trace(std::move(command_trace)),
      stream(connection.command.get(), connection.gathers(), &replies, &bulk_order, &owner->stats_, trace.get(), this,
             api),
      command_pump(connection.command.get(), SpinFor(connection), &replies, &owner->stats_, this, api),
      receiver(&command_pump, "hawser-receive", [this] { Tell(); }),
      bulk_pump(connection.bulk.get(), SpinFor(connection), &transfers, &owner->stats_, this),
      bulk_receiver(&bulk_pump, "hawser-bulk", [this] { Tell(); }),
      bulk_sender(connection.bulk.get(), connection.bulk_chunk, &owner->stats_, this, &bulk_order),
      flusher(&stream),
      heap(connection.heap, connection.heap_size) {}

int32_t Session::Impl::Wait(Receiver& by, bool (*done)(void*), void* context) {
  if (session->life_.load(std::memory_order_acquire) == Life::kAbandoned) return lost_code();
  stream.Flush();
  if (done(context)) return 0;
  if (Receiver::DeliveringHere()) {
    Log(LogLevel::kError, "internal error: a sink waits for the server; it is told that the session is lost");
    return lost_code();
  }
  session->stats_.waits.fetch_add(1, std::memory_order_relaxed);
  if (!session->lost() && by.WaitUntil(done, context)) return 0;
  Tell();
  return lost_code();
}

void Session::Impl::End(const std::string& reason, uint32_t cause) {
  if (!loss.Mark(reason)) return;
  session->lost_cause_.store(cause, std::memory_order_relaxed);
  session->life_.store(Life::kLost, std::memory_order_release);
  Log(LogLevel::kError,
      "the session with %s is over: %s. Its devices are gone for this process (%s); "
      "start the program again",
      connection.endpoint.ToString().c_str(), reason.c_str(),
      cause != 0 ? ("error " + std::to_string(cause)).c_str() : api.lost_code_name);
  stream.Close();
  command_pump.Close();
  bulk_pump.Close();
  bulk_sender.Close();
  bulk_order.Close();
  connection.command->Shutdown();
  connection.bulk->Shutdown();
  // Perhaps nobody waits; callbacks must hear of it all the same.
  receiver.EndInBackground();
}

void Session::Impl::Tell() {
  loss.TellOnce([this](const std::string& reason) {
    receiver.Exclusively([&] {
      bulk_receiver.Exclusively([&] {
        for (ReplySink* sink : replies.Close()) sink->OnLost();
        for (BulkSink* sink : transfers.Close()) sink->OnEnd(lost_code());
        if (NoticeSink* sink = command_pump.notice_sink()) sink->OnLost(reason);
      });
    });
  });
}

void Session::Impl::AbandonAfterFork() {
  session->life_.store(Life::kAbandoned, std::memory_order_release);
  stream.Close();
  command_pump.Close();
  bulk_pump.Close();
  bulk_sender.Close();
  callbacks.AbandonAfterFork();
  connection.command->Abandon();
  connection.bulk->Abandon();
  connection.liveness.Reset();
}

void Session::Impl::KeepVerdict(uint64_t transfer, std::unique_ptr<Verdict> verdict) {
  std::lock_guard lock(verdicts_mutex_);
  verdicts_[transfer] = std::move(verdict);
}

void Session::Impl::DropVerdict(uint64_t transfer) {
  std::lock_guard lock(verdicts_mutex_);
  verdicts_.erase(transfer);
}

int32_t Session::Impl::AwaitVerdict(uint64_t transfer) {
  std::unique_ptr<Verdict> verdict;
  {
    std::lock_guard lock(verdicts_mutex_);
    const auto found = verdicts_.find(transfer);
    if (found == verdicts_.end()) return 0;
    verdict = std::move(found->second);
    verdicts_.erase(found);
  }
  return Await(*verdict);
}

int32_t Session::Impl::Await(const Verdict& verdict) {
  const auto done = [](void* context) { return static_cast<const Verdict*>(context)->done(); };
  const int32_t error = Wait(receiver, done, const_cast<Verdict*>(&verdict));
  return error != 0 ? error : verdict.status();
}

}  // namespace hawser::guest
