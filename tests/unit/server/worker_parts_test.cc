// SPDX-License-Identifier: Apache-2.0
// Settings, names of transfers, staging memory, the log, the sandbox.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include "server/worker/name_window.h"
#include "server/worker/sandbox.h"
#include "server/worker/session_log.h"
#include "server/worker/staging_buffer.h"
#include "server/worker_settings.h"
#include "tests/support/in_child.h"

namespace hawser::server {
namespace {

using test::InChild;

TEST(WorkerSettings, SurviveTheirJourney) {
  WorkerSettings settings;
  settings.session = 5;
  settings.tenant = "a=b c";
  settings.program = "evil\nsession=6\n";
  settings.transport = wire::Transport::kVsock;
  settings.staging_memory = uint64_t{1} << 40;
  settings.share_memory = false;
  settings.run_as_uid = 65534;
  const auto parsed = WorkerSettings::Parse(settings.Serialize());
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value().session, 5u);
  EXPECT_EQ(parsed.value().tenant, "a=b c");
  EXPECT_EQ(parsed.value().program, "evil?session=6?") << "a guest's name adds no line";
  EXPECT_EQ(parsed.value().transport, wire::Transport::kVsock);
  EXPECT_EQ(parsed.value().staging_memory, uint64_t{1} << 40);
  EXPECT_FALSE(parsed.value().share_memory);
  EXPECT_EQ(parsed.value().run_as_uid, 65534u);
  EXPECT_EQ(parsed.value().run_as_gid, UINT32_MAX);
}

TEST(WorkerSettings, RefuseWhatTheyDoNotKnow) {
  for (const char* bad : {"nonsense", "unknown=1\n", "session=x\n", "session=-1\n", "share_memory=2\n", "transport=0\n",
                          "transport=9\n", "guest_pid=99999999999\n"}) {
    EXPECT_FALSE(WorkerSettings::Parse(bad).ok()) << bad;
  }
}

TEST(NameWindow, RemembersWhatWasUsed) {
  NameWindow window;
  EXPECT_FALSE(window.Fresh(0));
  window.Mark(1);
  EXPECT_FALSE(window.Fresh(1));
  window.Mark(10);
  EXPECT_TRUE(window.Fresh(5)) << "names may come a little out of order";
  window.Mark(5);
  EXPECT_FALSE(window.Fresh(5));
  for (uint64_t name = 11; name < 200'000; ++name) {
    ASSERT_TRUE(window.Fresh(name));
    window.Mark(name);
    ASSERT_FALSE(window.Fresh(name));
  }
  EXPECT_FALSE(window.Fresh(6)) << "too old to know";
  window.Mark(uint64_t{1} << 60);
  EXPECT_FALSE(window.Fresh(199'999));
  EXPECT_TRUE(window.Fresh((uint64_t{1} << 60) - 1));
}

TEST(StagingBuffer, ChargesItsAccount) {
  StagingAccount account{10'000, 0};
  {
    StagingBuffer one;
    ASSERT_TRUE(one.Reserve(&account, 6000));
    one.data()[5999] = std::byte{1};
    EXPECT_EQ(account.used, 6000u);
    StagingBuffer two;
    EXPECT_FALSE(two.Reserve(&account, 5000));
    EXPECT_TRUE(two.Reserve(&account, 4000));
    EXPECT_FALSE(one.Reserve(&account, 6001));
    StagingBuffer three = std::move(one);
    EXPECT_EQ(account.used, 10'000u);
    EXPECT_EQ(three.data()[5999], std::byte{1});
    two.Release();
    EXPECT_TRUE(three.Reserve(&account, 10'000));
    EXPECT_EQ(three.data()[5999], std::byte{1});
  }
  EXPECT_EQ(account.used, 0u);
}

TEST(SessionLog, StaysWithinItsRateAndOnOneLine) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  SessionLog log(ends[1]);
  log.Write("warning", "two\nlines");
  for (int i = 0; i < 1000; ++i) log.Write("info", "again");
  std::string text(65536, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(ends[0], text.data(), text.size()))));
  EXPECT_EQ(text.rfind("warning: two?lines\n", 0), 0u);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 100);
  EXPECT_LT(lines, 500);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Sandbox, RefusesTheNetworkAndOtherProcesses) {
  const int result = InChild([] {
    if (!DropPrivileges({}).ok()) return 1;
    const wire::Status status = InstallSyscallFilter();
    if (!status.ok()) return 2;
    if (::socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM) return 3;
    if (::socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || errno != EPERM) return 4;
    if (::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr) != -1 || errno != EPERM) return 5;
    if (::kill(::getppid(), 0) != -1 || errno != EPERM) return 6;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(Sandbox, LeavesWhatCompilersNeed) {
  const int result = InChild([] {
    if (!DropPrivileges({}).ok() || !InstallSyscallFilter().ok()) return 1;
    // Linking a kernel: a process of its own, with files and pipes.
    const int ran = ::system("echo x | cat > /dev/null && true");
    if (!WIFEXITED(ran) || WEXITSTATUS(ran) != 0) return 2;
    bool thread_ran = false;
    std::thread([&] { thread_ran = true; }).join();
    return thread_ran ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
}

TEST(Sandbox, BecomesAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change its user";
  const int result = InChild([] {
    WorkerSettings settings;
    settings.server_pid = ::getppid();
    settings.run_as_uid = settings.run_as_gid = 65534;
    if (!DropPrivileges(settings).ok()) return 1;
    if (::getuid() != 65534 || ::geteuid() != 65534 || ::getgid() != 65534) return 2;
    if (::setuid(0) == 0) return 3;
    int signal = 0;
    if (::prctl(PR_GET_PDEATHSIG, &signal) != 0 || signal != SIGKILL) return 4;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(Sandbox, BoundsResources) {
  const int result = InChild([] {
    WorkerSettings settings;
    settings.open_files = 77;
    if (!ApplyResourceLimits(settings).ok()) return 1;
    rlimit files{}, core{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_CORE, &core);
    if (files.rlim_max != 77 || core.rlim_max != 0) return 2;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(Sandbox, ClosesWhatItWasNotGiven) {
  const int result = InChild([] {
    const int fd = ::open("/dev/null", O_RDONLY);
    if (fd < 0) return 1;
    CloseFrom(fd);
    return ::fcntl(fd, F_GETFD) == -1 ? 0 : 2;
  });
  EXPECT_EQ(result, 0);
}

TEST(Sandbox, NoticesAParentThatIsGone) { EXPECT_EQ(DieWithParent(1 << 22).code(), wire::Code::kClosed); }

}  // namespace
}  // namespace hawser::server
