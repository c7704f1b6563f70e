// SPDX-License-Identifier: Apache-2.0
// Starting a worker, and hearing of its end.
#ifndef HAWSER_SERVER_WORKER_PROCESS_H_
#define HAWSER_SERVER_WORKER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "server/worker_settings.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// A started worker; a process group of its own, because OpenCL implementations start compilers.
struct WorkerProcess {
  pid_t pid = -1;
  wire::Fd pidfd;  ///< Readable once the worker has ended.
  wire::Fd log;    ///< What it writes to stderr; non-blocking.
};

/// How to start workers.
struct WorkerCommand {
  std::string path;
  /// KEY=VALUE; "{tenant}" stands for the tenant's name, so that each can have a compiler cache of its own.
  std::vector<std::string> environment;
};

/// The descriptors that a worker gets; they stay the caller's.
struct WorkerDescriptors {
  int command = -1;
  int bulk = -1;     ///< -1 over shared memory.
  int stats = -1;    ///< Of a SessionStats.
  int grants = -1;   ///< Of a GrantShare; -1: no scheduler.
  int bell = -1;     ///< The schedulers'.
  int ask = -1;      ///< hawserd's, for devices.
  int exports = -1;  ///< Of an ExportBroker; -1: the session shares nothing.
};

wire::Result<WorkerProcess> SpawnWorker(const WorkerCommand& command, const WorkerSettings& settings,
                                        const WorkerDescriptors& descriptors);

/// How a worker ended.
struct WorkerEnd {
  bool killed = false;  ///< By the signal `code`; else it exited with status `code`.
  int code = 0;

  /// True when a guest left or hawserd asked for it.
  bool expected() const;
  std::string ToString() const;
};

/// Takes the end of a worker whose pidfd is readable, and kills what is left of its process group.
wire::Result<WorkerEnd> ReapWorker(const WorkerProcess& worker);

/// A tenant's name as one component of a path.
std::string TenantFileName(const std::string& tenant);

/// This process's environment with `added` on top, without what must not reach a worker.
std::vector<std::string> WorkerEnvironment(const std::vector<std::pair<std::string, std::string>>& added);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_PROCESS_H_
