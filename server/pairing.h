// SPDX-License-Identifier: Apache-2.0
// Joins the two connections of a session. Pure state; connections are numbers.
#ifndef HAWSER_SERVER_PAIRING_H_
#define HAWSER_SERVER_PAIRING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "server/hello_reader.h"
#include "wire/status.h"

namespace hawser::server {

/// Threading: none; belongs to hawserd's one thread.
class PairingTable {
 public:
  using ConnectionId = uint64_t;
  struct Pair {
    ConnectionId command = 0;
    ConnectionId bulk = 0;  ///< 0 over shared memory.
  };

  /// A greeted connection. The pair when this completes one; nothing yet when its other half is
  /// still to come; kRefused when the same half of the same session is there already.
  /// Halves match only within one tenant, so that nobody joins a stranger's session.
  wire::Result<std::optional<Pair>> Add(ConnectionId connection, const std::string& tenant, const Greeting& greeting);

  /// The connection is gone.
  void Remove(ConnectionId connection);

  size_t waiting() const { return by_connection_.size(); }

 private:
  using Key = std::pair<std::string, Greeting::Nonce>;

  std::map<Key, std::pair<ConnectionId, Greeting::Channel>> halves_;
  std::map<ConnectionId, Key> by_connection_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_PAIRING_H_
