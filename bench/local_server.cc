// SPDX-License-Identifier: Apache-2.0
#include "bench/local_server.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "bench/worker_process.h"
#include "wire/socket.h"

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

std::string LastLines(const std::string& path) {
  std::ifstream file(path);
  std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return all.size() > 2000 ? all.substr(all.size() - 2000) : all;
}

}  // namespace

std::string ListeningUri(const std::string& line) {
  static const std::string kMark = "listening on ";
  const size_t at = line.find(kMark);
  if (at == std::string::npos) return "";
  const size_t begin = at + kMark.size();
  return line.substr(begin, line.find_first_of(" \t\r\n", begin) - begin);
}

Result<std::unique_ptr<LocalServer>> LocalServer::Start(const std::string& hawserd, const std::string& directory,
                                                        std::chrono::milliseconds timeout,
                                                        const std::vector<std::string>& more_arguments) {
  const std::string socket = directory + "/hawser.sock", log = directory + "/hawserd.log";
  const Fd log_fd(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log_fd.valid()) return Status::FromErrno("opening " + log);
  // The server offers the devices of the system's OpenCL platforms, whatever this process was told to use.
  std::vector<std::string> arguments{hawserd, "--listen", "unix:" + socket, "--listen", "tcp:127.0.0.1:0"};
  arguments.insert(arguments.end(), more_arguments.begin(), more_arguments.end());
  auto child = SpawnChild(arguments,
                          {{"POCL_CACHE_DIR", directory + "/server-cache"},
                           {"XDG_CACHE_HOME", directory + "/server-cache"},
                           {"HAWSER_SERVER", ""}},
                          -1, log_fd.get(), log_fd.get());
  if (!child.ok()) return child.status();
  std::unique_ptr<LocalServer> server(new LocalServer(*child, socket));
  const auto deadline = Clock::now() + timeout;
  while (Clock::now() < deadline) {
    bool unix_ready = false;
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const std::string uri = ListeningUri(line);
      if (uri.rfind("tcp:", 0) == 0) server->tcp_ = uri;
      if (uri.rfind("unix:", 0) == 0) unix_ready = true;
    }
    if (unix_ready && !server->tcp_.empty()) return server;
    if (waitpid(server->child_, nullptr, WNOHANG) == server->child_) {
      server->child_ = -1;
      return Status(Code::kSystem, hawserd + " ended at once; it said:\n" + LastLines(log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return Status(Code::kTimeout, hawserd + " did not say that it listens; it said:\n" + LastLines(log));
}

LocalServer::~LocalServer() { StopChild(child_, std::chrono::seconds(3)); }

std::string LocalServer::Uri(Transport transport) const {
  switch (transport) {
    case Transport::kShm:
      return "shm:" + socket_;
    case Transport::kUnix:
      return "unix:" + socket_;
    case Transport::kTcp:
      return tcp_;
    case Transport::kVsock:
      break;
  }
  return "";
}

}  // namespace hawser::bench
