// SPDX-License-Identifier: Apache-2.0
// What a driver writes to this process's stderr, which is the log: lines that assert() of a kernel writes are also
// kept for the guest, on whose stderr a local driver would have written them.
//
// Until a program is loaded whose kernels may write such lines, stderr is left alone; then it becomes a pipe, from
// which a thread feeds the log.
//
// Threads: Enable() and Take() from any thread; Rescue() also from a signal handler. Lock: mutex_ keeps the order of
// what goes to the log, and guards the kept lines.
#ifndef HAWSER_SERVER_WORKER_DRIVER_MESSAGES_H_
#define HAWSER_SERVER_WORKER_DRIVER_MESSAGES_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::server {

class DriverMessages {
 public:
  /// Of a session's assertions so many bytes reach the guest; the log has them all.
  static constexpr size_t kMostBytes = 32u << 10;

  explicit DriverMessages(int stderr_fd = 2) : stderr_fd_(stderr_fd) {}
  /// Puts the log back in its place.
  ~DriverMessages();
  DriverMessages(const DriverMessages&) = delete;
  DriverMessages& operator=(const DriverMessages&) = delete;

  /// Idempotent.
  wire::Status Enable();
  /// The lines of assertions since the last call, each with its end; all that were written before the call.
  std::string Take();

  /// The process is about to end: what is still in the pipe goes to the log, and stderr is the log again. Of the
  /// object that was enabled last; safe in a signal handler.
  static void Rescue();

  /// file:line: function: block: [x,y,z], thread: [x,y,z] Assertion `...` failed.
  static bool IsAssertion(std::string_view line);

 private:
  /// Takes what is in the pipe. With the lock.
  void Read();
  void Keep(std::string_view text);
  void Run();

  const int stderr_fd_;
  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  wire::Fd log_;      ///< What stderr was.
  wire::Fd pipe_;     ///< The end that is read; non-blocking.
  wire::Fd wakeup_;   ///< eventfd: ends the thread.
  std::string line_;  ///< The begin of one that has no end yet.
  std::string kept_;
  size_t room_ = kMostBytes;
  std::thread thread_;
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_DRIVER_MESSAGES_H_
