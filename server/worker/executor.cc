// SPDX-License-Identifier: Apache-2.0
#include "server/worker/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wire/frame.h"
#include "wire/short_slice.h"

namespace hawser::server {
namespace {

using wire::Bytes;
using wire::FrameHeader;
using wire::FrameReader;
using wire::Status;

/// The answer to a call that was refused before its handler ran. Every reply begins with a status,
/// and zeros behind it read as empty lists, so this decodes as whatever reply the guest waits for.
struct RefusedReply {
  static constexpr size_t kZeros = 60;
  int32_t status = 0;

  size_t SizeOf() const { return sizeof(status) + kZeros; }
  void Encode(wire::Writer& writer) const {
    const std::byte zeros[kZeros] = {};
    writer.Put(status);
    writer.PutRaw(zeros, sizeof(zeros));
  }
};

}  // namespace

Executor::Executor(wire::Channel* commands, SessionBackend* backend, Replies* replies, SessionLog* log,
                   wire::SpinPolicy spin, SessionStatsPage* stats)
    : commands_(commands),
      backend_(backend),
      dialect_(backend->dialect()),
      replies_(replies),
      log_(log),
      spin_(spin),
      stats_(stats),
      reader_(commands) {
  if (const Status status = commands->EnableInterrupts(); !status.ok()) log_->Write("warning", status.text());
  SessionBackend::Later later;
  later.wake = [this] { commands_->InterruptRead(); };
  later.report = [this](const FrameHeader& header, const SessionBackend::Outcome& outcome, const std::string& refusal) {
    (void)Conclude(header, outcome, refusal);
  };
  backend->SetLater(std::move(later));
}

std::string Executor::Where(const FrameHeader& header) const {
  return std::string("command ") + std::to_string(header.seq) + " (" + dialect_.OpcodeName(header.opcode) + ")";
}

Executor::End Executor::Run() {
  (void)wire::TakeShortSlices();
  const End end = Loop();
  if (end != End::kLost) return end;
  // Another thread may be telling the guest at this moment.
  lost_.wait(false, std::memory_order_acquire);
  return dead_.load(std::memory_order_relaxed) ? End::kGuestLeft : End::kLost;
}

Executor::End Executor::Loop() {
  FrameHeader header;
  Bytes payload;
  Status status;
  for (;;) {
    switch (reader_.Pull(&header, &payload, &status)) {
      case FrameReader::Next::kFrame:
        if (lost_.load(std::memory_order_relaxed) || !Execute(header, payload)) return End::kLost;
        break;
      case FrameReader::Next::kNeedMore:
        if (lost_.load(std::memory_order_acquire)) return End::kLost;
        backend_->Resume();
        replies_->Flush();
        // Errors of the wait are seen, with their reason, by the next Pull().
        (void)commands_->WaitReadable(spin_, std::nullopt);
        break;
      case FrameReader::Next::kClosed:
        if (ending_.load(std::memory_order_acquire)) return End::kLost;
        if (reader_.buffered() != 0) log_->Write("info", "the guest left in the middle of a command");
        return End::kGuestLeft;
      case FrameReader::Next::kError:
        Lose("the command stream is broken: " + status.text());
        return End::kLost;
    }
  }
}

bool Executor::Execute(const FrameHeader& header, Bytes payload) {
  if (header.seq != next_seq_) [[unlikely]] {
    Lose("command " + std::to_string(header.seq) + " came where " + std::to_string(next_seq_) + " was due");
    return false;
  }
  if ((header.flags & ~wire::kWantStatus) != 0) [[unlikely]] {
    Lose(Where(header) + " has unknown flags");
    return false;
  }
  ++next_seq_;
  stats_->commands.Add(1);
  stats_->command_bytes.Add(sizeof(header) + payload.size());
  SessionBackend::Outcome outcome;
  if (!TraceRing::Wants(stats_->trace, TraceRingKind::kCommand)) [[likely]] {
    outcome = backend_->Execute(header, payload, &error_);
  } else {
    const uint64_t begin = TraceRing::Now();
    outcome = backend_->Execute(header, payload, &error_);
    stats_->ring.Record(TraceRingKind::kCommand, 0, begin, TraceRing::Now(), dialect_.OpcodeName(header.opcode));
  }
  if (!Conclude(header, outcome, error_)) [[unlikely]]
    return false;
  if (!error_.empty()) [[unlikely]]
    error_.clear();
  return true;
}

bool Executor::Conclude(const FrameHeader& header, const SessionBackend::Outcome& outcome, const std::string& refusal) {
  if (outcome.malformed) [[unlikely]] {
    Lose(Where(header) + " is malformed: " + refusal);
    return false;
  }
  if (outcome.deferred) [[unlikely]]
    return true;
  if (outcome.status != 0 || (header.flags & wire::kWantStatus) != 0) [[unlikely]] {
    Report(header, outcome.status, refusal);
  }
  return true;
}

void Executor::Report(const FrameHeader& header, int32_t status, const std::string& refusal) {
  if (dialect_.HasReply(header.opcode)) {
    // The handler answers by itself and returns 0; an error is a refusal before it ran.
    if (status != 0) replies_->Send(header.opcode, header.seq, RefusedReply{status}, true);
    return;
  }
  SessionBackend::Failure failure;
  if (status != 0) failure = backend_->TakeFailure();
  if ((header.flags & wire::kWantStatus) != 0) {
    dialect_.SendStatus(replies_, header, status);
    return;
  }
  dialect_.SendFailure(replies_, header, status, failure.object, failure.queue,
                       refusal.empty() ? failure.text : refusal);
}

void Executor::Lose(const std::string& reason, bool tell_guest) { EndSession("error", reason, tell_guest, 0); }

void Executor::Stop(const std::string& reason, uint32_t cause) {
  EndSession("info", reason, /*tell_guest=*/true, cause);
}

void Executor::Abandon() {
  if (ending_.exchange(true, std::memory_order_acq_rel)) return;
  dead_.store(true, std::memory_order_relaxed);
  lost_.store(true, std::memory_order_release);
  lost_.notify_all();
  commands_->Shutdown();
}

void Executor::EndSession(std::string_view level, const std::string& reason, bool tell_guest, uint32_t cause) {
  if (ending_.exchange(true, std::memory_order_acq_rel)) return;
  log_->Write(level, "the session ends: " + reason);
  if (tell_guest) dialect_.SendLost(replies_, reason, cause);
  // Only now, because the process may end as soon as the executor sees it.
  lost_.store(true, std::memory_order_release);
  lost_.notify_all();
  commands_->Shutdown();
}

}  // namespace hawser::server
