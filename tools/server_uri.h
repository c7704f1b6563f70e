// SPDX-License-Identifier: Apache-2.0
// Which server a command talks to, and whether somebody answers there.
#ifndef HAWSER_TOOLS_SERVER_URI_H_
#define HAWSER_TOOLS_SERVER_URI_H_

#include <chrono>
#include <string>

#include "wire/status.h"

namespace hawser::tools {

/// The URI given on the command line, else $HAWSER_SERVER, else the default. Socket paths are made
/// absolute, so that a program may change its directory.
std::string ChosenServer(const std::string& option);

/// shm: over the socket where hawserd listens by default: $XDG_RUNTIME_DIR/hawser.sock, or the system's
/// /run/hawser.sock.
std::string DefaultServer();

/// The URI under which a server would listen for guests of `uri` ("unix:/path" for "shm:/path").
std::string ListenerFor(const std::string& uri);

/// Connects and hangs up. The status says who does not answer and what to type.
wire::Status CheckServer(const std::string& uri, std::chrono::milliseconds timeout);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_SERVER_URI_H_
