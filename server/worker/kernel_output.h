// SPDX-License-Identifier: Apache-2.0
// What kernels print goes to the guest's stdout.
//
// OpenCL implementations for CPUs print to this process's stdout. Until a program that may print is
// created, stdout is /dev/null and nothing costs anything; then it becomes a pipe.
//
// Threads: a thread of its own forwards while a kernel runs; Drain(), on any thread, forwards what
// has been printed before the caller goes on. Lock: mutex_ keeps the order of the output; Replies is
// called under it.
#ifndef HAWSER_SERVER_WORKER_KERNEL_OUTPUT_H_
#define HAWSER_SERVER_WORKER_KERNEL_OUTPUT_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>

#include "server/worker/dialect.h"
#include "server/worker/services.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

class KernelOutput {
 public:
  /// `backlog` says how many bytes the guest has not taken yet: while there are many, the thread
  /// leaves the pipe alone, so that a kernel that prints without end waits for its reader as it would
  /// with a pipe at home. `stdout_fd` is the descriptor that kernels print to.
  KernelOutput(Replies* replies, const Dialect* dialect, std::function<size_t()> backlog, int stdout_fd = 1);
  /// Puts /dev/null in the place of `stdout_fd` if Enable() replaced it.
  ~KernelOutput();

  /// Idempotent. Any thread.
  wire::Status Enable();
  /// Sends everything printed so far. One relaxed load while nothing was enabled.
  void Drain() {
    if (enabled_.load(std::memory_order_relaxed)) DrainNow();
  }

 private:
  void DrainNow();
  void Run();

  Replies* const replies_;
  const Dialect* const dialect_;
  const std::function<size_t()> backlog_;
  const int stdout_fd_;

  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  wire::Fd pipe_;    ///< The end that is read; non-blocking.
  wire::Fd wakeup_;  ///< eventfd: ends the thread.
  std::thread thread_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_KERNEL_OUTPUT_H_
