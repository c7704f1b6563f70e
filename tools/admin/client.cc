// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/client.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "hawser/admin.grpc.pb.h"
#include "tools/server_uri.h"
#include "wire/socket.h"

namespace hawser::tools {
namespace {

using wire::Code;
using wire::Endpoint;
using wire::Result;
using wire::Status;
using wire::Transport;

constexpr std::chrono::seconds kPatience{10};

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return {};
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
      return Status(Code::kInvalid, status.error_message());
    case grpc::StatusCode::FAILED_PRECONDITION:
      return Status(Code::kRefused, status.error_message());
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Status(Code::kExhausted, status.error_message());
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Status(Code::kTimeout, "the server did not answer in time");
    case grpc::StatusCode::UNIMPLEMENTED:
      return Status(Code::kRefused, "the server does not know this request; it is of another version");
    case grpc::StatusCode::UNAVAILABLE:
      return Status(Code::kClosed, "the server is gone (" + status.error_message() + ")");
    default:
      return Status(Code::kSystem, "the server answers: " + status.error_message());
  }
}

class GrpcAdminClient final : public AdminClient {
 public:
  explicit GrpcAdminClient(const std::string& target)
      : stub_(pb::Admin::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()))) {}

  Result<pb::ServerStatus> GetStatus() override { return Call(&pb::Admin::Stub::GetStatus, pb::GetStatusRequest()); }
  Result<pb::ListTenantsResponse> ListTenants() override {
    return Call(&pb::Admin::Stub::ListTenants, pb::ListTenantsRequest());
  }
  Result<pb::Tenant> SetTenant(const pb::SetTenantRequest& request) override {
    return Call(&pb::Admin::Stub::SetTenant, request);
  }
  Result<pb::ListSessionsResponse> ListSessions(const std::string& tenant) override {
    pb::ListSessionsRequest request;
    request.set_tenant(tenant);
    return Call(&pb::Admin::Stub::ListSessions, request);
  }
  Status StopSession(uint64_t id, const std::string& reason) override {
    pb::StopSessionRequest request;
    request.set_id(id);
    request.set_reason(reason);
    return Call(&pb::Admin::Stub::StopSession, request).status();
  }
  Result<pb::Policy> SetPolicy(const std::string& name) override {
    pb::SetPolicyRequest request;
    request.set_name(name);
    return Call(&pb::Admin::Stub::SetPolicy, request);
  }

  Status Watch(uint32_t interval_ms, const std::function<bool(const pb::Snapshot&)>& take) override {
    pb::WatchRequest request;
    request.set_interval_ms(interval_ms);
    return Stream<pb::Snapshot>(std::nullopt, take,
                                [&](grpc::ClientContext* context) { return stub_->Watch(context, request); });
  }
  Status Trace(const pb::TraceRequest& request, std::optional<std::chrono::milliseconds> length,
               const std::function<bool(const pb::TraceBatch&)>& take) override {
    return Stream<pb::TraceBatch>(length, take,
                                  [&](grpc::ClientContext* context) { return stub_->Trace(context, request); });
  }

  void Cancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (stream_ != nullptr) stream_->TryCancel();
  }

 private:
  template <typename Request, typename Reply>
  Result<Reply> Call(grpc::Status (pb::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    Reply reply;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }

  template <typename Message, typename Start>
  Status Stream(std::optional<std::chrono::milliseconds> length, const std::function<bool(const Message&)>& take,
                Start start) {
    grpc::ClientContext context;
    if (length) context.set_deadline(std::chrono::system_clock::now() + *length);
    {
      const std::lock_guard lock(mutex_);
      if (cancelled_) return {};
      stream_ = &context;
    }
    const auto reader = start(&context);
    Message message;
    bool enough = false;
    while (!enough && reader->Read(&message)) enough = !take(message);
    if (enough) context.TryCancel();
    while (reader->Read(&message)) {
    }
    const grpc::Status status = reader->Finish();
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
    if (enough || cancelled_) return {};
    if (length && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return {};
    return FromGrpc(status);
  }

  const std::unique_ptr<pb::Admin::Stub> stub_;
  std::mutex mutex_;
  grpc::ClientContext* stream_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace

Result<std::unique_ptr<AdminClient>> AdminClient::Connect(const Endpoint& endpoint) {
  // gRPC would try for long and then say little.
  auto socket = wire::Connect(endpoint, wire::SocketUse::kCommand, std::chrono::seconds(5));
  if (!socket.ok()) {
    return Status(socket.status().code(),
                  "no control plane answers at " + endpoint.ToString() + " (" + socket.status().text() +
                      "). It is there when hawserd runs, only for the user that hawserd runs as and root; its log says "
                      "\"operators connect to ...\", and --admin URI names it");
  }
  const bool unix = endpoint.transport == Transport::kUnix;
  const std::string target =
      unix ? "unix:" + endpoint.path : "dns:///" + endpoint.ToString().substr(std::string("tcp:").size());
  return std::unique_ptr<AdminClient>(std::make_unique<GrpcAdminClient>(target));
}

}  // namespace hawser::tools
