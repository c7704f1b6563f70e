// SPDX-License-Identifier: Apache-2.0
// Event loop, listener, rate limiter, lines, environment of workers.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/event_loop.h"
#include "server/line_splitter.h"
#include "server/listener.h"
#include "server/rate_limiter.h"
#include "server/worker_process.h"

namespace hawser::server {
namespace {

using std::chrono::milliseconds;

TEST(RateLimiter, AllowsABurstAndThenARate) {
  RateLimiter limiter(3, 10);
  RateLimiter::Clock::time_point now{std::chrono::seconds(100)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Ask(now).allowed);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limiter.Ask(now).allowed);
  now += milliseconds(150);
  const auto verdict = limiter.Ask(now);
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(verdict.suppressed, 5u);
  EXPECT_FALSE(limiter.Ask(now).allowed);
  now += std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Ask(now).allowed);
  EXPECT_FALSE(limiter.Ask(now).allowed) << "silence earns no more than a burst";
}

TEST(LineSplitter, CutsLinesAndBoundsThem) {
  LineSplitter splitter;
  std::vector<std::string> lines;
  const auto keep = [&](const std::string& line) { lines.push_back(line); };
  splitter.Add("one\ntw", keep);
  splitter.Add("o\n\nthree", keep);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  splitter.Finish(keep);
  EXPECT_EQ(lines.back(), "three");
  splitter.Add(std::string(10'000, 'x'), keep);
  splitter.Finish(keep);
  size_t total = 0;
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), LineSplitter::kMaxLine);
    total += line.size();
  }
  EXPECT_EQ(total, 10'000u + 11);
}

class EventLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loop_.Open().ok());
    ASSERT_EQ(::pipe(ends_), 0);
  }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  EventLoop loop_;
  int ends_[2];
};

TEST_F(EventLoopTest, CallsWhoeverIsReady) {
  int calls = 0;
  auto watch = loop_.Watch(ends_[0], EPOLLIN, [&](uint32_t events) {
    EXPECT_NE(events & EPOLLIN, 0u);
    if (++calls == 3) loop_.Stop();
  });
  ASSERT_TRUE(watch.ok());
  ASSERT_EQ(::write(ends_[1], "x", 1), 1);
  loop_.Run();
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, RunsTimersInOrderAndForgetsCancelledOnes) {
  std::string order;
  loop_.After(milliseconds(20), [&] {
    order += "c";
    loop_.Stop();
  });
  loop_.After(milliseconds(1), [&] { order += "a"; });
  const auto never = loop_.After(milliseconds(5), [&] { order += "!"; });
  loop_.After(milliseconds(2), [&] {
    order += "b";
    loop_.Cancel(never);
  });
  loop_.Run();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(loop_.timers(), 0u);
}

TEST_F(EventLoopTest, ACallbackMayUnwatchItselfAndOthers) {
  int other[2];
  ASSERT_EQ(::pipe(other), 0);
  int calls = 0;
  EventLoop::WatchId first = 0, second = 0;
  const auto ready = [&](uint32_t) {
    ++calls;
    loop_.Unwatch(first);
    loop_.Unwatch(second);
    loop_.After(milliseconds(5), [&] { loop_.Stop(); });
  };
  first = *loop_.Watch(ends_[0], EPOLLIN, ready);
  second = *loop_.Watch(other[0], EPOLLIN, ready);
  ASSERT_EQ(::write(ends_[1], "x", 1), 1);
  ASSERT_EQ(::write(other[1], "x", 1), 1);
  loop_.Run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loop_.watches(), 0u);
  ::close(other[0]);
  ::close(other[1]);
}

class ListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hawser-listener-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { ASSERT_EQ(::rmdir(folder_.c_str()), 0) << "a listener left its file behind"; }
  std::string folder_;
};

TEST_F(ListenerTest, KnowsTheUserAtTheOtherEndOfAUnixSocket) {
  const std::string path = folder_ + "/s";
  auto listener = Listener::Open("unix:" + path, 0660);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  auto guest = wire::Connect((*listener)->endpoint(), wire::SocketUse::kCommand, milliseconds(1000));
  ASSERT_TRUE(guest.ok());
  auto visitor = (*listener)->Accept();
  ASSERT_TRUE(visitor.ok());
  EXPECT_EQ(visitor->peer.kind, PeerIdentity::Kind::kUnix);
  EXPECT_EQ(visitor->peer.uid, ::getuid());
  EXPECT_EQ(visitor->peer.pid, ::getpid());
  EXPECT_TRUE((*listener)->passes_descriptors());
  EXPECT_EQ((*listener)->Accept().status().code(), wire::Code::kTimeout);
}

TEST_F(ListenerTest, ServesSharedMemoryUnderEitherName) {
  auto listener = Listener::Open("shm:" + folder_ + "/s", 0600);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  EXPECT_EQ((*listener)->endpoint().ToString(), "unix:" + folder_ + "/s");
}

TEST_F(ListenerTest, KnowsLoopbackFromElsewhere) {
  auto listener = Listener::Open("tcp:127.0.0.1:0", 0600);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  EXPECT_FALSE((*listener)->reachable_from_elsewhere());
  EXPECT_NE((*listener)->endpoint().port, 0u);
  auto guest = wire::Connect((*listener)->endpoint(), wire::SocketUse::kCommand, milliseconds(1000));
  ASSERT_TRUE(guest.ok());
  auto visitor = (*listener)->Accept();
  ASSERT_TRUE(visitor.ok());
  EXPECT_EQ(visitor->peer.kind, PeerIdentity::Kind::kLoopback);
  EXPECT_EQ(visitor->peer.address.rfind("127.0.0.1:", 0), 0u);
}

TEST_F(ListenerTest, AHybridVsockSocketNamesItsMachine) {
  auto listener = Listener::Open("vsock:" + folder_ + "/vm:9700", 0600);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  EXPECT_FALSE((*listener)->passes_descriptors());
  const std::string path = folder_ + "/vm_9700";
  auto guest = wire::Connect(*wire::Endpoint::Parse("unix:" + path), wire::SocketUse::kCommand, milliseconds(1000));
  ASSERT_TRUE(guest.ok());
  auto visitor = (*listener)->Accept();
  ASSERT_TRUE(visitor.ok());
  EXPECT_EQ(visitor->peer.kind, PeerIdentity::Kind::kHybridVsock);
  EXPECT_EQ(visitor->peer.socket, path);
}

TEST_F(ListenerTest, LeavesAFileThatIsNotItsOwn) {
  const std::string path = folder_ + "/s";
  auto listener = Listener::Open("unix:" + path, 0600);
  ASSERT_TRUE(listener.ok());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  auto successor = Listener::Open("unix:" + path, 0600);
  ASSERT_TRUE(successor.ok()) << successor.status().text();
  listener->reset();
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

TEST(WorkerEnvironment, KeepsGuestsSettingsAwayFromWorkers) {
  ::setenv("HAWSER_SERVER", "unix:/x", 1);
  ::setenv("HAWSER_TOKEN", "secret", 1);
  ::setenv("HAWSER_TEST_KEPT", "yes", 1);
  ::setenv("OCL_ICD_VENDORS", "/guest", 1);
  const auto variables = WorkerEnvironment({{"OCL_ICD_VENDORS", "/server"}});
  const auto has = [&](const std::string& variable) {
    return std::find(variables.begin(), variables.end(), variable) != variables.end();
  };
  EXPECT_TRUE(has("HAWSER_WORKER=1"));
  EXPECT_TRUE(has("HAWSER_TEST_KEPT=yes"));
  EXPECT_TRUE(has("OCL_ICD_VENDORS=/server"));
  EXPECT_FALSE(has("OCL_ICD_VENDORS=/guest"));
  for (const std::string& variable : variables) {
    EXPECT_NE(variable.rfind("HAWSER_SERVER=", 0), 0u);
    EXPECT_NE(variable.rfind("HAWSER_TOKEN=", 0), 0u);
  }
  for (const char* name : {"HAWSER_SERVER", "HAWSER_TOKEN", "HAWSER_TEST_KEPT", "OCL_ICD_VENDORS"}) ::unsetenv(name);
}

TEST(TenantFileName, IsOneComponentOfAPath) {
  EXPECT_EQ(TenantFileName("alice-2"), "alice-2");
  EXPECT_EQ(TenantFileName("../../etc"), "______etc");
  EXPECT_EQ(TenantFileName(".."), "__");
  EXPECT_EQ(TenantFileName(""), "_");
}

TEST(WorkerEnd, SaysWhatHappened) {
  EXPECT_NE((WorkerEnd{true, 11}).ToString().find("SIGSEGV"), std::string::npos);
  EXPECT_FALSE((WorkerEnd{true, 11}).expected());
  EXPECT_TRUE((WorkerEnd{false, kGuestLeft}).expected());
  EXPECT_FALSE((WorkerEnd{false, kProtocolError}).expected());
  EXPECT_NE((WorkerEnd{false, 3}).ToString().find("status 3"), std::string::npos);
}

}  // namespace
}  // namespace hawser::server
