// SPDX-License-Identifier: Apache-2.0
// Which backend serves a session. The worker program links one definition; tests link their own.
#ifndef HAWSER_SERVER_WORKER_BACKEND_FACTORY_H_
#define HAWSER_SERVER_WORKER_BACKEND_FACTORY_H_

#include <memory>

#include "server/worker/session_backend.h"
#include "server/worker/session_log.h"
#include "server/worker_settings.h"
#include "wire/status.h"

namespace hawser::server {

struct ChosenBackend {
  std::unique_ptr<SessionBackend> backend;
  /// The driver reserves addresses far beyond what it uses, so that RLIMIT_AS would break it.
  bool reserves_addresses = false;
};

/// Loads the drivers of the session's interface and of no other. The error's text is for the guest.
wire::Result<ChosenBackend> CreateBackend(const WorkerSettings& settings, SessionLog* log);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_BACKEND_FACTORY_H_
