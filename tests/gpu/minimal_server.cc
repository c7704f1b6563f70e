// SPDX-License-Identifier: Apache-2.0
// A server without the control plane, for machines that have none of its packages: greets guests, starts a worker for
// each, and nothing else. No tenants, no limits, no admission: it listens on unix sockets and on loopback alone.
//
//   hawserd --listen unix:/path.sock|tcp:127.0.0.1:PORT ... [--device auto|nvidia|soft] [--cuda-driver PATH]
//           [--cuda-memory auto|chunks|driver|heap] [--worker PATH] [--config FILE]      of the file only the line
//           cache = "DIR"  counts
//
// Threads: one, in poll(); a child's end is seen by its pidfd.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/export_table.h"
#include "server/hello_reader.h"
#include "server/session_stats.h"
#include "server/worker_process.h"
#include "wire/endpoint.h"
#include "wire/socket.h"

namespace hawser::server {
namespace {

using wire::Endpoint;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

volatile sig_atomic_t stop = 0;

struct Options {
  std::vector<std::string> listen;
  std::string worker;
  std::string cache;
  std::string cuda_driver;
  CudaDevice device = CudaDevice::kAuto;
  CudaMemory memory = CudaMemory::kAuto;
};

struct Connection {
  Fd fd;
  Transport transport = Transport::kUnix;
  HelloReader hello;
};

struct Session {
  uint64_t id = 0;
  WorkerProcess worker;
  std::optional<SessionStats> stats;
  Fd exports;  ///< What its worker asks of shared memory and events.
};

int Complain(const std::string& text) {
  std::cerr << "hawserd: " << text << std::endl;
  return 2;
}

/// The value of `cache` in a configuration file.
std::string CacheOf(const std::string& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("cache = \"", 0) != 0) continue;
    const size_t end = line.find('"', 9);
    if (end != std::string::npos) return line.substr(9, end - 9);
  }
  return "";
}

class MinimalServer {
 public:
  explicit MinimalServer(Options options) : options_(std::move(options)) {}

  Status Open() {
    for (const std::string& uri : options_.listen) {
      Result<Endpoint> endpoint = Endpoint::Parse(uri);
      if (!endpoint.ok()) return endpoint.status();
      if (endpoint->transport == Transport::kTcp && endpoint->host != "127.0.0.1") {
        return Status(wire::Code::kInvalid, "this small server asks nobody who he is; listen on 127.0.0.1");
      }
      Result<Fd> listener = wire::Listen(*endpoint, 64);
      if (!listener.ok()) return listener.status();
      Result<Endpoint> bound = wire::BoundEndpoint(*endpoint, listener->get());
      if (!bound.ok()) return bound.status();
      if (::fcntl(listener->get(), F_SETFL, O_NONBLOCK) != 0) return Status::FromErrno("cannot listen without waiting");
      std::cout << "listening on " << bound->ToString() << std::endl;
      listeners_.emplace_back(std::move(*listener), endpoint->transport);
    }
    return {};
  }

  void Run() {
    while (stop == 0) {
      std::vector<pollfd> entries;
      for (const auto& [fd, transport] : listeners_) entries.push_back({fd.get(), POLLIN, 0});
      for (const Connection& connection : connections_) {
        entries.push_back({connection.fd.get(), static_cast<short>(connection.hello.complete() ? 0 : POLLIN), 0});
      }
      for (const Session& session : sessions_) {
        entries.push_back({session.worker.log.get(), POLLIN, 0});
        entries.push_back({session.worker.pidfd.get(), POLLIN, 0});
        entries.push_back({session.exports.get(), POLLIN, 0});
      }
      if (::poll(entries.data(), entries.size(), 200) < 0) continue;
      for (Session& session : sessions_) {
        PassLog(session);
        if (exports_.Serve(session.id, session.exports.get()) == ExportTable::Served::kBroken) session.exports.Reset();
      }
      sessions_.remove_if([this](const Session& session) {
        const Result<WorkerEnd> end = ReapWorkerIfOver(session);
        if (end.ok()) exports_.End(session.id);
        if (end.ok()) std::cout << "session " << session.id << " ended: " << end.value().ToString() << std::endl;
        return end.ok();
      });
      for (const auto& [fd, transport] : listeners_) Accept(fd.get(), transport);
      for (Connection& connection : connections_) Read(connection);
      connections_.remove_if([](const Connection& connection) { return !connection.fd.valid(); });
      Pair();
    }
    for (const Session& session : sessions_) ::kill(-session.worker.pid, SIGKILL);
  }

 private:
  static Result<WorkerEnd> ReapWorkerIfOver(const Session& session) {
    pollfd entry{session.worker.pidfd.get(), POLLIN, 0};
    if (::poll(&entry, 1, 0) <= 0) return Status(wire::Code::kTimeout, "it runs");
    return ReapWorker(session.worker);
  }

  static void PassLog(const Session& session) {
    char text[8192];
    for (;;) {
      const ssize_t got = ::read(session.worker.log.get(), text, sizeof(text));
      if (got <= 0) return;
      std::cout << "session " << session.id << ": " << std::string(text, static_cast<size_t>(got)) << std::flush;
    }
  }

  void Accept(int listener, Transport transport) {
    for (;;) {
      Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid()) return;
      Connection& connection = connections_.emplace_back();
      connection.fd = std::move(fd);
      connection.transport = transport;
    }
  }

  static void Read(Connection& connection) {
    std::byte buffer[kMaxHello];
    while (!connection.hello.complete()) {
      const ssize_t got = ::recv(connection.fd.get(), buffer, connection.hello.wanted(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      const Status status =
          got > 0 ? connection.hello.Add({buffer, static_cast<size_t>(got)}) : Status(wire::Code::kClosed, "it left");
      if (status.ok()) continue;
      std::cout << "dropped a connection: " << status.text() << std::endl;
      if (status.code() == wire::Code::kRefused) {
        const std::vector<std::byte> frame = RefusalFrame(status.text());
        (void)!::send(connection.fd.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      }
      connection.fd.Reset();
      return;
    }
  }

  void Pair() {
    for (auto command = connections_.begin(); command != connections_.end(); ++command) {
      if (!command->hello.complete()) continue;
      const Greeting& greeting = command->hello.greeting();
      if (greeting.channel != Greeting::Channel::kCommand) continue;
      auto bulk = connections_.end();
      if (!greeting.shm) {
        for (bulk = connections_.begin(); bulk != connections_.end(); ++bulk) {
          if (bulk->hello.complete() && bulk->hello.greeting().channel == Greeting::Channel::kBulk &&
              bulk->hello.greeting().nonce == greeting.nonce) {
            break;
          }
        }
        if (bulk == connections_.end()) continue;
      }
      Start(*command, bulk == connections_.end() ? -1 : bulk->fd.get());
      if (bulk != connections_.end()) connections_.erase(bulk);
      connections_.erase(command);
      return Pair();
    }
  }

  void Start(const Connection& command, int bulk) {
    const Greeting& greeting = command.hello.greeting();
    Session session;
    session.id = next_session_++;
    WorkerSettings settings;
    settings.session = session.id;
    settings.tenant = "everybody";
    settings.program = greeting.program;
    settings.guest_pid = greeting.pid;
    settings.transport = greeting.shm ? Transport::kShm : command.transport;
    settings.api = greeting.api;
    settings.server_pid = ::getpid();
#ifdef HAWSER_WITHOUT_SECCOMP
    settings.syscall_filter = false;
#else
    settings.syscall_filter = std::getenv("HAWSER_NO_SYSCALL_FILTER") == nullptr;
#endif
    settings.confine = std::getenv("HAWSER_NO_CONFINEMENT") == nullptr;
    settings.cuda_device = options_.device;
    settings.cuda_driver = options_.cuda_driver;
    settings.cuda_memory = options_.memory;
    settings.cuda_cache = options_.cache;
    Result<SessionStats> stats = SessionStats::Create();
    if (!stats.ok()) return Refuse(command, stats.status().text());
    session.stats.emplace(std::move(*stats));
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      return Refuse(command, Status::FromErrno("cannot create sockets").text());
    }
    session.exports = Fd(ends[0]);
    const Fd theirs(ends[1]);
    settings.exports = true;
    exports_.Begin(session.id, settings.tenant);
    WorkerDescriptors descriptors;
    descriptors.exports = theirs.get();
    descriptors.command = command.fd.get();
    descriptors.bulk = bulk;
    descriptors.stats = session.stats->fd();
    Result<WorkerProcess> worker = SpawnWorker({options_.worker, WorkerEnvironment({})}, settings, descriptors);
    if (!worker.ok()) {
      exports_.End(session.id);
      return Refuse(command, worker.status().text());
    }
    session.worker = std::move(*worker);
    sessions_.push_back(std::move(session));
  }

  static void Refuse(const Connection& command, const std::string& why) {
    std::cout << "cannot start a worker: " << why << std::endl;
    const std::vector<std::byte> frame = RefusalFrame(why);
    (void)!::send(command.fd.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  const Options options_;
  std::vector<std::pair<Fd, Transport>> listeners_;
  std::list<Connection> connections_;
  std::list<Session> sessions_;
  ExportTable exports_{1024};  // Files that all sessions may share at a time.
  uint64_t next_session_ = 1;
};

int Main(int argc, char** argv) {
  Options options;
  options.worker = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hawser-worker").string();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--listen") {
      options.listen.push_back(value);
    } else if (key == "--worker") {
      options.worker = value;
    } else if (key == "--cuda-driver") {
      options.cuda_driver = value;
    } else if (key == "--config") {
      options.cache = CacheOf(value);
    } else if (key == "--admin") {
      continue;  // There is no control plane here: what the tests give the whole server, this one takes and leaves.
    } else if (key == "--device") {
      const Result<CudaDevice> device = ParseCudaDevice(value);
      if (!device.ok()) return Complain(device.status().text());
      options.device = device.value();
    } else if (key == "--cuda-memory") {
      const Result<CudaMemory> memory = ParseCudaMemory(value);
      if (!memory.ok()) return Complain(memory.status().text());
      options.memory = memory.value();
    } else {
      return Complain("unknown option " + key);
    }
  }
  if (argc % 2 == 0 || options.listen.empty()) return Complain("give --listen URI, and a value for each option");
  struct sigaction action {};
  action.sa_handler = [](int) { stop = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  MinimalServer server(std::move(options));
  if (Status status = server.Open(); !status.ok()) return Complain(status.text());
  server.Run();
  return 0;
}

}  // namespace
}  // namespace hawser::server

int main(int argc, char** argv) { return hawser::server::Main(argc, argv); }
