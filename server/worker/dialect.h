// SPDX-License-Identifier: Apache-2.0
// What the worker itself says to a guest, in the words of the session's interface, and what it must know of that
// interface's frames. Everything else in the worker knows frames only as numbers and bytes.
#ifndef HAWSER_SERVER_WORKER_DIALECT_H_
#define HAWSER_SERVER_WORKER_DIALECT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/worker/services.h"
#include "wire/api.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/id.h"

namespace hawser::server {

/// Stateless; may be called from any thread.
class Dialect {
 public:
  virtual ~Dialect() = default;

  virtual wire::Api api() const = 0;
  /// The call as applications know it; "?" when unknown.
  virtual const char* OpcodeName(uint16_t opcode) const = 0;
  /// True for a call whose server answers with a message of its own.
  virtual bool HasReply(uint16_t opcode) const = 0;

  /// The answer to a frame that wants a status.
  virtual void SendStatus(Replies* replies, const wire::FrameHeader& command, int32_t status) const = 0;
  /// A command that has no reply failed. `object` should have been created by it, `queue` was to execute it.
  virtual void SendFailure(Replies* replies, const wire::FrameHeader& command, int32_t status, wire::Id object,
                           wire::Id queue, std::string_view text) const = 0;
  /// Why the session ends. `cause` is a SessionStatsPage::Cause, where the API has a name for it.
  virtual void SendLost(Replies* replies, std::string_view reason, uint32_t cause) const = 0;
  /// What kernels printed.
  virtual void SendOutput(Replies* replies, wire::Bytes text, bool flush) const = 0;
  /// The frame that SendLost would send, for a signal handler to send later. Returns its size; 0: no room.
  virtual size_t EncodeLost(std::string_view reason, std::span<std::byte> frame) const = 0;

 protected:
  static constexpr size_t kMaxText = 4096;
  static std::string_view Clip(std::string_view text) { return text.substr(0, kMaxText); }

  /// For EncodeLost.
  template <typename Message, typename Opcode>
  static size_t EncodeFrame(const Message& message, Opcode opcode, std::span<std::byte> frame) {
    const wire::FrameHeader header{static_cast<uint32_t>(message.SizeOf()), static_cast<uint16_t>(opcode), 0, 0};
    wire::Writer writer(frame.data(), frame.size());
    writer.Put(header);
    message.Encode(writer);
    return writer.failed() ? 0 : writer.written();
  }
};

const Dialect& OpenClDialect();

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_DIALECT_H_
