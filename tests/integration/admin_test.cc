// SPDX-License-Identifier: Apache-2.0
// The control plane of the real hawserd, through the generated stubs; workers without OpenCL.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "tests/integration/admin_client.h"
#include "tests/integration/server_daemon.h"
#include "tests/unit/server/fake_backend.h"

namespace hawser::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
using wire::Transport;
using Stub = pb::Admin::Stub;

HelloOptions Over(Transport transport) {
  HelloOptions options;
  options.transport = transport;
  return options;
}

std::string OwnTenant() { return "uid-" + std::to_string(::getuid()); }

void Work(TestGuest& guest, int commands) {
  uint64_t last = 0;
  for (int i = 0; i < commands; ++i) last = guest.Send(opencl::Opcode::kGetInventory, opencl::Nothing{});
  while (const auto frame = guest.Next()) {
    if (frame->header.seq == last) return;
  }
  FAIL() << "the guest got no answer";
}

class AdminTest : public ::testing::Test {
 protected:
  void Start(const std::string& config = "") {
    Daemon::Options options;
    options.config = config;
    daemon_ = Daemon::Start(options);
    ASSERT_TRUE(daemon_);
    client_ = std::make_unique<AdminClient>("unix:" + socket());
  }
  void TearDown() override {
    client_.reset();
    daemon_.reset();
  }
  std::string socket() const { return daemon_->socket_path() + ".admin"; }

  std::vector<pb::Session> Sessions(const std::string& tenant = "") {
    pb::ListSessionsRequest request;
    request.set_tenant(tenant);
    const auto reply = client_->Call(&Stub::ListSessions, request);
    return {reply.sessions().begin(), reply.sessions().end()};
  }
  /// Waits until there are so many sessions.
  bool WaitForSessions(size_t count) {
    for (int i = 0; i < 2000; ++i) {
      if (Sessions().size() == count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  pb::Tenant TenantNamed(const std::string& name) {
    const pb::ListTenantsResponse all = client_->Call(&Stub::ListTenants, {});
    for (const pb::Tenant& tenant : all.tenants()) {
      if (tenant.name() == name) return tenant;
    }
    ADD_FAILURE() << "no tenant " << name;
    return {};
  }
  grpc::Status Set(const pb::SetTenantRequest& request) {
    grpc::Status status;
    client_->Call(&Stub::SetTenant, request, &status);
    return status;
  }

  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<AdminClient> client_;
};

TEST_F(AdminTest, TellsAboutTheServer) {
  Start("[limits]\nmax_sessions = 7\n");
  const pb::ServerStatus status = client_->Call(&Stub::GetStatus, {});
  EXPECT_FALSE(status.version().empty());
  EXPECT_EQ(static_cast<pid_t>(status.pid()), daemon_->pid());
  EXPECT_GT(status.uptime_ns(), 0u);
  EXPECT_GT(status.started_unix_ns(), uint64_t{1'700'000'000} * 1'000'000'000);
  ASSERT_EQ(status.listeners_size(), 2);
  EXPECT_EQ(status.listeners(0).uri(), "unix:" + daemon_->socket_path());
  EXPECT_EQ(status.listeners(1).transport(), "tcp");
  EXPECT_EQ(status.policy().name(), "fair");
  EXPECT_EQ(status.policy().available_size(), 9);
  EXPECT_EQ(status.max_sessions(), 7u);
  EXPECT_EQ(status.sessions(), 0u);
}

TEST_F(AdminTest, ListsSessionsAsTheyAre) {
  Start("[tenants.lab]\ntoken = \"a token of the laboratory\"\n");
  EXPECT_TRUE(Sessions().empty());
  auto local = Join(*daemon_, Over(Transport::kShm));
  HelloOptions hello = Over(Transport::kTcp);
  hello.token = "a token of the laboratory";
  hello.program = "bad\xff\x1b[2Jname";
  auto remote = Join(*daemon_, hello);
  ASSERT_TRUE(local && remote);
  Work(*local, 5);
  const auto sessions = Sessions();
  ASSERT_EQ(sessions.size(), 2u);
  EXPECT_EQ(sessions[0].id(), 1u);
  EXPECT_EQ(sessions[0].tenant(), OwnTenant());
  EXPECT_EQ(sessions[0].program(), "test");
  EXPECT_EQ(sessions[0].guest_pid(), 4242u);
  EXPECT_EQ(sessions[0].api(), "opencl");
  EXPECT_EQ(sessions[0].transport(), "shm");
  EXPECT_EQ(sessions[0].state(), pb::SESSION_STATE_RUNNING);
  EXPECT_EQ(sessions[0].commands(), 5u);
  EXPECT_GE(sessions[0].bytes_up(), 5 * sizeof(wire::FrameHeader));
  EXPECT_GT(sessions[0].bytes_down(), 5 * sizeof(wire::FrameHeader));
  EXPECT_THAT(sessions[0].peer(), HasSubstr("uid " + std::to_string(::getuid())));
  EXPECT_FALSE(sessions[0].has_gpu_ns()) << "nothing ran, so nothing was measured";
  EXPECT_EQ(sessions[1].tenant(), "lab");
  EXPECT_EQ(sessions[1].transport(), "tcp");
  EXPECT_EQ(sessions[1].program(), "bad??[2Jname");
  ASSERT_EQ(Sessions("lab").size(), 1u);
  EXPECT_TRUE(Sessions("nobody").empty());
  const pb::Tenant own = TenantNamed(OwnTenant());
  EXPECT_FALSE(own.configured());
  EXPECT_EQ(own.sessions(), 1u);
  EXPECT_EQ(own.commands(), 5u);
  EXPECT_TRUE(TenantNamed("lab").configured());

  local.reset();
  remote.reset();
  ASSERT_TRUE(WaitForSessions(0));
  EXPECT_EQ(TenantNamed(OwnTenant()).commands(), 5u) << "ended sessions count too";
  EXPECT_EQ(client_->Call(&Stub::GetStatus, {}).sessions_started(), 2u);
}

TEST_F(AdminTest, ChangesTenantsAtRunTime) {
  Start("[tenants.lab]\ntoken = \"a token of the laboratory\"\nweight = 300\nmax_sessions = 5\nmax_share = 50\n");
  EXPECT_EQ(TenantNamed("lab").settings().weight(), 300u);
  EXPECT_EQ(TenantNamed("lab").settings().max_share_ppm(), 500'000u);
  pb::SetTenantRequest request;
  request.set_name("lab");
  request.set_weight(20);
  request.set_priority(-3);
  request.set_min_share_ppm(250'000);
  pb::Tenant lab = client_->Call(&Stub::SetTenant, request);
  EXPECT_EQ(lab.settings().weight(), 20u);
  EXPECT_EQ(lab.settings().priority(), -3);
  EXPECT_EQ(lab.settings().min_share_ppm(), 250'000u);
  EXPECT_EQ(lab.settings().max_share_ppm(), 500'000u) << "what is not given stays";
  EXPECT_EQ(lab.settings().max_sessions(), 5u);
  EXPECT_TRUE(lab.changed());
  // Also over a new configuration.
  ::kill(daemon_->pid(), SIGHUP);
  ASSERT_TRUE(daemon_->WaitForLog("read the configuration again"));
  EXPECT_EQ(TenantNamed("lab").settings().weight(), 20u);
  pb::SetTenantRequest reset;
  reset.set_name("lab");
  reset.set_reset(true);
  reset.set_priority(9);
  lab = client_->Call(&Stub::SetTenant, reset);
  EXPECT_EQ(lab.settings().weight(), 300u);
  EXPECT_EQ(lab.settings().priority(), 9);
  EXPECT_EQ(lab.settings().min_share_ppm(), 0u);
}

TEST_F(AdminTest, LimitsHoldForTheNextSession) {
  Start();
  auto first = Join(*daemon_, Over(Transport::kUnix));
  ASSERT_TRUE(first);
  pb::SetTenantRequest request;
  request.set_name(OwnTenant());
  request.set_max_sessions(1);
  EXPECT_TRUE(Set(request).ok());
  std::string why;
  EXPECT_FALSE(Join(*daemon_, Over(Transport::kShm), &why));
  EXPECT_THAT(why, HasSubstr("has its 1 sessions already"));
  Work(*first, 1);
  request.set_max_sessions(0);
  EXPECT_TRUE(Set(request).ok());
  first.reset();
  ASSERT_TRUE(WaitForSessions(0));
  EXPECT_FALSE(Join(*daemon_, Over(Transport::kShm), &why));
  EXPECT_THAT(why, HasSubstr("may have no sessions at present"));
  request.set_max_sessions(2);
  EXPECT_TRUE(Set(request).ok());
  EXPECT_TRUE(Join(*daemon_, Over(Transport::kShm)));
}

TEST_F(AdminTest, RefusesWhatIsWrongInWords) {
  Start("[tenants.lab]\ntoken = \"a token of the laboratory\"\nmax_share = 50\n");
  const auto expect = [&](const pb::SetTenantRequest& request, StatusCode code, const std::string& words) {
    const grpc::Status status = Set(request);
    EXPECT_EQ(status.error_code(), code) << request.DebugString();
    EXPECT_THAT(status.error_message(), HasSubstr(words));
  };
  pb::SetTenantRequest request;
  expect(request, StatusCode::INVALID_ARGUMENT, "which tenant");
  request.set_name("lab");
  expect(request, StatusCode::INVALID_ARGUMENT, "nothing to change");
  request.set_weight(0);
  expect(request, StatusCode::INVALID_ARGUMENT, "weight must be between 1 and 10000");
  request.set_weight(50'000);
  expect(request, StatusCode::INVALID_ARGUMENT, "and is 50000");
  request.clear_weight();
  request.set_priority(1001);
  expect(request, StatusCode::INVALID_ARGUMENT, "priority");
  request.clear_priority();
  request.set_min_share_ppm(600'000);
  expect(request, StatusCode::INVALID_ARGUMENT, "more than the limit (500000 ppm)");
  request.set_min_share_ppm(1'000'001);
  expect(request, StatusCode::INVALID_ARGUMENT, "whole device");
  request.clear_min_share_ppm();
  request.set_session_device_memory_bytes(UINT64_MAX);
  expect(request, StatusCode::INVALID_ARGUMENT, "2^63");
  request.set_name("nobody");
  request.set_session_device_memory_bytes(1);
  expect(request, StatusCode::NOT_FOUND, "there are: lab");
  request.set_name(std::string(300, 'x'));
  expect(request, StatusCode::INVALID_ARGUMENT, "300 bytes");
  EXPECT_FALSE(TenantNamed("lab").changed()) << "nothing of all this was applied";

  grpc::Status status;
  pb::StopSessionRequest stop;
  client_->Call(&Stub::StopSession, stop, &status);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  stop.set_id(77);
  client_->Call(&Stub::StopSession, stop, &status);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("there is no session 77; there are: none"));
  stop.set_reason(std::string(201, 'r'));
  client_->Call(&Stub::StopSession, stop, &status);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  pb::SetPolicyRequest policy;
  policy.set_name("nonsense");
  client_->Call(&Stub::SetPolicy, policy, &status);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  policy.set_name("none");
  client_->Call(&Stub::SetPolicy, policy, &status);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("start the server anew"));
}

TEST_F(AdminTest, SetsThePolicy) {
  Start("[scheduler]\npolicy = \"rr\"\nsettings = { slice_us = 4000 }\n");
  EXPECT_EQ(client_->Call(&Stub::GetStatus, {}).policy().name(), "rr");
  auto guest = Join(*daemon_, Over(Transport::kShm));
  ASSERT_TRUE(guest);
  pb::SetPolicyRequest policy;
  policy.set_name("drr");
  EXPECT_EQ(client_->Call(&Stub::SetPolicy, policy).name(), "drr");
  EXPECT_EQ(client_->Call(&Stub::GetStatus, {}).policy().name(), "drr");
  EXPECT_TRUE(daemon_->WaitForLog("an operator set the policy drr in place of rr"));
  Work(*guest, 1);
}

TEST_F(AdminTest, WithoutASchedulerThereIsNoPolicy) {
  Start("[scheduler]\npolicy = \"none\"\n");
  EXPECT_EQ(client_->Call(&Stub::GetStatus, {}).policy().name(), "none");
  grpc::Status status;
  pb::SetPolicyRequest policy;
  policy.set_name("fair");
  client_->Call(&Stub::SetPolicy, policy, &status);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("no scheduler"));
  policy.set_name("none");
  EXPECT_EQ(client_->Call(&Stub::SetPolicy, policy).name(), "none");
}

TEST_F(AdminTest, StopsASessionAndTellsItsGuestWhy) {
  Start();
  auto guest = Join(*daemon_, Over(Transport::kUnix));
  auto neighbour = Join(*daemon_, Over(Transport::kUnix));
  ASSERT_TRUE(guest && neighbour);
  Work(*guest, 1);
  pb::StopSessionRequest stop;
  stop.set_id(1);
  stop.set_reason("maintenance\nat noon");
  client_->Call(&Stub::StopSession, stop);
  const auto frames = guest->DrainToEnd();
  ASSERT_FALSE(frames.empty());
  ASSERT_EQ(frames.back().opcode(), opencl::Opcode::kSessionLost);
  EXPECT_EQ(frames.back().As<opencl::SessionLost>().reason,
            "the server's operator ended the session: maintenance?at noon");
  EXPECT_TRUE(daemon_->WaitForLog("ended: the server's operator ended the session"));
  ASSERT_TRUE(WaitForSessions(1));
  Work(*neighbour, 1);
}

TEST_F(AdminTest, StopsAWorkerThatHangs) {
  Start();
  auto guest = Join(*daemon_, Over(Transport::kUnix));
  ASSERT_TRUE(guest);
  opencl::Flush hang;
  hang.queue = wire::Id(static_cast<uint8_t>(opencl::Handle::kQueue), 1, static_cast<uint32_t>(Prank::kHang));
  guest->Send(opencl::Opcode::kFlush, hang);
  pb::StopSessionRequest stop;
  stop.set_id(1);
  client_->Call(&Stub::StopSession, stop);
  EXPECT_TRUE(WaitForSessions(0));
}

// ---------------------------------------------------------------------------------------------
// Streams

TEST_F(AdminTest, WatchesWhatChanges) {
  Start();
  grpc::ClientContext context;
  context.set_deadline(AdminClient::Deadline());
  pb::WatchRequest request;
  request.set_interval_ms(100);
  const auto stream = client_->stub().Watch(&context, request);
  pb::Snapshot snapshot;
  ASSERT_TRUE(stream->Read(&snapshot));
  EXPECT_EQ(snapshot.sessions_size(), 0);
  const uint64_t first = snapshot.monotonic_ns();
  auto guest = Join(*daemon_, Over(Transport::kShm));
  ASSERT_TRUE(guest);
  Work(*guest, 3);
  do {
    ASSERT_TRUE(stream->Read(&snapshot));
  } while (snapshot.sessions_size() == 0 || snapshot.sessions(0).commands() < 3);
  EXPECT_GT(snapshot.monotonic_ns(), first);
  EXPECT_EQ(snapshot.status().sessions(), 1u);
  context.TryCancel();
  while (stream->Read(&snapshot)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
}

TEST_F(AdminTest, RefusesIntervalsThatMakeNoSense) {
  Start();
  for (const uint32_t interval : {1u, 99u, 3'600'001u, UINT32_MAX}) {
    grpc::ClientContext context;
    pb::WatchRequest request;
    request.set_interval_ms(interval);
    const auto stream = client_->stub().Watch(&context, request);
    pb::Snapshot snapshot;
    EXPECT_FALSE(stream->Read(&snapshot));
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(AdminTest, TracesSessionsAndCommands) {
  Start();
  auto before = Join(*daemon_, Over(Transport::kShm));
  ASSERT_TRUE(before);
  Work(*before, 50);  // Not recorded: nobody listens yet.
  grpc::ClientContext context;
  context.set_deadline(AdminClient::Deadline());
  pb::TraceRequest request;
  request.set_commands(true);
  const auto stream = client_->stub().Trace(&context, request);
  pb::TraceBatch batch;
  ASSERT_TRUE(stream->Read(&batch));
  EXPECT_NE(batch.unix_minus_monotonic_ns(), 0);
  std::vector<pb::TraceEvent> events(batch.events().begin(), batch.events().end());
  const auto gather = [&](auto enough) {
    while (!enough()) {
      if (!stream->Read(&batch)) return false;
      events.insert(events.end(), batch.events().begin(), batch.events().end());
    }
    return true;
  };
  const auto count = [&](pb::TraceKind kind, uint64_t session) {
    return std::count_if(events.begin(), events.end(), [&](const pb::TraceEvent& event) {
      return event.kind() == kind && event.session() == session;
    });
  };
  ASSERT_TRUE(gather([&] { return count(pb::TRACE_KIND_SESSION_BEGIN, 1) == 1; }));
  Work(*before, 3);
  ASSERT_TRUE(gather([&] { return count(pb::TRACE_KIND_COMMAND, 1) >= 3; }));
  auto later = Join(*daemon_, Over(Transport::kUnix));
  ASSERT_TRUE(later);
  Work(*later, 2);
  later.reset();
  ASSERT_TRUE(gather([&] { return count(pb::TRACE_KIND_SESSION_END, 2) == 1; }));
  EXPECT_EQ(count(pb::TRACE_KIND_COMMAND, 1), 3);
  EXPECT_EQ(count(pb::TRACE_KIND_COMMAND, 2), 2);
  for (const pb::TraceEvent& event : events) {
    EXPECT_EQ(event.tenant(), OwnTenant());
    if (event.kind() != pb::TRACE_KIND_COMMAND) continue;
    EXPECT_LE(event.begin_ns(), event.end_ns());
    EXPECT_EQ(event.name(), "GetInventory");
  }
  context.TryCancel();
  while (stream->Read(&batch)) {
  }
  (void)stream->Finish();
}

TEST_F(AdminTest, TracesGrants) {
  Start();
  auto guest = Join(*daemon_, Over(Transport::kShm));
  ASSERT_TRUE(guest);
  const auto use_device = [&] {
    opencl::Flush flush;
    flush.queue = wire::Id(static_cast<uint8_t>(opencl::Handle::kQueue), 1, static_cast<uint32_t>(Prank::kUseDevice));
    guest->Send(opencl::Opcode::kFlush, flush);
    Work(*guest, 1);
  };
  use_device();  // Alone: from here on it has the device for as long as it likes.
  grpc::ClientContext context;
  context.set_deadline(AdminClient::Deadline());
  const auto stream = client_->stub().Trace(&context, {});
  pb::TraceBatch batch;
  std::vector<pb::TraceEvent> grants;
  const auto gather = [&](size_t count) {
    while (grants.size() < count) {
      if (!stream->Read(&batch)) return false;
      std::copy_if(batch.events().begin(), batch.events().end(), std::back_inserter(grants),
                   [](const pb::TraceEvent& event) { return event.kind() == pb::TRACE_KIND_GRANT; });
    }
    return true;
  };
  // What goes on is told, without an end.
  ASSERT_TRUE(gather(1));
  EXPECT_EQ(grants[0].session(), 1u);
  EXPECT_EQ(grants[0].name(), "alone");
  EXPECT_EQ(grants[0].tenant(), OwnTenant());
  EXPECT_GT(grants[0].begin_ns(), 0u);
  EXPECT_EQ(grants[0].end_ns(), 0u);
  // And with one when it is over.
  guest.reset();
  ASSERT_TRUE(gather(2));
  EXPECT_EQ(grants[1].session(), 1u);
  EXPECT_EQ(grants[1].tenant(), OwnTenant());
  EXPECT_EQ(grants[1].begin_ns(), grants[0].begin_ns());
  EXPECT_GT(grants[1].end_ns(), grants[1].begin_ns());
  context.TryCancel();
  while (stream->Read(&batch)) {
  }
  (void)stream->Finish();
}

TEST_F(AdminTest, StoppingEndsStreams) {
  Start();
  auto guest = Join(*daemon_, Over(Transport::kShm));
  ASSERT_TRUE(guest);
  grpc::ClientContext watch_context, trace_context;
  const auto watch = client_->stub().Watch(&watch_context, {});
  const auto trace = client_->stub().Trace(&trace_context, {});
  pb::Snapshot snapshot;
  pb::TraceBatch batch;
  ASSERT_TRUE(watch->Read(&snapshot));
  ASSERT_TRUE(trace->Read(&batch));
  EXPECT_EQ(daemon_->Stop(SIGTERM), 0);
  while (watch->Read(&snapshot)) {
  }
  while (trace->Read(&batch)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(trace->Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(AdminTest, StreamsAreBounded) {
  Start();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<pb::Snapshot>>> streams;
  pb::Snapshot snapshot;
  for (int i = 0; i < 32; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(client_->stub().Watch(contexts.back().get(), {}));
    ASSERT_TRUE(streams.back()->Read(&snapshot)) << i;
  }
  grpc::ClientContext context;
  const auto one_more = client_->stub().Watch(&context, {});
  EXPECT_FALSE(one_more->Read(&snapshot));
  EXPECT_EQ(one_more->Finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GT(client_->Call(&Stub::GetStatus, {}).pid(), 0u) << "calls still find a thread";
  for (auto& one : contexts) one->TryCancel();
  for (auto& stream : streams) {
    while (stream->Read(&snapshot)) {
    }
    (void)stream->Finish();
  }
}

// ---------------------------------------------------------------------------------------------
// gRPC's own services, and strangers

/// One call of any method with raw bytes.
grpc::Status Raw(AdminClient& client, const std::string& method, const std::string& request, std::string* reply) {
  grpc::GenericStub stub(client.channel());
  grpc::ClientContext context;
  context.set_deadline(AdminClient::Deadline());
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer buffer(&slice, 1);
  const auto call = stub.PrepareUnaryCall(&context, method, buffer, &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool done = false;
  queue.Next(&tag, &done);
  std::vector<grpc::Slice> slices;
  if (status.ok() && reply != nullptr && answer.Dump(&slices).ok()) {
    for (const grpc::Slice& one : slices) reply->append(reinterpret_cast<const char*>(one.begin()), one.size());
  }
  return status;
}

TEST_F(AdminTest, HealthIsServed) {
  Start();
  std::string reply;
  // HealthCheckRequest{service}; HealthCheckResponse{status = SERVING}.
  const std::string service = "hawser.admin.v1.Admin";
  const std::string request = std::string("\x0a") + static_cast<char>(service.size()) + service;
  EXPECT_TRUE(Raw(*client_, "/grpc.health.v1.Health/Check", request, &reply).ok());
  EXPECT_EQ(reply, std::string("\x08\x01"));
  EXPECT_EQ(Raw(*client_, "/grpc.health.v1.Health/Check", "\x0a\x03xyz", nullptr).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(AdminTest, ReflectionNamesTheServices) {
  Start();
  grpc::GenericStub stub(client_->channel());
  grpc::ClientContext context;
  context.set_deadline(AdminClient::Deadline());
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto stream =
      stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  stream->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  // ServerReflectionRequest{list_services = "*"}
  const grpc::Slice slice(std::string("\x3a\x01*"));
  stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  grpc::ByteBuffer answer;
  stream->Read(&answer, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(answer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& one : slices) text.append(reinterpret_cast<const char*>(one.begin()), one.size());
  EXPECT_THAT(text, HasSubstr("hawser.admin.v1.Admin"));
  EXPECT_THAT(text, HasSubstr("grpc.health.v1.Health"));
  context.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
}

TEST_F(AdminTest, SurvivesNonsense) {
  Start();
  // Fields cut off, lengths beyond the end, groups, the wrong types, too much.
  const std::string requests[] = {"\xff", std::string("\x0a\x7fshort"), std::string("\x0b\x0c\x13"), "\x0a\x02\xff\xfe",
                                  std::string(2u << 20, '\x0a')};
  for (const char* method : {"SetTenant", "StopSession", "SetPolicy", "NoSuchCall"}) {
    for (const std::string& request : requests) {
      const grpc::Status status = Raw(*client_, std::string("/hawser.admin.v1.Admin/") + method, request, nullptr);
      EXPECT_FALSE(status.ok()) << method;
    }
  }
  for (const char* method : {"Watch", "Trace"}) {
    EXPECT_FALSE(Raw(*client_, std::string("/hawser.admin.v1.Admin/") + method, "\xff", nullptr).ok()) << method;
  }
  // Not HTTP/2 at all.
  auto raw = wire::Connect(wire::Endpoint::Parse("unix:" + socket()).value(), wire::SocketUse::kCommand,
                           std::chrono::seconds(10));
  ASSERT_TRUE(raw.ok());
  const std::string garbage(100'000, '\x5a');
  (void)!::send(raw->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
  EXPECT_GT(client_->Call(&Stub::GetStatus, {}).pid(), 0u);
  auto guest = Join(*daemon_, Over(Transport::kShm));
  ASSERT_TRUE(guest);
  Work(*guest, 1);
}

TEST_F(AdminTest, NobodyElseMayUseIt) {
  Start();
  struct stat info {};
  ASSERT_EQ(::stat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  constexpr uid_t kNobody = 65534;
  const std::string path = socket();
  const std::string folder = std::filesystem::path(path).parent_path();
  // Somebody with another user id; the folder lets everybody through, so that it is the socket that keeps them out.
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  const auto connects = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(9);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      path.copy(address.sun_path, sizeof(address.sun_path) - 1);
      const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) ::_exit(1);
      // HTTP/2's preface; a server that talks to us answers with its settings.
      const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
      (void)!::send(fd, preface.data(), preface.size(), MSG_NOSIGNAL);
      char byte;
      ::_exit(::recv(fd, &byte, 1, 0) > 0 ? 3 : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(connects(), 1) << "the file's mode keeps others out";
  // And if somebody opens the file up.
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  EXPECT_EQ(connects(), 2) << "hung up on without an answer";
  EXPECT_TRUE(daemon_->WaitForLog("refused uid 65534"));
}

TEST_F(AdminTest, TcpMustBeAllowedInWords) {
  const std::string listen = "[admin]\nlisten = \"tcp:127.0.0.1:0\"\n";
  char path[] = "/tmp/hawser-admin-XXXXXX";
  const wire::Fd fd(::mkstemp(path));
  ASSERT_EQ(::write(fd.get(), listen.data(), listen.size()), static_cast<ssize_t>(listen.size()));
  const Ran ran = RunProgram({HAWSERD, "--config", path, "--listen", "tcp:127.0.0.1:0", "--worker", FAKE_WORKER});
  ::unlink(path);
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, HasSubstr("yes, whoever can connect may control this server"));

  Start(listen + "allow_tcp = \"yes, whoever can connect may control this server\"\n");
  const std::string mark = "operators connect to tcp:";
  const std::string log = daemon_->log();
  const size_t at = log.find(mark);
  ASSERT_NE(at, std::string::npos) << log;
  const std::string address = log.substr(at + mark.size(), log.find('\n', at) - at - mark.size());
  AdminClient client(address);
  EXPECT_GT(client.Call(&Stub::GetStatus, {}).pid(), 0u);
}

TEST_F(AdminTest, CanBeTurnedOff) {
  Start("[admin]\nlisten = \"none\"\n");
  EXPECT_FALSE(std::filesystem::exists(socket()));
  EXPECT_TRUE(Join(*daemon_, Over(Transport::kShm)));
}

TEST_F(AdminTest, LeavesNothingBehind) {
  Start();
  const auto threads = [&] {
    return std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(daemon_->pid()) + "/task"), {});
  };
#if defined(__SANITIZE_THREAD__)
  constexpr int kOwn = 4;  // That sanitizer has a thread of its own in every process.
#else
  constexpr int kOwn = 3;
#endif
  EXPECT_EQ(threads(), kOwn)
      << "the event loop, the scheduler and who removes temporary files, and nobody else before the first operator";
  for (int i = 0; i < 3; ++i) {
    AdminClient client("unix:" + socket());
    client.Call(&Stub::GetStatus, {});
  }
  client_.reset();
  EXPECT_GT(threads(), kOwn);
  EXPECT_EQ(daemon_->Stop(SIGTERM), 0);
}

}  // namespace
}  // namespace hawser::server
