// SPDX-License-Identifier: Apache-2.0
// A hawserd of its own for a test, in a folder of its own.
#ifndef HAWSER_TESTS_INTEGRATION_SERVER_DAEMON_H_
#define HAWSER_TESTS_INTEGRATION_SERVER_DAEMON_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/server/test_guest.h"
#include "wire/endpoint.h"
#include "wire/socket.h"

namespace hawser::server {

/// A program that ran to its end.
struct Ran {
  int status = -1;     ///< Exit status; 1000 + signal when killed.
  std::string output;  ///< stdout and stderr.
};
Ran RunProgram(const std::vector<std::string>& command);

class Daemon {
 public:
  struct Options {
    std::string worker;                    ///< Path; empty: the one without OpenCL.
    std::string config;                    ///< Contents of the configuration file, besides [server].
    std::vector<std::string> environment;  ///< KEY=VALUE, on top.
  };
  /// Listens on a unix socket and a free TCP port. Null (and a failed test) when it does not start.
  static std::unique_ptr<Daemon> Start(const Options& options);
  /// Stops it if it still runs, and removes the folder.
  ~Daemon();

  std::string Uri(wire::Transport transport) const;
  std::string socket_path() const { return folder_ + "/hawser.sock"; }
  void WriteConfig(const std::string& config) const;
  pid_t pid() const { return pid_; }

  std::string log() const;
  /// Waits until the log has this text, behind what was there at the last call.
  bool WaitForLog(const std::string& text);
  /// Descriptors that hawserd has open, and its children.
  size_t descriptors() const { return Descriptors(/*but_folders=*/false); }
  std::vector<pid_t> children() const;
  /// Waits until both are as after the start.
  bool WaitUntilIdle();

  /// Sends the signal and waits for the end; its exit status as in Ran.
  int Stop(int signal);

 private:
  Daemon() = default;
  bool WaitUntilReady();
  size_t Descriptors(bool but_folders) const;

  std::string folder_;
  pid_t pid_ = -1;
  size_t descriptors_at_start_ = 0;
  std::string tcp_;
  mutable std::mutex mutex_;
  std::string log_;
  size_t seen_ = 0;
  bool log_ended_ = false;
  std::thread reader_;
};

/// Says hello on a fresh connection.
wire::Result<wire::Fd> Greet(const Daemon& daemon, const HelloOptions& options);

/// A whole handshake over this transport. Null when it is refused; *refusal (may be null) says why.
std::unique_ptr<TestGuest> Join(const Daemon& daemon, HelloOptions options, std::string* refusal = nullptr);

}  // namespace hawser::server

#endif  // HAWSER_TESTS_INTEGRATION_SERVER_DAEMON_H_
