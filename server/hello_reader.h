// SPDX-License-Identifier: Apache-2.0
// The first frame of a connection, gathered from whatever pieces it comes in, and judged.
// Knows no socket: hawserd asks how many bytes to read and hands over what came.
#ifndef HAWSER_SERVER_HELLO_READER_H_
#define HAWSER_SERVER_HELLO_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/handshake.h"
#include "wire/api.h"
#include "wire/codec.h"
#include "wire/status.h"

namespace hawser::server {

/// A guest's first words, copied out of the frame.
struct Greeting {
  enum class Channel : uint8_t { kCommand = 0, kBulk = 1 };
  using Nonce = std::array<std::byte, 16>;

  wire::Api api = wire::Api::kOpenCl;
  bool shm = false;  ///< Asks for shared memory: one connection, descriptors come back over it.
  Channel channel = Channel::kCommand;
  Nonce nonce{};
  uint32_t pid = 0;
  std::string program;
  std::string token;
};

class HelloReader {
 public:
  /// Bytes to read next. Never more than the rest of the frame: what follows it is the worker's.
  size_t wanted() const { return target_ - bytes_.size(); }

  /// Takes at most wanted() bytes. An error ends the connection: kProtocol for bytes that are no
  /// greeting of ours (nothing is answered), kRefused for one that must be answered with its text.
  wire::Status Add(wire::Bytes bytes);

  bool complete() const { return complete_; }
  const Greeting& greeting() const { return greeting_; }
  size_t received() const { return bytes_.size(); }

 private:
  wire::Status Judge();

  std::vector<std::byte> bytes_;
  size_t target_ = 16;  ///< The frame's header first.
  bool complete_ = false;
  Greeting greeting_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_HELLO_READER_H_
