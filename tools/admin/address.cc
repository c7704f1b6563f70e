// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/address.h"

#include <cstdlib>

#include "tools/server_uri.h"

namespace hawser::tools {

using wire::Code;
using wire::Endpoint;
using wire::Result;
using wire::Status;
using wire::Transport;

Result<Endpoint> AdminEndpoint(const std::string& admin, const std::string& server) {
  std::string uri = admin;
  if (uri.empty() && server.empty()) {
    if (const char* variable = std::getenv("HAWSER_ADMIN"); variable != nullptr) uri = variable;
  }
  if (!uri.empty()) {
    Result<Endpoint> endpoint = Endpoint::Parse(uri);
    if (!endpoint.ok()) return endpoint.status();
    const Transport transport = endpoint->transport;
    if (transport == Transport::kUnix || transport == Transport::kTcp) return endpoint;
    return Status(Code::kInvalid, "a control plane is at unix:/path or tcp:host:port, not at " + uri);
  }
  const std::string guests = ChosenServer(server);
  Result<Endpoint> endpoint = Endpoint::Parse(guests);
  if (!endpoint.ok()) return endpoint.status();
  if (endpoint->transport != Transport::kUnix && endpoint->transport != Transport::kShm) {
    return Status(Code::kInvalid,
                  "the control plane of " + guests +
                      " is a unix socket on the server's machine: type this command there, as hawserd's "
                      "user, or name it with --admin unix:/path");
  }
  endpoint->transport = Transport::kUnix;
  endpoint->path += ".admin";
  return endpoint;
}

}  // namespace hawser::tools
