// SPDX-License-Identifier: Apache-2.0
// A server in this process that a test scripts frame by frame.
#ifndef HAWSER_TESTS_UNIT_INTERPOSER_CORE_FAKE_SERVER_H_
#define HAWSER_TESTS_UNIT_INTERPOSER_CORE_FAKE_SERVER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "interposer/core/session.h"
#include "interposer/core/session_builder.h"
#include "proto/opencl/messages.h"
#include "proto/session/messages.h"
#include "wire/channel.h"
#include "wire/endpoint.h"
#include "wire/frame_reader.h"
#include "wire/shm.h"
#include "wire/socket.h"

namespace hawser::guest {

/// The server's end of one session.
class Peer {
 public:
  ~Peer();
  /// Waits for the next command. False at the end of the stream.
  bool Next(wire::FrameHeader* header, std::vector<std::byte>* payload);
  /// Runs `handler` for each command on a thread of its own, until the stream ends.
  void Serve(std::function<void(const wire::FrameHeader&, wire::Bytes)> handler);
  /// The same, spinning for a while before it sleeps, as a real server does.
  void ServeSpinning(std::function<void(const wire::FrameHeader&, wire::Bytes)> handler) {
    spin_.spin = std::chrono::microseconds(50);
    Serve(std::move(handler));
  }
  /// Ends the session from this side and joins the thread.
  void Stop();

  template <typename Message>
  void Reply(const wire::FrameHeader& to, const Message& message) {
    Send(to.opcode, to.seq, message);
  }
  template <typename Message>
  void Notify(const Message& message) {
    Send(static_cast<uint16_t>(opencl::OpcodeOf<Message>::value), 0, message);
  }
  template <typename Message>
  void Send(uint16_t opcode, uint64_t seq, const Message& message) {
    std::vector<std::byte> payload(message.SizeOf());
    wire::Writer writer(payload.data(), payload.size());
    message.Encode(writer);
    SendRaw(opcode, seq, payload);
  }
  void SendRaw(uint16_t opcode, uint64_t seq, wire::Bytes payload);
  void SendBulk(uint64_t transfer, wire::Bytes data, uint32_t chunk);
  void AbortBulk(uint64_t transfer, int32_t status);
  /// Receives one whole transfer.
  std::vector<std::byte> ReceiveBulk(uint64_t* transfer);

  std::unique_ptr<wire::Channel> command, bulk;
  wire::Fd liveness, heap;
  session::Hello hello;  ///< Views into hello_bytes.

 private:
  friend class FakeServer;
  std::vector<std::byte> hello_bytes_;
  std::unique_ptr<wire::FrameReader> reader_;
  wire::SpinPolicy spin_;
  std::thread thread_;
};

struct FakeServerOptions {
  uint64_t heap_size = 0;
  uint32_t bulk_chunk = 64u << 10;
  wire::ShmLayout layout{};
  uint64_t description = opencl::kDescriptionHash;
  std::string refuse;  ///< Not empty: refuse with this text.
  bool refuse_on_bulk = false;
};

class FakeServer {
 public:
  explicit FakeServer(wire::Transport transport, FakeServerOptions options = {});
  ~FakeServer();

  const std::string& uri() const { return uri_; }
  /// Takes one guest: reads its Hellos and answers. Null if refused by the options.
  std::unique_ptr<Peer> Accept();

  struct Pair {
    Session* session;  ///< Lives for ever.
    std::unique_ptr<Peer> peer;
  };
  /// A guest session in this process and its peer.
  Pair Connect(bool strict = false);
  Environment GuestEnvironment(bool strict = false) const;

 private:
  wire::Fd TakeConnection(std::vector<std::byte>* hello);
  void Welcome(int socket, std::span<const int> fds);

  const wire::Transport transport_;
  const FakeServerOptions options_;
  std::string directory_, path_, uri_;
  wire::Fd listener_;
};

}  // namespace hawser::guest

#endif  // HAWSER_TESTS_UNIT_INTERPOSER_CORE_FAKE_SERVER_H_
