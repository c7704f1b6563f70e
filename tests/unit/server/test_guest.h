// SPDX-License-Identifier: Apache-2.0
// A guest that speaks frames, for tests: polite unless told otherwise.
#ifndef HAWSER_TESTS_UNIT_SERVER_TEST_GUEST_H_
#define HAWSER_TESTS_UNIT_SERVER_TEST_GUEST_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/opencl/messages.h"
#include "proto/session/messages.h"
#include "wire/channel.h"
#include "wire/frame_reader.h"
#include "wire/shm.h"
#include "wire/socket.h"

namespace hawser::server {

/// A Hello's fields with honest defaults.
struct HelloOptions {
  wire::Transport transport = wire::Transport::kUnix;
  uint32_t channel = 0;
  uint8_t nonce = 1;  ///< All 16 bytes.
  std::string token;
  std::string program = "test";
  uint32_t magic = 0x52535748;
  uint32_t version = session::kProtocolVersion;
  uint64_t description = session::kDescriptionHash;
};
std::vector<std::byte> HelloFrame(const HelloOptions& options);

/// What the server says first.
struct WelcomeText {
  bool accepted = false;
  std::string text;
  uint64_t session = 0;
  uint64_t heap_size = 0;
  uint32_t inline_limit = 0;
  uint32_t bulk_chunk = 0;
  std::vector<wire::Fd> fds;
};
/// Reads it from a blocking socket. kClosed when the connection ends first.
wire::Result<WelcomeText> ReadWelcome(int socket);

/// The two ends of a connected unix or TCP stream.
std::pair<wire::Fd, wire::Fd> ConnectedPair(wire::Transport transport);

class TestGuest {
 public:
  static constexpr std::chrono::seconds kPatience{20};

  struct Frame {
    wire::FrameHeader header;
    std::vector<std::byte> payload;
    opencl::Opcode opcode() const { return static_cast<opencl::Opcode>(header.opcode); }
    template <typename Message>
    Message As() const {
      Message message;
      wire::Reader reader(payload);
      message.Decode(reader);
      return message;
    }
  };

  /// After the welcome was read.
  TestGuest(wire::Transport transport, wire::Fd command, wire::Fd bulk, WelcomeText welcome);

  template <typename Message>
  uint64_t Send(opencl::Opcode opcode, const Message& message, uint16_t flags = 0) {
    std::vector<std::byte> payload(message.SizeOf());
    wire::Writer writer(payload.data(), payload.size());
    message.Encode(writer);
    wire::FrameHeader header;
    header.opcode = static_cast<uint16_t>(opcode);
    header.flags = flags;
    header.seq = ++seq_;
    sent_ = wire::WriteFrame(*command_, header, payload);
    return seq_;
  }
  /// Whether the last Send could be written.
  const wire::Status& sent() const { return sent_; }

  /// The next frame; nothing when the stream ended or kPatience ran out.
  std::optional<Frame> Next();
  /// Reads until the stream has ended; the frames that came before.
  std::vector<Frame> DrainToEnd();

  wire::Status SendBulk(uint64_t transfer, wire::Bytes data, uint32_t chunk = 1u << 20);
  /// One transfer's bytes; nothing when it was aborted, with the code in *status.
  std::optional<std::vector<std::byte>> ReceiveBulk(uint64_t transfer, int32_t* status);

  wire::Channel& command() { return *command_; }
  wire::Channel& bulk() { return *bulk_; }
  const WelcomeText& welcome() const { return welcome_; }
  /// Leaves without a word.
  void Leave();

 private:
  WelcomeText welcome_;
  wire::Fd liveness_;
  std::unique_ptr<wire::ShmSession> shm_;
  std::unique_ptr<wire::Channel> command_, bulk_;
  std::unique_ptr<wire::FrameReader> reader_;
  uint64_t seq_ = 0;
  wire::Status sent_;
};

}  // namespace hawser::server

#endif  // HAWSER_TESTS_UNIT_SERVER_TEST_GUEST_H_
