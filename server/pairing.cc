// SPDX-License-Identifier: Apache-2.0
#include "server/pairing.h"

namespace hawser::server {

using wire::Code;
using wire::Result;
using wire::Status;

Result<std::optional<PairingTable::Pair>> PairingTable::Add(ConnectionId connection, const std::string& tenant,
                                                            const Greeting& greeting) {
  if (greeting.shm) return std::optional<Pair>(Pair{connection, 0});
  const Key key{tenant, greeting.nonce};
  const auto other = halves_.find(key);
  if (other == halves_.end()) {
    halves_.emplace(key, std::pair{connection, greeting.channel});
    by_connection_.emplace(connection, key);
    return std::optional<Pair>();
  }
  const auto [other_connection, other_channel] = other->second;
  if (other_channel == greeting.channel) {
    return Status(Code::kRefused, "another connection has the same name and purpose already");
  }
  Remove(other_connection);
  if (greeting.channel == Greeting::Channel::kCommand) return std::optional<Pair>(Pair{connection, other_connection});
  return std::optional<Pair>(Pair{other_connection, connection});
}

void PairingTable::Remove(ConnectionId connection) {
  const auto at = by_connection_.find(connection);
  if (at == by_connection_.end()) return;
  halves_.erase(at->second);
  by_connection_.erase(at);
}

}  // namespace hawser::server
