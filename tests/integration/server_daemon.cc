// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/server_daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace hawser::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

constexpr std::chrono::seconds kPatience{30};

template <typename Ready>
bool WaitFor(Ready ready) {
  const auto deadline = steady_clock::now() + kPatience;
  while (!ready()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

/// Starts a program whose stdout and stderr go to the returned pipe.
pid_t Spawn(std::vector<std::string> command, const std::vector<std::string>& environment, Fd* output) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  *output = Fd(ends[0]);
  const Fd write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), 2);
  std::vector<char*> arguments, variables;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<std::string> added = environment;
  for (std::string& variable : added) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

int WaitForEnd(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace

Ran RunProgram(const std::vector<std::string>& command) {
  Ran ran;
  Fd output;
  const pid_t pid = Spawn(command, {}, &output);
  if (pid < 0) return ran;
  char text[4096];
  for (ssize_t got; (got = ::read(output.get(), text, sizeof(text))) > 0;) {
    ran.output.append(text, static_cast<size_t>(got));
  }
  ran.status = WaitForEnd(pid);
  return ran;
}

std::unique_ptr<Daemon> Daemon::Start(const Options& options) {
  std::unique_ptr<Daemon> daemon(new Daemon());
  char folder[] = "/tmp/hawser-daemon-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return nullptr;
  daemon->folder_ = folder;
  daemon->WriteConfig(options.config);
  std::vector<std::string> environment = options.environment;
  environment.push_back("XDG_CACHE_HOME=" + daemon->folder_ + "/cache");
  Fd output;
  daemon->pid_ = Spawn(
      {HAWSERD, "--config", daemon->folder_ + "/hawserd.toml", "--listen", "unix:" + daemon->socket_path(), "--listen",
       "tcp:127.0.0.1:0", "--worker", options.worker.empty() ? FAKE_WORKER : options.worker, "--log-level", "debug"},
      environment, &output);
  if (daemon->pid_ < 0) {
    ADD_FAILURE() << "cannot start " HAWSERD;
    return nullptr;
  }
  daemon->reader_ = std::thread([daemon = daemon.get(), output = std::move(output)] {
    char text[4096];
    for (ssize_t got; (got = ::read(output.get(), text, sizeof(text))) > 0;) {
      std::lock_guard lock(daemon->mutex_);
      daemon->log_.append(text, static_cast<size_t>(got));
    }
    std::lock_guard lock(daemon->mutex_);
    daemon->log_ended_ = true;
  });
  if (daemon->WaitUntilReady()) return daemon;
  ADD_FAILURE() << "hawserd did not start:\n" << daemon->log();
  return nullptr;
}

bool Daemon::WaitUntilReady() {
  const std::string mark = "\nlistening on tcp:";
  const bool ready = WaitFor([&] {
    const std::string text = "\n" + log();
    const size_t at = text.find(mark);
    const size_t end = at == std::string::npos ? at : text.find('\n', at + 1);
    if (end == std::string::npos) {
      std::lock_guard lock(mutex_);
      return log_ended_;
    }
    tcp_ = text.substr(at + mark.size() - 4, end - at - mark.size() + 4);
    return true;
  });
  // It has folders open only while it looks for those that were left behind.
  descriptors_at_start_ = Descriptors(/*but_folders=*/true);
  return ready && !tcp_.empty();
}

Daemon::~Daemon() {
  if (pid_ > 0) {
    EXPECT_EQ(Stop(SIGTERM), 0) << "hawserd did not stop as it should";
  }
  if (reader_.joinable()) reader_.join();
  // Neither the server nor a worker fails for these in front of a guest.
  EXPECT_EQ(log_.find("WARNING: ThreadSanitizer"), std::string::npos);
  EXPECT_EQ(log_.find("ERROR: AddressSanitizer"), std::string::npos);
  EXPECT_EQ(log_.find(": runtime error: "), std::string::npos);
  if (::testing::Test::HasFailure()) std::fprintf(stderr, "--- hawserd's log\n%s---\n", log().c_str());
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
}

std::string Daemon::Uri(Transport transport) const {
  switch (transport) {
    case Transport::kShm:
      return "shm:" + socket_path();
    case Transport::kTcp:
      return tcp_;
    default:
      return "unix:" + socket_path();
  }
}

void Daemon::WriteConfig(const std::string& config) const { std::ofstream(folder_ + "/hawserd.toml") << config; }

std::string Daemon::log() const {
  std::lock_guard lock(mutex_);
  return log_;
}

bool Daemon::WaitForLog(const std::string& text) {
  return WaitFor([&] {
    std::lock_guard lock(mutex_);
    const size_t at = log_.find(text, seen_);
    if (at == std::string::npos) return false;
    seen_ = at + text.size();
    return true;
  });
}

size_t Daemon::Descriptors(bool but_folders) const {
  std::error_code error;
  size_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/" + std::to_string(pid_) + "/fd", error), end; at != end;
       at.increment(error)) {
    std::error_code gone;
    if (!but_folders || (!at->is_directory(gone) && !gone)) ++count;
  }
  return count;
}

std::vector<pid_t> Daemon::children() const {
  const std::string pid = std::to_string(pid_);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

bool Daemon::WaitUntilIdle() {
  const bool idle = WaitFor([&] { return children().empty() && descriptors() == descriptors_at_start_; });
  if (!idle) {
    ADD_FAILURE() << children().size() << " children, " << descriptors() << " descriptors instead of "
                  << descriptors_at_start_;
  }
  return idle;
}

int Daemon::Stop(int signal) {
  ::kill(pid_, signal);
  const int status = WaitForEnd(pid_);
  pid_ = -1;
  return status;
}

Result<Fd> Greet(const Daemon& daemon, const HelloOptions& options) {
  const Result<wire::Endpoint> endpoint = wire::Endpoint::Parse(daemon.Uri(options.transport));
  Result<Fd> fd = wire::Connect(endpoint.value(),
                                options.channel == 0 ? wire::SocketUse::kCommand : wire::SocketUse::kBulk, kPatience);
  if (!fd.ok()) return fd.status();
  if (Status status = wire::SendWithFds(fd->get(), HelloFrame(options), {}); !status.ok()) return status;
  return fd;
}

std::unique_ptr<TestGuest> Join(const Daemon& daemon, HelloOptions options, std::string* refusal) {
  static std::atomic<uint8_t> next_nonce{1};
  options.nonce = next_nonce++;
  options.channel = 0;
  Result<Fd> command = Greet(daemon, options), bulk = Fd();
  if (options.transport != Transport::kShm) {
    options.channel = 1;
    bulk = Greet(daemon, options);
  }
  if (!command.ok() || !bulk.ok()) {
    ADD_FAILURE() << "cannot connect: " << command.status().text() << bulk.status().text();
    return nullptr;
  }
  Result<WelcomeText> welcome = ReadWelcome(command->get());
  if (welcome.ok() && welcome->accepted) {
    return std::make_unique<TestGuest>(options.transport, std::move(*command), std::move(*bulk), std::move(*welcome));
  }
  const std::string why = welcome.ok() ? welcome->text : welcome.status().text();
  if (refusal != nullptr) *refusal = why;
  if (refusal == nullptr) ADD_FAILURE() << "refused: " << why;
  return nullptr;
}

}  // namespace hawser::server
