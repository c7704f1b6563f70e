// SPDX-License-Identifier: Apache-2.0
// One guest's session inside its worker: channels, heap, welcome, and everything that serves them.
//
// Threads: the thread that calls Run() is the executor. Others start when first needed: writing a
// backlog of answers, receiving bulk data, sending bulk data, forwarding what kernels print; over shared memory,
// at once: watching for the guest's end.
#ifndef HAWSER_SERVER_WORKER_GUEST_SESSION_H_
#define HAWSER_SERVER_WORKER_GUEST_SESSION_H_

#include <memory>

#include "server/session_stats.h"
#include "server/worker/channel_bulk_receiver.h"
#include "server/worker/channel_bulk_sender.h"
#include "server/worker/channel_replies.h"
#include "server/worker/driver_messages.h"
#include "server/worker/executor.h"
#include "server/worker/hang_up_watch.h"
#include "server/worker/kernel_output.h"
#include "server/worker/session_backend.h"
#include "server/worker/session_log.h"
#include "server/worker_settings.h"
#include "wire/channel.h"
#include "wire/shm.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

/// Tells the guest on its command connection that it is not served, and why.
void SendRefusal(int command_socket, const std::string& why);

class GuestSession {
 public:
  /// Sets the channels up, sends the welcome and hands the services to the backend. `bulk` is invalid
  /// over shared memory. `backend`, `log`, `stats`, `gates` and `exports` are borrowed.
  static wire::Result<std::unique_ptr<GuestSession>> Start(const WorkerSettings& settings, wire::Fd command,
                                                           wire::Fd bulk, SessionBackend* backend, SessionLog* log,
                                                           SessionStatsPage* stats = UncountedSession(),
                                                           LaunchGates* gates = nullptr,
                                                           ExportClient* exports = nullptr);
  ~GuestSession();

  /// Executes commands until the session is over.
  Executor::End Run() { return executor_->Run(); }

  /// Ends the channels, so that every thread that waits on them returns.
  void Shutdown();

  /// Ends the session from another thread and tells the guest why.
  void Stop(const std::string& reason, uint32_t cause = 0) { executor_->Stop(reason, cause); }

 private:
  GuestSession(const WorkerSettings& settings, SessionBackend* backend, SessionLog* log, SessionStatsPage* stats,
               LaunchGates* gates, ExportClient* exports)
      : settings_(settings), backend_(backend), log_(log), stats_(stats), gates_(gates), exports_(exports) {}

  wire::Status OpenShm(wire::Fd command);
  wire::Status OpenSockets(wire::Fd command, wire::Fd bulk);
  void MakeHeap();
  wire::Status SendWelcome();
  void StartServices();
  uint32_t bulk_chunk() const;

  const WorkerSettings settings_;
  SessionBackend* const backend_;
  SessionLog* const log_;
  SessionStatsPage* const stats_;
  LaunchGates* const gates_;     ///< Null: open.
  ExportClient* const exports_;  ///< Null: nothing is shared.

  // In this order: what is below uses what is above.
  wire::Fd liveness_;  ///< Shared memory: the unix socket.
  std::unique_ptr<wire::ShmSession> shm_;
  wire::Fd heap_fd_;
  Heap heap_;
  std::unique_ptr<wire::Channel> command_;
  std::unique_ptr<wire::Channel> bulk_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ChannelReplies> replies_;
  std::unique_ptr<ChannelBulkReceiver> bulk_in_;
  std::unique_ptr<ChannelBulkSender> bulk_out_;
  std::unique_ptr<KernelOutput> output_;
  DriverMessages messages_;
  std::unique_ptr<HangUpWatch> watch_;  ///< Shared memory only.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_GUEST_SESSION_H_
