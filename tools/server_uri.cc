// SPDX-License-Identifier: Apache-2.0
#include "tools/server_uri.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "wire/endpoint.h"
#include "wire/socket.h"

namespace hawser::tools {

using wire::Endpoint;
using wire::Status;
using wire::Transport;

namespace {

std::string WithAbsolutePath(const std::string& uri) {
  auto endpoint = Endpoint::Parse(uri);
  if (!endpoint.ok() || endpoint->path.empty()) return uri;
  std::error_code error;
  const auto path = std::filesystem::absolute(endpoint->path, error);
  if (!error) endpoint->path = path.string();
  return endpoint->ToString();
}

}  // namespace

std::string DefaultServer() {
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  return "shm:" + std::string(directory != nullptr && directory[0] == '/' ? directory : "/run") + "/hawser.sock";
}

std::string ChosenServer(const std::string& option) {
  if (!option.empty()) return WithAbsolutePath(option);
  const char* environment = std::getenv("HAWSER_SERVER");
  if (environment != nullptr && *environment != '\0') return WithAbsolutePath(environment);
  return DefaultServer();
}

std::string ListenerFor(const std::string& uri) {
  auto endpoint = Endpoint::Parse(uri);
  if (!endpoint.ok()) return uri;
  if (endpoint->transport == Transport::kShm) endpoint->transport = Transport::kUnix;
  // A guest names the server's CID; the server listens for any.
  if (endpoint->transport == Transport::kVsock) endpoint->cid = UINT32_MAX;
  return endpoint->ToString();
}

Status CheckServer(const std::string& uri, std::chrono::milliseconds timeout) {
  auto endpoint = Endpoint::Parse(uri);
  if (!endpoint.ok()) return endpoint.status();
  auto socket = Connect(*endpoint, wire::SocketUse::kCommand, timeout);
  if (socket.ok()) return Status::Ok();
  return Status(socket.status().code(), "no server answers at " + uri + " (" + socket.status().text() +
                                            "). Start one where the device is: hawserd --listen " + ListenerFor(uri) +
                                            "  (from the source tree: ./hawser serve --listen " + ListenerFor(uri) +
                                            ")");
}

}  // namespace hawser::tools
