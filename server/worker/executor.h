// SPDX-License-Identifier: Apache-2.0
// Runs a guest's commands, one after the other, in the guest's order.
//
// Threads: Run() is the executor thread. Lose(), Stop() and Abandon() may be called from any thread.
#ifndef HAWSER_SERVER_WORKER_EXECUTOR_H_
#define HAWSER_SERVER_WORKER_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/session_stats.h"
#include "server/worker/services.h"
#include "server/worker/session_backend.h"
#include "server/worker/session_log.h"
#include "wire/channel.h"
#include "wire/frame_reader.h"

namespace hawser::server {

class Executor {
 public:
  enum class End : uint8_t {
    kGuestLeft,  ///< The stream ended between two commands or in the middle of one, or Abandon() was called.
    kLost,       ///< The session was ended from this side; Lose() or a malformed command. Logged already.
  };

  /// All borrowed.
  Executor(wire::Channel* commands, SessionBackend* backend, Replies* replies, SessionLog* log, wire::SpinPolicy spin,
           SessionStatsPage* stats = UncountedSession());

  /// Returns when the session is over.
  End Run();

  /// Ends the session from any thread: logs the reason, tells the guest (unless its side is stuck),
  /// wakes the executor. The first reason counts.
  void Lose(const std::string& reason, bool tell_guest = true);
  /// As Lose(), for a reason that is not the guest's protocol. `cause` is a SessionStatsPage::Cause.
  void Stop(const std::string& reason, uint32_t cause = 0);
  /// The guest is known to be dead: what it sent and was not begun is of use to nobody, and would only take time from
  /// its neighbours. Run() returns after the command that it is in. Any thread.
  void Abandon();

  /// Commands executed. Executor thread only.
  uint64_t executed() const { return next_seq_ - 1; }

 private:
  End Loop();
  /// False when the frame cannot be accepted; the session has then been lost.
  bool Execute(const wire::FrameHeader& header, wire::Bytes payload);
  /// False: as Execute().
  bool Conclude(const wire::FrameHeader& header, const SessionBackend::Outcome& outcome, const std::string& refusal);
  void EndSession(std::string_view level, const std::string& reason, bool tell_guest, uint32_t cause);
  std::string Where(const wire::FrameHeader& header) const;
  void Report(const wire::FrameHeader& header, int32_t status, const std::string& refusal);

  wire::Channel* const commands_;
  SessionBackend* const backend_;
  const Dialect& dialect_;
  Replies* const replies_;
  SessionLog* const log_;
  const wire::SpinPolicy spin_;
  SessionStatsPage* const stats_;
  wire::FrameReader reader_;
  uint64_t next_seq_ = 1;
  std::string error_;                ///< Reused, so that a good command allocates nothing.
  std::atomic<bool> ending_{false};  ///< Somebody has begun to end the session.
  std::atomic<bool> lost_{false};    ///< The guest was told, or is dead.
  std::atomic<bool> dead_{false};    ///< The guest is. Written before lost_.
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_EXECUTOR_H_
