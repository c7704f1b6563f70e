// SPDX-License-Identifier: Apache-2.0
// From a URI to the two channels of a session.
#ifndef HAWSER_INTERPOSER_CORE_CONNECTOR_H_
#define HAWSER_INTERPOSER_CORE_CONNECTOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interposer/core/environment.h"
#include "wire/channel.h"
#include "wire/endpoint.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::guest {

/// What a successful set-up gives.
struct Connection {
  wire::Endpoint endpoint;
  std::unique_ptr<wire::Channel> command;
  std::unique_ptr<wire::Channel> bulk;
  wire::Fd liveness;          ///< shm: the unix socket that ends with the server. Outlives the channels.
  std::byte* heap = nullptr;  ///< shm: mapped for good; null if the server shares none.
  uint64_t heap_size = 0;     ///< Bytes.
  uint32_t inline_limit = 0;  ///< Bytes.
  uint32_t bulk_chunk = 0;    ///< Bytes, at least 1, at most wire::kMaxBulkChunk.
  uint64_t session = 0;       ///< The server's number of the session, for logs.

  bool gathers() const { return endpoint.transport != wire::Transport::kShm; }
};

struct ConnectTimeouts {
  std::chrono::milliseconds connect{5000};
  std::chrono::milliseconds welcome{60000};  ///< The server starts a worker, which loads the device's driver.
};

/// Connects, says Hello, and waits for the Welcome. An error's text says what happened and to whom; kRefused has the
/// server's words.
wire::Result<Connection> Connect(const Environment& environment, const ConnectTimeouts& timeouts = {});

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_CONNECTOR_H_
