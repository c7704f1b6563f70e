// SPDX-License-Identifier: Apache-2.0
#include "server/control_plane.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "server/log.h"
#include "wire/endpoint.h"

namespace hawser::server {

using std::chrono::milliseconds;
using wire::Code;
using wire::Endpoint;
using wire::Result;
using wire::Status;
using wire::Transport;

namespace {

constexpr mode_t kMode = 0600;
/// Often enough that rings of TraceRing::kSlots keep 100,000 events a second.
constexpr milliseconds kCollectEvery{20};

}  // namespace

std::optional<std::string> DefaultAdminAddress(const std::vector<std::string>& listen) {
  for (const std::string& uri : listen) {
    const Result<Endpoint> endpoint = Endpoint::Parse(uri);
    if (!endpoint.ok()) continue;
    const bool unix = endpoint.value().transport == Transport::kUnix || endpoint.value().transport == Transport::kShm;
    if (unix) return "unix:" + endpoint.value().path + ".admin";
  }
  if (const char* directory = std::getenv("XDG_RUNTIME_DIR"); directory != nullptr && directory[0] == '/') {
    return "unix:" + std::string(directory) + "/hawser.sock.admin";
  }
  if (::geteuid() == 0) return "unix:/run/hawser.sock.admin";
  return std::nullopt;
}

Result<std::unique_ptr<ControlPlane>> ControlPlane::Open(const std::string& uri, bool allow_tcp, EventLoop* loop,
                                                         Controlled* controlled) {
  const Result<Endpoint> endpoint = Endpoint::Parse(uri);
  if (!endpoint.ok()) return endpoint.status();
  const Transport transport = endpoint.value().transport;
  if (transport == Transport::kTcp && !allow_tcp) {
    return Status(Code::kInvalid, "admin.listen: " + uri +
                                      " would let everybody who can connect control this server. Use unix:/some/path, "
                                      "or write under [admin] allow_tcp = \"" +
                                      std::string(Config::kAdminTcpWords) + "\"");
  }
  if (transport != Transport::kUnix && transport != Transport::kTcp) {
    return Status(Code::kInvalid, "admin.listen: operators connect over unix:/path (or tcp:), not over " + uri);
  }
  Result<std::unique_ptr<Listener>> listener = Listener::Open(uri, kMode);
  if (!listener.ok()) return listener.status();
  std::unique_ptr<ControlPlane> plane(new ControlPlane(std::move(*listener), loop, controlled));
  if (Status status = plane->mailbox_.Open(loop); !status.ok()) return status;
  auto watch = loop->Watch(plane->listener_->fd(), EPOLLIN, [plane = plane.get()](uint32_t) { plane->OnListener(); });
  if (!watch.ok()) return watch.status();
  plane->watch_ = *watch;
  return plane;
}

ControlPlane::~ControlPlane() {
  BeginStop();
  server_.reset();
}

void ControlPlane::BeginStop() {
  if (stopping_) return;
  stopping_ = true;
  loop_->Unwatch(watch_);
  loop_->Cancel(trace_timer_);
  mailbox_.Close();
  if (server_ != nullptr) server_->BeginStop();
  traces_.CloseFeeds();
}

void ControlPlane::OnListener() {
  Result<Listener::Visitor> visitor = listener_->Accept();
  if (visitor.ok()) return Admit(std::move(*visitor));
  if (visitor.status().code() == Code::kTimeout) return;
  Log(LogLevel::kWarning, "an operator cannot connect: " + visitor.status().text());
  // It stays in the queue and would be reported at once again.
  loop_->Change(watch_, 0);
  loop_->After(milliseconds(100), [this] {
    if (!stopping_) loop_->Change(watch_, EPOLLIN);
  });
}

void ControlPlane::Admit(Listener::Visitor visitor) {
  const PeerIdentity& peer = visitor.peer;
  const bool known = peer.kind != PeerIdentity::Kind::kUnix || peer.uid == ::geteuid() || peer.uid == 0;
  if (!known) {
    if (limiter_.Ask(RateLimiter::Clock::now()).allowed) {
      Log(LogLevel::kWarning, "refused " + peer.ToString() + " as an operator: only uid " +
                                  std::to_string(::geteuid()) + " and root may control this server");
    }
    return;
  }
  if (server_ == nullptr) {
    auto server = admin::AdminServer::Start(this);
    if (!server.ok()) return Log(LogLevel::kError, "the control plane: " + server.status().text());
    server_ = std::move(*server);
  }
  server_->Serve(std::move(visitor.fd));
}

void ControlPlane::CollectTraces() {
  traces_.Collect();
  controlled_->Trace(&traces_, false);
  trace_timer_ = traces_.listening() ? loop_->After(kCollectEvery, [this] { CollectTraces(); }) : 0;
}

// ---------------------------------------------------------------------------------------------
// On gRPC's threads. What runs on the event loop owns its arguments: see Mailbox.

Result<admin::Snapshot> ControlPlane::Read() {
  return mailbox_.Call<admin::Snapshot>([controlled = controlled_] { return controlled->TakeSnapshot(); });
}

Result<std::optional<admin::TenantState>> ControlPlane::SetTenant(const std::string& name,
                                                                  const admin::TenantChange& change) {
  return mailbox_.Call<std::optional<admin::TenantState>>(
      [controlled = controlled_, name, change] { return controlled->ChangeTenant(name, change); });
}

Result<bool> ControlPlane::StopSession(uint64_t id, const std::string& reason) {
  return mailbox_.Call<bool>([controlled = controlled_, id, reason] { return controlled->EndSession(id, reason); });
}

Result<admin::PolicyState> ControlPlane::SetPolicy(const std::string& name) {
  return mailbox_.Call<admin::PolicyState>([controlled = controlled_, name] { return controlled->ChangePolicy(name); });
}

Status ControlPlane::Trace(std::shared_ptr<admin::TraceFeed> feed) {
  const Result<bool> begun = mailbox_.Call<bool>([this, feed = std::move(feed)]() mutable -> Result<bool> {
    traces_.AddFeed(std::move(feed));
    controlled_->Trace(&traces_, true);
    if (trace_timer_ == 0) CollectTraces();
    return true;
  });
  return begun.status();
}

}  // namespace hawser::server
