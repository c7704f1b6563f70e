// SPDX-License-Identifier: Apache-2.0
// hawserd: greets guests, decides who they are, starts a worker for each, and buries it.
//
// Threads: one, which waits in epoll and never for anything else. No GPU API is called here, and no
// command or data of a guest passes through: a worker gets the connected sockets. The control plane
// (control_plane.h) has threads of its own, which reach this one through a mailbox.
//
// Life of a connection: accepted -> greeting (read bounded, judged by HelloReader) -> tenant
// (TenantTable) -> its other half (PairingTable) -> admitted (Admission) -> worker. At every step it
// can be refused in words, dropped for silence, or dropped as the oldest of too many.
// Life of a session: worker runs -> guest hangs up -> worker ends by itself, or is killed 2 s later
// -> reaped, logged, forgotten. A worker that ends first takes its guest's connections along.
#ifndef HAWSER_SERVER_SERVER_H_
#define HAWSER_SERVER_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/admission.h"
#include "server/cache_folder.h"
#include "server/config.h"
#include "server/control_plane.h"
#include "server/event_loop.h"
#include "server/export_broker.h"
#include "server/hello_reader.h"
#include "server/line_splitter.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/pairing.h"
#include "server/rate_limiter.h"
#include "server/scheduler_control.h"
#include "server/session_stats.h"
#include "server/temporary_folders.h"
#include "server/tenant_ledger.h"
#include "server/tenants.h"
#include "server/worker_process.h"
#include "wire/status.h"

namespace hawser::server {

class Server : private Controlled {
 public:
  /// `reload` reads the configuration again (SIGHUP); listeners stay as they are.
  using Reload = std::function<wire::Result<Config>()>;

  Server(Config config, Reload reload);
  ~Server() override;

  /// Opens the listeners. Afterwards guests may connect; nothing is answered before Run().
  wire::Status Open();
  /// The bound address of each listener.
  std::vector<std::string> Addresses() const;
  /// Where operators connect; empty: nowhere.
  std::string AdminAddress() const { return control_ != nullptr ? control_->address() : ""; }
  /// Serves until SIGTERM or SIGINT, then ends all workers and returns.
  void Run();

 private:
  struct Connection {
    uint64_t id = 0;
    wire::Fd fd;
    PeerIdentity peer;
    const Listener* listener = nullptr;
    HelloReader hello;
    Tenant tenant;
    EventLoop::WatchId watch = 0;
    EventLoop::TimerId timer = 0;
    bool refused = false;  ///< Only waits for the guest to read why.
    size_t discarded = 0;  ///< Bytes dropped since then.
  };
  struct Session {
    uint64_t id = 0;
    std::string tenant;
    std::string label;  ///< For the log.
    wire::Fd command;   ///< A duplicate, to see the guest hang up.
    WorkerProcess worker;
    TemporaryFolder temporary;
    SessionStats stats;
    LineSplitter lines;
    RateLimiter line_limiter{200, 20};
    EventLoop::WatchId command_watch = 0, end_watch = 0, log_watch = 0;
    EventLoop::TimerId kill_timer = 0;
    bool guest_gone = false;
    bool stopped = false;       ///< By an operator, or by the scheduler.
    std::string stop_text;      ///< Then: why.
    admin::SessionState facts;  ///< What does not change.
    uint64_t began_ns = 0;      ///< CLOCK_MONOTONIC
  };

  wire::Status CheckListeners() const;
  wire::Status WatchSignals();
  void OnSignal();
  void ReloadConfig();
  void BuildWorkerCommand();

  void OnListener(size_t index);
  void Admit(Listener::Visitor visitor, const Listener* listener);
  void OnConnection(uint64_t id, uint32_t events);
  void ReadGreeting(Connection& connection);
  void OnGreeting(Connection& connection);
  void Refuse(Connection& connection, const std::string& why);
  void Drop(uint64_t id);
  void DropOldest();

  void StartSession(const PairingTable::Pair& pair);
  wire::Status Launch(Session* session, const Connection& command, const Connection* bulk);
  WorkerSettings SettingsFor(const Session& session, const Connection& command);
  void OnGuestHangUp(uint64_t id);
  void OnWorkerLog(uint64_t id);
  void LogWorkerLine(Session& session, const std::string& line);
  void OnWorkerEnd(uint64_t id);
  void BeginStop();

  // server_control.cc: what operators see and change.
  wire::Status OpenControlPlane();
  wire::Status StartScheduler();
  void OnSchedulerNotices();
  admin::Snapshot TakeSnapshot() const override;
  wire::Result<std::optional<admin::TenantState>> ChangeTenant(const std::string& name,
                                                               const admin::TenantChange& change) override;
  bool EndSession(uint64_t id, const std::string& reason) override;
  /// Tells the guest `text` and ends its worker, by force if need be.
  bool StopSession(uint64_t id, SessionStatsPage::Cause cause, const std::string& text);
  wire::Result<admin::PolicyState> ChangePolicy(const std::string& name) override;
  void Trace(TraceCollector* traces, bool anew) override;
  admin::SessionState Describe(const Session& session) const;
  admin::ServerState DescribeServer() const;
  admin::PolicyState DescribePolicy() const;
  /// A tenant as it is, without what its sessions use.
  admin::TenantState DescribeTenant(const std::string& name) const;
  bool KnowsTenant(const std::string& name) const;
  /// Gives running sessions and the scheduler what the tenant may have now.
  void Enforce(const std::string& name);
  void NoteBegin(Session& session, const WorkerSettings& settings, const Connection& command);
  void NoteEnd(const Session& session);

  /// For lines that strangers can cause.
  void LogStranger(LogLevel level, const std::string& text);

  Config config_;
  const Reload reload_;
  EventLoop loop_;
  wire::Fd signals_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<EventLoop::WatchId> listener_watches_;
  TenantTable tenants_;
  TenantLedger ledger_;
  Admission admission_;
  PairingTable pairing_;
  ExportBroker exports_{&loop_};
  RateLimiter stranger_limiter_{50, 5};
  WorkerCommand worker_command_;
  uid_t worker_uid_ = UINT32_MAX;
  gid_t worker_gid_ = UINT32_MAX;
  CacheFolder module_cache_{"modules are not kept on disk", [](const auto& text) { Log(LogLevel::kWarning, text); }};
  CacheFolder driver_cache_{"tenants share what drivers keep on disk",
                            [](const auto& text) { Log(LogLevel::kWarning, text); }};
  TemporaryFolders temporary_{TemporaryFolders::DefaultBase(), [](const auto& text) { Log(LogLevel::kWarning, text); }};

  uint64_t next_id_ = 1;
  std::map<uint64_t, Connection> connections_;  ///< By age: ids count upward.
  uint64_t next_session_ = 1;
  std::map<uint64_t, Session> sessions_;
  uint64_t began_ns_ = 0;
  uint64_t began_unix_ns_ = 0;
  std::unique_ptr<SchedulerControl> scheduler_;
  bool stopping_ = false;
  std::unique_ptr<ControlPlane> control_;  ///< Last: it reads what is above.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_SERVER_H_
