// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/command_pump.h"

#include "interposer/core/log.h"
#include "interposer/core/server_order.h"

namespace hawser::guest {
namespace {

/// After so many frames the role's holder looks at its own condition.
constexpr int kBatch = 64;

}  // namespace

CommandPump::CommandPump(wire::Channel* channel, wire::SpinPolicy spin, ReplyTable* replies, Stats* stats,
                         LossListener* loss, const Api& api)
    : channel_(channel), spin_(spin), replies_(replies), stats_(stats), loss_(loss), api_(api), reader_(channel) {}

Pump::Outcome CommandPump::Deliver() {
  for (int frames = 0; frames < kBatch; ++frames) {
    if (closed_.load(std::memory_order_acquire)) return Outcome::kEnded;
    wire::FrameHeader header;
    wire::Bytes payload;
    wire::Status status;
    switch (reader_.Pull(&header, &payload, &status)) {
      case wire::FrameReader::Next::kFrame:
        Dispatch(header, payload);
        break;
      case wire::FrameReader::Next::kNeedMore:
        return frames == 0 ? Outcome::kIdle : Outcome::kProgress;
      case wire::FrameReader::Next::kClosed:
      case wire::FrameReader::Next::kError:
        return End(status.text());
    }
  }
  return Outcome::kProgress;
}

void CommandPump::Dispatch(const wire::FrameHeader& header, wire::Bytes payload) {
  BehindServer();
  // Only the holder of the receive role counts these.
  stats_->bytes_down.store(stats_->bytes_down.load(std::memory_order_relaxed) + sizeof(header) + payload.size(),
                           std::memory_order_relaxed);
  if (header.seq != 0) {
    if (ReplySink* sink = replies_->Take(header.seq)) {
      sink->OnReply(payload);
    } else {
      Log(LogLevel::kDebug, "an answer to %s (command %llu) that nobody waits for", api_.opcode_name(header.opcode),
          static_cast<unsigned long long>(header.seq));
    }
    return;
  }
  if (header.opcode == api_.session_lost) {
    wire::Reader reader(payload);
    const std::string reason(reader.GetString());
    // Not every API has one.
    const uint32_t cause = reader.remaining() >= sizeof(uint32_t) ? reader.Get<uint32_t>() : 0;
    (void)End(!reader.failed() ? reason : "the server ended the session without a reason", cause);
    return;
  }
  if (NoticeSink* sink = notice_sink()) sink->OnNotice(header.opcode, payload);
}

Pump::Outcome CommandPump::End(const std::string& reason, uint32_t cause) {
  loss_->OnChannelEnded(reason, cause);
  Close();
  return Outcome::kEnded;
}

void CommandPump::Park(bool spin) {
  // An error shows again in the next Deliver().
  (void)channel_->WaitReadable(spin ? spin_ : wire::SpinPolicy{}, std::nullopt);
}

}  // namespace hawser::guest
