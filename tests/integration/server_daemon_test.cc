// SPDX-License-Identifier: Apache-2.0
// The real hawserd and the real worker, without OpenCL, against guests that speak raw frames.
#include "tests/integration/server_daemon.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/server/fake_backend.h"

namespace hawser::server {
namespace {

using opencl::Opcode;
using wire::Fd;
using wire::Id;
using wire::Transport;

constexpr uint8_t kQueue = static_cast<uint8_t>(opencl::Handle::kQueue);

HelloOptions Over(Transport transport) {
  HelloOptions options;
  options.transport = transport;
  return options;
}

opencl::Flush Ask(Prank prank) {
  opencl::Flush flush;
  flush.queue = Id(kQueue, 1, static_cast<uint32_t>(prank));
  return flush;
}

/// True when a call is answered: the session lives.
bool Answers(TestGuest& guest) {
  const uint64_t seq = guest.Send(Opcode::kGetInventory, opencl::Nothing{});
  while (const auto frame = guest.Next()) {
    if (frame->header.seq == seq) return true;
  }
  return false;
}

std::string LossOf(TestGuest& guest) {
  const auto frames = guest.DrainToEnd();
  if (frames.empty() || frames.back().opcode() != Opcode::kSessionLost) return "";
  return std::string(frames.back().As<opencl::SessionLost>().reason);
}

class TransportTest : public ::testing::TestWithParam<Transport> {};

TEST_P(TransportTest, ServesAGuestAndForgetsIt) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(guest);
  EXPECT_TRUE(Answers(*guest));
  EXPECT_EQ(daemon->children().size(), 1u);
  guest.reset();
  EXPECT_TRUE(daemon->WaitForLog("ended: the guest left"));
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST_P(TransportTest, RefusesAnotherVersionInWords) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  HelloOptions options = Over(GetParam());
  options.version = 9;
  options.description = 0x1234;
  std::string why;
  EXPECT_FALSE(Join(*daemon, options, &why));
  EXPECT_NE(why.find("version 9 (description 0x0000000000001234) in the guest"), std::string::npos) << why;
  EXPECT_TRUE(daemon->WaitForLog("refused "));
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST_P(TransportTest, AWorkerThatIsKilledEndsItsGuestAndNobodyElse) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(guest);
  ASSERT_TRUE(Answers(*guest));
  const std::vector<pid_t> first = daemon->children();
  ASSERT_EQ(first.size(), 1u);
  auto neighbour = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(neighbour);
  ::kill(first[0], SIGKILL);
  EXPECT_TRUE(guest->DrainToEnd().empty());
  EXPECT_TRUE(daemon->WaitForLog("killed by signal 9 (SIGKILL)"));
  EXPECT_TRUE(Answers(*neighbour));
  guest.reset();
  neighbour.reset();
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST(TemporaryFilesTest, NoneStayOfWorkersThatAreGone) {
  char base[] = "/tmp/hawser-temporary-XXXXXX";
  ASSERT_NE(::mkdtemp(base), nullptr);
  const auto folders = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(base)) found.push_back(entry.path().string());
    return found;
  };
  const auto wait_until = [](auto&& holds) {
    for (int i = 0; i < 1000 && !holds(); ++i) ::usleep(10'000);
    return holds();
  };
  Daemon::Options options;
  options.environment = {std::string("TMPDIR=") + base};
  {
    auto daemon = Daemon::Start(options);
    ASSERT_TRUE(daemon);
    auto guest = Join(*daemon, Over(Transport::kUnix));
    ASSERT_TRUE(guest);
    ASSERT_TRUE(Answers(*guest));
    const std::vector<std::string> one = folders();
    ASSERT_EQ(one.size(), 1u);
    std::ofstream(one[0] + "/file") << "text";
    ::kill(daemon->children().at(0), SIGKILL);
    EXPECT_TRUE(wait_until([&] { return folders().empty(); }));
    auto next = Join(*daemon, Over(Transport::kUnix));
    ASSERT_TRUE(next);
    ASSERT_TRUE(Answers(*next));
    EXPECT_EQ(folders().size(), 1u);
    EXPECT_EQ(daemon->Stop(SIGKILL), 1000 + SIGKILL);
    EXPECT_EQ(folders().size(), 1u) << "nobody is there who could remove it";
    EXPECT_TRUE(next->DrainToEnd().empty());
  }
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  EXPECT_TRUE(wait_until([&] { return folders().empty(); }));
  auto guest = Join(*daemon, Over(Transport::kUnix));
  ASSERT_TRUE(guest);
  ASSERT_TRUE(Answers(*guest));
  EXPECT_EQ(folders().size(), 1u);
  EXPECT_EQ(daemon->Stop(SIGTERM), 0);
  EXPECT_TRUE(folders().empty());
  std::filesystem::remove_all(base);
}

TEST_P(TransportTest, ACrashIsToldToTheGuestAndTheLog) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  for (const auto& [prank, name] : {std::pair{Prank::kCrash, "SIGSEGV"}, std::pair{Prank::kAbort, "SIGABRT"}}) {
    auto guest = Join(*daemon, Over(GetParam()));
    ASSERT_TRUE(guest);
    guest->Send(Opcode::kFlush, Ask(prank));
    EXPECT_NE(LossOf(*guest).find(name), std::string::npos);
    EXPECT_TRUE(
        daemon->WaitForLog(std::string("killed by signal ") + (prank == Prank::kCrash ? "11 (" : "6 (") + name));
  }
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST_P(TransportTest, AWorkerThatHangsIsKilledWhenItsGuestIsGone) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(guest);
  ASSERT_TRUE(Answers(*guest));
  guest->Send(Opcode::kFlush, Ask(Prank::kHang));
  // What is not begun when the guest goes is never begun.
  EXPECT_TRUE(daemon->WaitForLog("hanging from now on"));
  guest.reset();
  EXPECT_TRUE(daemon->WaitForLog("has not ended; killing it"));
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST_P(TransportTest, AHostileCommandEndsOnlyItsOwnSession) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto neighbour = Join(*daemon, Over(GetParam()));
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(neighbour && guest);
  wire::FrameHeader header;
  header.opcode = 0x6666;
  header.seq = 1;
  ASSERT_TRUE(guest->command().WriteAll(wire::AsBytes(&header, sizeof(header))).ok());
  EXPECT_NE(LossOf(*guest), "");
  EXPECT_TRUE(daemon->WaitForLog("error: session"));
  EXPECT_TRUE(daemon->WaitForLog("the guest broke the protocol"));
  EXPECT_TRUE(Answers(*neighbour));
}

TEST_P(TransportTest, StoppingTellsGuestsAndLeavesNothing) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(guest);
  ASSERT_TRUE(Answers(*guest));
  const pid_t worker = daemon->children().at(0);
  EXPECT_EQ(daemon->Stop(SIGTERM), 0);
  EXPECT_NE(LossOf(*guest).find("stopped"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(daemon->socket_path()));
  EXPECT_NE(::kill(worker, 0), 0);
}

TEST_P(TransportTest, KernelsPrintBeforeTheFinishThatWaitsForThem) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(guest);
  for (int i = 0; i < 20; ++i) {
    guest->Send(Opcode::kFlush, Ask(Prank::kPrint));
    opencl::Finish finish;
    finish.queue = Id(kQueue, 1, 1);
    const uint64_t seq = guest->Send(Opcode::kFinish, finish);
    const auto output = guest->Next();
    ASSERT_TRUE(output);
    ASSERT_EQ(output->opcode(), Opcode::kKernelOutput);
    EXPECT_EQ(output->As<opencl::KernelOutput>().text.size(), 8u);
    const auto finished = guest->Next();
    ASSERT_TRUE(finished);
    EXPECT_EQ(finished->header.seq, seq);
  }
}

TEST_P(TransportTest, AWorkerHasNoNetwork) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(GetParam()));
  ASSERT_TRUE(guest);
  guest->Send(Opcode::kFlush, Ask(Prank::kOpenNetwork), wire::kWantStatus);
  const auto frame = guest->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->As<opencl::Status>().status, EPERM);
}

TEST_P(TransportTest, AWorkerThatCannotStartSaysWhy) {
  Daemon::Options options;
  options.environment = {"FAKE_BACKEND_FAILS=1"};
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  std::string why;
  EXPECT_FALSE(Join(*daemon, Over(GetParam()), &why));
  EXPECT_NE(why.find("told to fail"), std::string::npos) << why;
  EXPECT_TRUE(daemon->WaitForLog("could not start"));
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

INSTANTIATE_TEST_SUITE_P(All, TransportTest, ::testing::Values(Transport::kShm, Transport::kUnix, Transport::kTcp),
                         [](const auto& test) { return std::string(wire::TransportName(test.param)); });

// ---------------------------------------------------------------------------------------------
// Who may come in

TEST(HawserdTest, KnowsTenantsByTheirToken) {
  Daemon::Options options;
  options.config = "[tcp]\nrequire_token = true\n[tenants.lab]\ntoken = \"a token of the laboratory\"\n";
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  HelloOptions hello = Over(Transport::kTcp);
  std::string why;
  EXPECT_FALSE(Join(*daemon, hello, &why));
  EXPECT_NE(why.find("HAWSER_TOKEN"), std::string::npos) << why;
  hello.token = "a token of the laboratorx";
  EXPECT_FALSE(Join(*daemon, hello, &why));
  EXPECT_NE(why.find("not one that the server knows"), std::string::npos) << why;
  hello.token = "a token of the laboratory";
  auto guest = Join(*daemon, hello);
  ASSERT_TRUE(guest);
  EXPECT_TRUE(daemon->WaitForLog("tenant lab"));
  EXPECT_EQ(daemon->log().find("of the laboratory"), std::string::npos) << "tokens are not logged";
}

TEST(HawserdTest, ReadsTokensAgain) {
  Daemon::Options options;
  options.config = "[tcp]\nrequire_token = true\n[tenants.a]\ntoken = \"the first token of all\"\n";
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  daemon->WriteConfig("[tcp]\nrequire_token = true\n[tenants.a]\ntoken = \"the second one of all\"\n");
  ::kill(daemon->pid(), SIGHUP);
  ASSERT_TRUE(daemon->WaitForLog("read the configuration again"));
  HelloOptions hello = Over(Transport::kTcp);
  hello.token = "the first token of all";
  std::string why;
  EXPECT_FALSE(Join(*daemon, hello, &why));
  hello.token = "the second one of all";
  EXPECT_TRUE(Join(*daemon, hello));
  daemon->WriteConfig("nonsense");
  ::kill(daemon->pid(), SIGHUP);
  ASSERT_TRUE(daemon->WaitForLog("the configuration stays as it is"));
  EXPECT_TRUE(Join(*daemon, hello));
}

TEST(HawserdTest, KeepsToItsLimits) {
  Daemon::Options options;
  options.config = "[limits]\nmax_sessions = 2\nmax_sessions_per_tenant = 1\n";
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  auto local = Join(*daemon, Over(Transport::kShm));
  ASSERT_TRUE(local);
  std::string why;
  EXPECT_FALSE(Join(*daemon, Over(Transport::kUnix), &why));
  EXPECT_NE(why.find("has its 1 sessions already"), std::string::npos) << why;
  auto loopback = Join(*daemon, Over(Transport::kTcp));
  ASSERT_TRUE(loopback);
  local.reset();
  ASSERT_TRUE(daemon->WaitForLog("ended: the guest left"));
  EXPECT_TRUE(Join(*daemon, Over(Transport::kUnix))) << "a place that was given back";
}

TEST(HawserdTest, SharedMemoryNeedsAUnixSocket) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  HelloOptions hello = Over(Transport::kShm);
  auto fd = wire::Connect(wire::Endpoint::Parse(daemon->Uri(Transport::kTcp)).value(), wire::SocketUse::kCommand,
                          std::chrono::seconds(10));
  ASSERT_TRUE(fd.ok());
  const auto frame = HelloFrame(hello);
  ASSERT_EQ(::send(fd->get(), frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
  const auto welcome = ReadWelcome(fd->get());
  ASSERT_TRUE(welcome.ok());
  EXPECT_FALSE(welcome.value().accepted);
  EXPECT_NE(welcome.value().text.find("needs a unix socket"), std::string::npos);
}

TEST(HawserdTest, WorkersDieWithHawserd) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(Transport::kUnix));
  ASSERT_TRUE(guest);
  ASSERT_TRUE(Answers(*guest));
  EXPECT_EQ(daemon->Stop(SIGKILL), 1000 + SIGKILL);
  EXPECT_TRUE(guest->DrainToEnd().empty());
}

// ---------------------------------------------------------------------------------------------
// Strangers

wire::Result<Fd> Stranger(const Daemon& daemon, Transport transport) {
  return wire::Connect(wire::Endpoint::Parse(daemon.Uri(transport)).value(), wire::SocketUse::kCommand,
                       std::chrono::seconds(10));
}

bool SeesEnd(int fd) {
  char byte;
  timeval patience{20, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const ssize_t got = ::recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

size_t ResidentKiB(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

TEST(HawserdTest, AThousandSilentConnectionsKeepNobodyOut) {
  Daemon::Options options;
  options.config = "[limits]\nmax_pending = 100\nhandshake_timeout_ms = 2000\n";
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  auto before = Join(*daemon, Over(Transport::kUnix));
  ASSERT_TRUE(before);
  const size_t resident = ResidentKiB(daemon->pid());
  std::vector<Fd> silent;
  for (int i = 0; i < 1000; ++i) {
    auto fd = Stranger(*daemon, i % 2 == 0 ? Transport::kUnix : Transport::kTcp);
    ASSERT_TRUE(fd.ok()) << i << ": " << fd.status().text();
    silent.push_back(std::move(fd.value()));
  }
  auto during = Join(*daemon, Over(Transport::kTcp));
  ASSERT_TRUE(during);
  EXPECT_TRUE(Answers(*during));
  EXPECT_TRUE(Answers(*before));
  EXPECT_LT(daemon->descriptors(), 200u);
  EXPECT_LT(ResidentKiB(daemon->pid()), resident + 4096);
  EXPECT_TRUE(daemon->WaitForLog("too many connections wait"));
  EXPECT_LT(daemon->log().size(), 100'000u) << "the log does not flood";
  before.reset();
  during.reset();
  silent.clear();
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST(HawserdTest, GarbageIsDroppedAndLogged) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  for (const Transport transport : {Transport::kUnix, Transport::kTcp}) {
    auto fd = Stranger(*daemon, transport);
    ASSERT_TRUE(fd.ok());
    const std::vector<std::byte> garbage(1u << 20, std::byte{0xa5});
    size_t at = 0;
    while (at < garbage.size()) {
      const ssize_t put = ::send(fd.value().get(), garbage.data() + at, garbage.size() - at, MSG_NOSIGNAL);
      if (put <= 0) break;
      at += static_cast<size_t>(put);
    }
    EXPECT_TRUE(SeesEnd(fd.value().get()));
    EXPECT_TRUE(daemon->WaitForLog("not a Hawser guest"));
  }
  EXPECT_TRUE(daemon->WaitUntilIdle());
  EXPECT_TRUE(Join(*daemon, Over(Transport::kShm)));
}

TEST(HawserdTest, HalfAGreetingIsDroppedInTime) {
  Daemon::Options options;
  options.config = "[limits]\nhandshake_timeout_ms = 200\n";
  auto daemon = Daemon::Start(options);
  ASSERT_TRUE(daemon);
  const auto frame = HelloFrame(Over(Transport::kUnix));
  for (const size_t size : {size_t{1}, size_t{16}, frame.size() - 1}) {
    auto fd = Stranger(*daemon, Transport::kUnix);
    ASSERT_TRUE(fd.ok());
    ASSERT_EQ(::send(fd.value().get(), frame.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
    EXPECT_TRUE(SeesEnd(fd.value().get()));
    EXPECT_TRUE(daemon->WaitForLog("said only " + std::to_string(size) + " bytes"));
  }
  // One half of a session, without the other.
  auto half = Greet(*daemon, Over(Transport::kUnix));
  ASSERT_TRUE(half.ok());
  EXPECT_TRUE(SeesEnd(half.value().get()));
  EXPECT_TRUE(daemon->WaitForLog("second connection of its session never came"));
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST(HawserdTest, AGuestThatLeavesBeforeItsWelcomeLeavesNothing) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  const auto frame = HelloFrame(Over(Transport::kShm));
  for (int i = 0; i < 5; ++i) {
    {
      auto fd = Stranger(*daemon, Transport::kShm);
      ASSERT_TRUE(fd.ok());
      ASSERT_EQ(::send(fd.value().get(), frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
    }
    EXPECT_TRUE(daemon->WaitForLog("the guest left"));  // What else a worker may end with is said instead.
    EXPECT_TRUE(daemon->WaitUntilIdle());
  }
  EXPECT_TRUE(Join(*daemon, Over(Transport::kShm)));
}

TEST(HawserdTest, ManySessionsLeaveNothingBehind) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  for (int i = 0; i < 30; ++i) {
    auto guest = Join(*daemon, Over(static_cast<Transport>(1 + i % 3)));
    ASSERT_TRUE(guest);
    EXPECT_TRUE(i % 2 == 0 || Answers(*guest));
  }
  EXPECT_TRUE(daemon->WaitUntilIdle());
}

TEST(HawserdTest, WorkersLinesReachTheLog) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  auto guest = Join(*daemon, Over(Transport::kShm));
  ASSERT_TRUE(guest);
  guest->Send(Opcode::kFlush, Ask(Prank::kLog));
  EXPECT_TRUE(daemon->WaitForLog("warning: session 1 (tenant uid-" + std::to_string(::getuid()) +
                                 ", 'test' pid 4242): a line for the log"));
}

// ---------------------------------------------------------------------------------------------
// The command line

TEST(HawserdCommandLineTest, HelpShowsExamples) {
  const Ran help = RunProgram({HAWSERD, "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* word : {"--listen", "--config", "--log-level", "--worker", "Examples:", "tcp:127.0.0.1:9700"}) {
    EXPECT_NE(help.output.find(word), std::string::npos) << word;
  }
}

TEST(HawserdCommandLineTest, SaysItsVersion) {
  const Ran version = RunProgram({HAWSERD, "--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.output.rfind("hawserd ", 0), 0u) << version.output;
}

TEST(HawserdCommandLineTest, SaysWhatIsWrong) {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& words) {
    std::vector<std::string> command{HAWSERD};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ran ran = RunProgram(command);
    EXPECT_NE(ran.status, 0);
    EXPECT_LT(ran.status, 1000);
    EXPECT_NE(ran.output.find(words), std::string::npos) << ran.output;
  };
  expect({"--no-such-option"}, "no-such-option");
  expect({"--config", "/does/not/exist.toml"}, "/does/not/exist.toml");
  expect({"--listen", "smoke:signals"}, "smoke");
  expect({"--listen", "tcp:127.0.0.1:0", "--log-level", "loud"}, "loud");
  expect({"--listen", "tcp:127.0.0.1:0", "--worker", "/does/not/exist"}, "/does/not/exist");
  expect({"--listen", "tcp:0.0.0.0:0", "--worker", FAKE_WORKER}, "yes, I trust this network");
  char path[] = "/tmp/hawser-config-XXXXXX";
  const Fd fd(::mkstemp(path));
  const std::string text = "[limits]\nmax_sesions = 3\n";
  ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  expect({"--config", path}, std::string(path) + ":2: limits.max_sesions");
  ::unlink(path);
}

TEST(HawserdCommandLineTest, RefusesASocketThatIsInUse) {
  auto daemon = Daemon::Start({});
  ASSERT_TRUE(daemon);
  const Ran ran = RunProgram({HAWSERD, "--listen", "unix:" + daemon->socket_path(), "--worker", FAKE_WORKER});
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("another server already listens"), std::string::npos) << ran.output;
  EXPECT_TRUE(Join(*daemon, Over(Transport::kUnix))) << "and leaves the other one alone";
}

}  // namespace
}  // namespace hawser::server
