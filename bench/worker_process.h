// SPDX-License-Identifier: Apache-2.0
// A child process that answers JSON requests, one line each: hawser-bench-opencl.
//
// Threading: belongs to one thread. The child ends when the object does.
#ifndef HAWSER_BENCH_WORKER_PROCESS_H_
#define HAWSER_BENCH_WORKER_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::bench {

/// Changes to the environment of a child: (name, value); an empty value removes the name.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// Starts `arguments` (the first is the program's path) with `changes` to this process's environment.
/// The child's stdin and stdout are the given descriptors (-1: /dev/null); stderr is inherited or,
/// when given, `error`. It gets SIGTERM when this process dies. Returns its process id.
wire::Result<pid_t> SpawnChild(const std::vector<std::string>& arguments, const Environment& changes, int input,
                               int output, int error);

/// Sends SIGTERM, waits up to `patience`, then SIGKILL. Only for a child of this process.
void StopChild(pid_t child, std::chrono::milliseconds patience);

class WorkerProcess {
 public:
  static wire::Result<std::unique_ptr<WorkerProcess>> Start(const std::string& program, const Environment& changes);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends the request and waits for its answer; an "error" in the answer becomes the status.
  wire::Result<nlohmann::json> Call(const nlohmann::json& request, std::chrono::milliseconds timeout);
  /// The two halves of Call(), so that something else can happen in between.
  wire::Status Send(const nlohmann::json& request);
  wire::Result<nlohmann::json> Receive(std::chrono::milliseconds timeout);
  /// SIGKILL, and waits for its end.
  void Kill();

 private:
  WorkerProcess(pid_t child, wire::Fd to, wire::Fd from) : child_(child), to_(std::move(to)), from_(std::move(from)) {}

  pid_t child_;
  wire::Fd to_;
  wire::Fd from_;
  std::string asked_;    ///< The request on its way.
  std::string pending_;  ///< Read and not yet a whole line.
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_WORKER_PROCESS_H_
