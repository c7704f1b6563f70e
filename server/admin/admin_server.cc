// SPDX-License-Identifier: Apache-2.0
// The only part of hawserd that includes gRPC.
#include "server/admin/admin_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "hawser/admin.grpc.pb.h"
#include "server/admin/convert.h"

namespace hawser::server::admin {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using wire::Code;
using wire::Result;
using wire::Status;

constexpr milliseconds kLook{100};  ///< How often a stream looks whether its caller is still there.
constexpr uint32_t kLeastInterval = 100, kMostInterval = 3'600'000, kUsualInterval = 1000;
constexpr size_t kMaxReason = 200;
constexpr int kMaxTraceSessions = 1024;
constexpr int kMaxRequestBytes = 1 << 20;
constexpr const char* kService = "hawser.admin.v1.Admin";

grpc::Status ToGrpc(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return grpc::Status::OK;
    case Code::kInvalid:
      return {grpc::StatusCode::INVALID_ARGUMENT, status.text()};
    case Code::kRefused:
      return {grpc::StatusCode::FAILED_PRECONDITION, status.text()};
    case Code::kClosed:
      return {grpc::StatusCode::UNAVAILABLE, status.text()};
    case Code::kExhausted:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, status.text()};
    case Code::kTimeout:
      return {grpc::StatusCode::DEADLINE_EXCEEDED, status.text()};
    case Code::kProtocol:
    case Code::kSystem:
      break;
  }
  return {grpc::StatusCode::INTERNAL, status.text()};
}

grpc::Status Invalid(const std::string& text) { return {grpc::StatusCode::INVALID_ARGUMENT, text}; }

/// Names with commas between them, not too many.
template <typename Range, typename Name>
std::string List(const Range& range, Name name) {
  constexpr size_t kMost = 20;
  std::string text;
  size_t count = 0;
  for (const auto& one : range) {
    if (++count > kMost) return text + ", ...";
    text += (text.empty() ? "" : ", ") + name(one);
  }
  return text.empty() ? "none" : text;
}

/// "The server stops": streams wait on it between two messages.
class StopFlag {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool set() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }
  bool WaitFor(milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return set_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

class Service final : public pb::Admin::Service {
 public:
  explicit Service(StateSource* source) : source_(source) {}

  void BeginStop() { stop_.Set(); }

  grpc::Status GetStatus(grpc::ServerContext*, const pb::GetStatusRequest*, pb::ServerStatus* reply) override {
    return WithSnapshot([&](const Snapshot& snapshot) { ToMessage(snapshot.server, reply); });
  }

  grpc::Status ListTenants(grpc::ServerContext*, const pb::ListTenantsRequest*,
                           pb::ListTenantsResponse* reply) override {
    return WithSnapshot([&](const Snapshot& snapshot) {
      for (const TenantState& tenant : snapshot.tenants) ToMessage(tenant, reply->add_tenants());
    });
  }

  grpc::Status SetTenant(grpc::ServerContext*, const pb::SetTenantRequest* request, pb::Tenant* reply) override {
    const Result<TenantChange> change = FromMessage(*request);
    if (!change.ok()) return ToGrpc(change.status());
    const auto changed = source_->SetTenant(request->name(), change.value());
    if (!changed.ok()) return ToGrpc(changed.status());
    if (changed.value()) {
      ToMessage(*changed.value(), reply);
      return grpc::Status::OK;
    }
    std::string known;
    grpc::Status read = WithSnapshot([&](const Snapshot& snapshot) {
      known = List(snapshot.tenants, [](const TenantState& tenant) { return CleanText(tenant.name); });
    });
    if (!read.ok()) return read;
    return {grpc::StatusCode::NOT_FOUND, "there is no tenant '" + CleanText(request->name()) + "'; there are: " +
                                             known + "; and users that no tenant lists are uid-NUMBER"};
  }

  grpc::Status ListSessions(grpc::ServerContext*, const pb::ListSessionsRequest* request,
                            pb::ListSessionsResponse* reply) override {
    return WithSnapshot([&](const Snapshot& snapshot) {
      for (const SessionState& session : snapshot.sessions) {
        if (request->tenant().empty() || request->tenant() == session.tenant) {
          ToMessage(session, reply->add_sessions());
        }
      }
    });
  }

  grpc::Status StopSession(grpc::ServerContext*, const pb::StopSessionRequest* request,
                           pb::StopSessionResponse*) override {
    if (request->id() == 0) return Invalid("id: which session? Sessions count from 1");
    if (request->reason().size() > kMaxReason) {
      return Invalid("reason has " + std::to_string(request->reason().size()) + " bytes; at most " +
                     std::to_string(kMaxReason));
    }
    const Result<bool> stopped = source_->StopSession(request->id(), CleanText(request->reason()));
    if (!stopped.ok()) return ToGrpc(stopped.status());
    if (stopped.value()) return grpc::Status::OK;
    std::string known;
    grpc::Status read = WithSnapshot([&](const Snapshot& snapshot) {
      known = List(snapshot.sessions, [](const SessionState& session) { return std::to_string(session.id); });
    });
    if (!read.ok()) return read;
    return {grpc::StatusCode::NOT_FOUND,
            "there is no session " + std::to_string(request->id()) + "; there are: " + known};
  }

  grpc::Status GetPolicy(grpc::ServerContext*, const pb::GetPolicyRequest*, pb::Policy* reply) override {
    return WithSnapshot([&](const Snapshot& snapshot) { ToMessage(snapshot.server.policy, reply); });
  }

  grpc::Status SetPolicy(grpc::ServerContext*, const pb::SetPolicyRequest* request, pb::Policy* reply) override {
    if (request->name().empty()) return Invalid("name: which policy?");
    const Result<PolicyState> policy = source_->SetPolicy(request->name());
    if (!policy.ok()) return ToGrpc(policy.status());
    ToMessage(policy.value(), reply);
    return grpc::Status::OK;
  }

  grpc::Status Watch(grpc::ServerContext* context, const pb::WatchRequest* request,
                     grpc::ServerWriter<pb::Snapshot>* writer) override {
    const uint32_t interval = request->interval_ms() != 0 ? request->interval_ms() : kUsualInterval;
    if (interval < kLeastInterval || interval > kMostInterval) {
      return Invalid("interval_ms must be between " + std::to_string(kLeastInterval) + " and " +
                     std::to_string(kMostInterval) + ", or 0 for " + std::to_string(kUsualInterval));
    }
    const Place place(this);
    if (!place.taken()) return TooMany();
    auto next = steady_clock::now();
    while (!context->IsCancelled()) {
      pb::Snapshot message;
      grpc::Status read = WithSnapshot([&](const Snapshot& snapshot) { ToMessage(snapshot, &message); });
      if (!read.ok()) return read;
      if (!writer->Write(message)) return grpc::Status::CANCELLED;
      next = std::max(next + milliseconds(interval), steady_clock::now());
      while (steady_clock::now() < next && !context->IsCancelled()) {
        const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
        if (stop_.WaitFor(std::clamp(left, milliseconds(0), kLook))) return Stopping();
      }
    }
    return grpc::Status::CANCELLED;
  }

  grpc::Status Trace(grpc::ServerContext* context, const pb::TraceRequest* request,
                     grpc::ServerWriter<pb::TraceBatch>* writer) override {
    if (request->sessions_size() > kMaxTraceSessions) {
      return Invalid("sessions: at most " + std::to_string(kMaxTraceSessions) + ", or none for all");
    }
    const Place place(this);
    if (!place.taken()) return TooMany();
    TraceFeed::Filter filter;
    filter.sessions.insert(request->sessions().begin(), request->sessions().end());
    filter.commands = request->commands();
    const auto feed = std::make_shared<TraceFeed>(std::move(filter));
    if (const Status status = source_->Trace(feed); !status.ok()) return ToGrpc(status);
    // The first batch may be empty: the caller then knows that the trace has begun.
    for (bool first = true; !context->IsCancelled(); first = false) {
      TraceBatch batch = feed->Take(first ? milliseconds(0) : kLook);
      if (first || !batch.events.empty() || batch.lost != 0) {
        batch.unix_minus_monotonic_ns = UnixMinusMonotonic();
        pb::TraceBatch message;
        ToMessage(batch, &message);
        if (!writer->Write(message)) break;
      }
      if (stop_.set() || feed->closed()) return Stopping();
    }
    feed->Close();
    return grpc::Status::CANCELLED;
  }

 private:
  /// One of kMaxStreams.
  class Place {
   public:
    explicit Place(Service* service) : service_(service) {
      taken_ = service_->streams_.fetch_add(1) < AdminServer::kMaxStreams;
    }
    ~Place() { service_->streams_.fetch_sub(1); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    bool taken() const { return taken_; }

   private:
    Service* const service_;
    bool taken_ = false;
  };

  static grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "the server is stopping"}; }
  static grpc::Status TooMany() {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            "there are " + std::to_string(AdminServer::kMaxStreams) + " streams already; end one"};
  }
  static int64_t UnixMinusMonotonic() {
    const auto since = [](auto now) { return std::chrono::nanoseconds(now.time_since_epoch()).count(); };
    return since(std::chrono::system_clock::now()) - since(steady_clock::now());
  }

  template <typename Use>
  grpc::Status WithSnapshot(Use use) {
    const Result<Snapshot> snapshot = source_->Read();
    if (!snapshot.ok()) return ToGrpc(snapshot.status());
    use(snapshot.value());
    return grpc::Status::OK;
  }

  StateSource* const source_;
  StopFlag stop_;
  std::atomic<int> streams_{0};
};

class GrpcAdminServer final : public AdminServer {
 public:
  explicit GrpcAdminServer(StateSource* source) : service_(source) {}

  Status Start() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    using Option = grpc::ServerBuilder::SyncServerOption;
    builder.SetSyncServerOption(Option::NUM_CQS, 1);
    builder.SetSyncServerOption(Option::MIN_POLLERS, 1);
    builder.SetSyncServerOption(Option::MAX_POLLERS, 2);
    grpc::ResourceQuota quota("hawser-admin");
    quota.SetMaxThreads(kMaxStreams + 8);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.RegisterService(&service_);
    // No listening port: connections come through Serve(), because only whoever accepts them can see who is there.
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Status(Code::kSystem, "gRPC does not start");
    if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(kService, true);
    return {};
  }

  ~GrpcAdminServer() override {
    if (server_ == nullptr) return;
    GrpcAdminServer::BeginStop();
    server_->Shutdown(std::chrono::system_clock::now() + milliseconds(1000));
    server_->Wait();
  }

  void Serve(wire::Fd connection) override { grpc::AddInsecureChannelFromFd(server_.get(), connection.Release()); }

  void BeginStop() override {
    service_.BeginStop();
    if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(false);
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<AdminServer>> AdminServer::Start(StateSource* source) {
  auto server = std::make_unique<GrpcAdminServer>(source);
  if (Status status = server->Start(); !status.ok()) return status;
  return std::unique_ptr<AdminServer>(std::move(server));
}

}  // namespace hawser::server::admin
