// SPDX-License-Identifier: Apache-2.0
// What the user says to the guest library through environment variables.
#ifndef HAWSER_INTERPOSER_CORE_ENVIRONMENT_H_
#define HAWSER_INTERPOSER_CORE_ENVIRONMENT_H_

#include <string>

#include "interposer/core/api.h"

namespace hawser::guest {

struct Environment {
  const Api* api = &OpenClApi();  ///< Whose calls the session is for.
  std::string server;             ///< $HAWSER_SERVER, a URI (wire/endpoint.h). Empty: no server.
  std::string token;              ///< $HAWSER_TOKEN. Empty: identity comes from the transport.
  bool strict = false;            ///< $HAWSER_STRICT=1: every call waits for the server's verdict.
  bool in_worker = false;         ///< $HAWSER_WORKER=1: this process is a server, which must never use itself.
  std::string stats_file;         ///< $HAWSER_STATS: counters as JSON at exit.
  std::string trace_file;         ///< $HAWSER_TRACE: a line for each command.
  std::string program;            ///< The process's short name, for the server's log.

  static Environment Read(const Api& api);
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_ENVIRONMENT_H_
