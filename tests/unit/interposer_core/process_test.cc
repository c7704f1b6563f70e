// SPDX-License-Identifier: Apache-2.0
// The session of a process: the environment, refusals, fork(), exit(). Each case runs in a process of its own, made
// by fork() before it has any thread of the library.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/interposer_core/fake_server.h"

// Children of fork() start threads, which is what is tested.
extern "C" const char* __tsan_default_options();
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace hawser::guest {
namespace {

using opencl::Opcode;
using wire::FrameHeader;

struct Outcome {
  int status;        ///< Exit status, or 128 + signal.
  std::string said;  ///< On stderr.
};

int StatusOfChild(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs `body` in a child; its result is the exit status. The child ends with exit(), as programs do. Meanwhile
/// `serve` runs here on a thread that starts after the fork.
Outcome InProcess(
    const std::function<int()>& body, const std::function<void()>& serve = [] {}) {
  int pipe[2];
  EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::dup2(pipe[1], STDERR_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    ::exit(body());
  }
  ::close(pipe[1]);
  std::thread serving(serve);
  Outcome outcome;
  char buffer[4096];
  ssize_t got;
  while ((got = ::read(pipe[0], buffer, sizeof(buffer))) > 0) outcome.said.append(buffer, static_cast<size_t>(got));
  ::close(pipe[0]);
  outcome.status = StatusOfChild(child);
  serving.join();
  return outcome;
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Calls clFinish's message and returns what the server answers.
int32_t Finish(Session* session, uint64_t value) {
  opencl::Finish message;
  message.queue = wire::Id(value);
  opencl::Status status;
  const int32_t error = session->CallInto(Opcode::kFinish, message, &status);
  return error != 0 ? error : status.status;
}

TEST(ProcessSession, WithoutAServerNothingIsSaid) {
  const Outcome outcome = InProcess([] {
    ::unsetenv("HAWSER_SERVER");
    return Session::Current() == nullptr && Session::IfConnected() == nullptr ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.said, "");
}

TEST(ProcessSession, AWorkerNeverUsesItself) {
  FakeServer server(wire::Transport::kUnix);
  const Outcome outcome = InProcess([&] {
    ::setenv("HAWSER_SERVER", server.uri().c_str(), 1);
    ::setenv("HAWSER_WORKER", "1", 1);
    return Session::Current() == nullptr ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.said, "");
}

TEST(ProcessSession, AnUnreachableServerIsNamedOnce) {
  const Outcome outcome = InProcess([] {
    ::setenv("HAWSER_SERVER", "shm:/nowhere/hawser.sock", 1);
    for (int i = 0; i < 1000; ++i) {
      if (Session::Current() != nullptr) return 1;
    }
    return 0;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(Count(outcome.said, "\n"), 1u) << outcome.said;
  EXPECT_NE(outcome.said.find("shm:/nowhere/hawser.sock"), std::string::npos) << outcome.said;
  EXPECT_NE(outcome.said.find("hawser serve --listen unix:/nowhere/hawser.sock"), std::string::npos) << outcome.said;
}

TEST(ProcessSession, AWrongUriIsNamed) {
  const Outcome outcome = InProcess([] {
    ::setenv("HAWSER_SERVER", "carrier-pigeon:home", 1);
    return Session::Current() == nullptr ? 0 : 1;
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.said.find("carrier-pigeon:home"), std::string::npos) << outcome.said;
  EXPECT_EQ(Count(outcome.said, "\n"), 1u) << outcome.said;
}

Outcome ConnectTo(FakeServer& server) {
  return InProcess(
      [&] {
        ::setenv("HAWSER_SERVER", server.uri().c_str(), 1);
        return Session::Current() == nullptr ? 0 : 1;
      },
      [&] { (void)server.Accept(); });
}

TEST(ProcessSession, ARefusalIsQuoted) {
  for (const bool on_bulk : {false, true}) {
    FakeServerOptions options;
    options.refuse = "tenant 'lab' has 4 guests already";
    options.refuse_on_bulk = on_bulk;
    FakeServer server(wire::Transport::kTcp, options);
    const Outcome outcome = ConnectTo(server);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.said.find(options.refuse), std::string::npos) << outcome.said;
  }
}

TEST(ProcessSession, AnotherBuildIsRefusedWithBothHashes) {
  FakeServerOptions options;
  options.description = 0x1234;
  options.refuse = "no";
  FakeServer server(wire::Transport::kShm, options);
  const Outcome outcome = ConnectTo(server);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.said.find("0000000000001234"), std::string::npos) << outcome.said;
  char ours[32];
  std::snprintf(ours, sizeof(ours), "%016llx", static_cast<unsigned long long>(opencl::kDescriptionHash));
  EXPECT_NE(outcome.said.find(ours), std::string::npos) << outcome.said;
}

class ForkTest : public testing::TestWithParam<wire::Transport> {};

// One thread waits for an answer while another forks: the parent goes on, the child has a session of its own, and the
// parent's connection is not held open by the child.
TEST_P(ForkTest, TheParentGoesOnAndTheChildConnectsAfresh) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that a child of fork() starts";
#endif
  FakeServer server(GetParam());
  std::unique_ptr<Peer> first, second;
  const auto serve = [&] {
    first = server.Accept();
    FrameHeader header;
    std::vector<std::byte> payload;
    ASSERT_TRUE(first->Next(&header, &payload));
    const FrameHeader waiting = header;  // Answered once the child is done.
    second = server.Accept();
    FrameHeader from_child;
    ASSERT_TRUE(second->Next(&from_child, &payload));
    EXPECT_EQ(from_child.seq, 1u);
    opencl::Status status;
    status.status = 77;
    second->Reply(from_child, status);
    EXPECT_FALSE(second->Next(&from_child, &payload)) << "the child's exit ends its session";
    status.status = 55;
    first->Reply(waiting, status);
    ASSERT_TRUE(first->Next(&header, &payload));
    EXPECT_EQ(header.seq, 2u);
    status.status = 56;
    first->Reply(header, status);
    EXPECT_FALSE(first->Next(&header, &payload));
  };
  const Outcome outcome = InProcess(
      [&] {
        ::setenv("HAWSER_SERVER", server.uri().c_str(), 1);
        Session* session = Session::Current();
        if (session == nullptr || Session::IfConnected() != session) return 1;
        std::atomic<int32_t> waited{0};
        std::thread waiter([&] { waited = Finish(session, 1); });
        while (session->stats().waits == 0) std::this_thread::yield();
        session->AddListener();  // A thread of the library's own.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const pid_t child = ::fork();
        if (child == 0) {
          // The parent's session is over here, silently, and nothing of it can block.
          if (!session->lost() || Session::IfConnected() != nullptr) ::_exit(2);
          if (Finish(session, 1) != Session::lost_code()) ::_exit(3);
          session->Flush();
          session->Poll();
          session->Wake();
          session->PostCallback([] {});
          session->FreeId(session->NewId(1));
          session->CancelBulk(1);
          if (session->WaitBulkUntil([] { return false; }) != Session::lost_code()) ::_exit(4);
          Session* own = Session::Current();
          if (own == nullptr || own == session) ::_exit(5);
          ::exit(Finish(own, 1) == 77 ? 0 : 6);
        }
        const int status = StatusOfChild(child);
        waiter.join();
        if (status != 0) return 10 + status;
        if (waited != 55) return 7;
        return Finish(session, 1) == 56 ? 0 : 8;
      },
      serve);
  EXPECT_EQ(outcome.status, 0) << outcome.said;
  EXPECT_EQ(outcome.said, "");
}

// The child does nothing with the library and outlives the parent: the parent's session ends all the same.
TEST_P(ForkTest, ASilentChildDoesNotKeepTheParentsSession) {
  FakeServer server(GetParam());
  const auto serve = [&] {
    const auto peer = server.Accept();
    FrameHeader header;
    std::vector<std::byte> payload;
    opencl::Status status;
    status.status = 1;
    while (peer->Next(&header, &payload)) peer->Reply(header, status);  // Until the stream ends.
  };
  int hold[2];
  ASSERT_EQ(::pipe2(hold, O_CLOEXEC), 0);
  const Outcome outcome = InProcess(
      [&] {
        ::setenv("HAWSER_SERVER", server.uri().c_str(), 1);
        Session* session = Session::Current();
        if (session == nullptr || Finish(session, 1) != 1) return 1;
        if (::fork() == 0) {
          // Until the test lets go.
          ::close(hold[1]);
          ::close(STDERR_FILENO);
          char byte;
          (void)!::read(hold[0], &byte, 1);
          ::_exit(0);
        }
        return 0;
      },
      serve);
  EXPECT_EQ(outcome.status, 0) << outcome.said;
  ::close(hold[0]);
  ::close(hold[1]);
}

std::string Name(const testing::TestParamInfo<wire::Transport>& info) {
  return std::string(wire::TransportName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Transports, ForkTest,
                         testing::Values(wire::Transport::kShm, wire::Transport::kUnix, wire::Transport::kTcp), Name);

// exit() from a thread while others wait and callbacks run: the process ends, and the counters are written.
TEST(ProcessSession, ExitFromAnyThreadWritesTheStatistics) {
  FakeServer server(wire::Transport::kUnix);
  const std::string path = testing::TempDir() + "/hawser-stats-" + std::to_string(::getpid());
  std::unique_ptr<Peer> peer;
  const auto serve = [&] {
    peer = server.Accept();
    int seen = 0;
    FrameHeader header;
    std::vector<std::byte> payload;
    while (peer->Next(&header, &payload)) {
      if (++seen == 1) peer->Reply(header, opencl::Status());
    }
  };
  const Outcome outcome = InProcess(
      [&] {
        ::setenv("HAWSER_SERVER", server.uri().c_str(), 1);
        ::setenv("HAWSER_STATS", path.c_str(), 1);
        Session* session = Session::Current();
        if (session == nullptr || Finish(session, 1) != 0) return 1;
        session->AddListener();
        std::thread([session] { (void)Finish(session, 2); }).detach();
        std::thread([session] { (void)session->WaitBulkUntil([] { return false; }); }).detach();
        while (session->stats().waits < 3) std::this_thread::yield();
        std::thread([] { ::exit(9); }).join();
        return 2;
      },
      serve);
  EXPECT_EQ(outcome.status, 9) << outcome.said;
  EXPECT_EQ(outcome.said, "");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  ::unlink(path.c_str());
  EXPECT_EQ(text.str(),
            "{\"commands\":2,\"bytes_up\":48,\"bytes_down\":20,\"waits\":3,\"bulk_up\":0,\"bulk_down\":0}\n");
}

// Nothing of the session is left open for a program that is executed.
TEST(ProcessSession, DescriptorsAreCloseOnExec) {
  for (const wire::Transport transport : {wire::Transport::kShm, wire::Transport::kTcp}) {
    FakeServerOptions options;
    if (transport == wire::Transport::kShm) options.heap_size = 1u << 20;
    FakeServer server(transport, options);
    std::unique_ptr<Peer> peer;
    const Outcome outcome = InProcess(
        [&] {
          ::setenv("HAWSER_SERVER", server.uri().c_str(), 1);
          bool before[256];
          for (int fd = 0; fd < 256; ++fd) before[fd] = ::fcntl(fd, F_GETFD) >= 0;
          if (Session::Current() == nullptr) return 1;
          int found = 0;
          for (int fd = 0; fd < 256; ++fd) {
            const int flags = ::fcntl(fd, F_GETFD);
            if (flags < 0 || before[fd]) continue;
            ++found;
            if ((flags & FD_CLOEXEC) == 0) return 2;
          }
          return found != 0 ? 0 : 3;
        },
        [&] { peer = server.Accept(); });
    EXPECT_EQ(outcome.status, 0) << outcome.said;
  }
}

}  // namespace
}  // namespace hawser::guest
