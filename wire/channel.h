// SPDX-License-Identifier: Apache-2.0
// The one interface of all transports: an ordered, reliable, two-way stream of bytes.
//
// Who uses it: a session has two channels, one for commands and answers, one for bulk data. Over
// shared memory a channel is a pair of rings, over unix, tcp and vsock it is a socket.
//
// Threading: at most one thread reads and at most one (other) thread writes at a time; the session
// on each side sees to that with its own locks. Shutdown() may be called from any thread at any
// time and wakes both.
#ifndef HAWSER_WIRE_CHANNEL_H_
#define HAWSER_WIRE_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "wire/codec.h"
#include "wire/status.h"

namespace hawser::wire {

/// How long a waiter spins before it parks. Every spin is bounded and yields the core while it
/// lasts, because a CPU device may need that core (measured: an unbounded spin turned 1 us into
/// 2 ms when both cores were busy).
struct SpinPolicy {
  std::chrono::nanoseconds spin{0};  ///< 0: park at once.
};

class Channel {
 public:
  virtual ~Channel() = default;

  /// Reads what is there, up to buffer.size(). Returns 0 when nothing is there now; never waits.
  /// kClosed once the peer is gone and everything it sent was read.
  virtual Result<size_t> TryRead(std::span<std::byte> buffer) = 0;

  /// Waits until TryRead would return bytes or an error, or until the timeout.
  /// Returns kTimeout when time ran out. No timeout: waits as long as the peer lives.
  virtual Status WaitReadable(SpinPolicy spin, std::optional<std::chrono::nanoseconds> timeout) = 0;

  /// Prepares for InterruptRead(); call before other threads use the channel.
  virtual Status EnableInterrupts() { return {}; }
  /// Makes the WaitReadable() that is under way, or the next one, return at once and ok although nothing
  /// may be there. From any thread. Without EnableInterrupts() nothing happens.
  virtual void InterruptRead() {}

  /// Takes bytes for the peer. May keep them in a buffer of its own until Flush() or until enough
  /// have gathered (sockets); over shared memory they are visible at once. Never waits: returns how
  /// many bytes were taken, fewer than all (perhaps 0) when the peer does not keep up.
  virtual Result<size_t> TryWrite(Bytes bytes) = 0;

  /// Sends what TryWrite kept. Never waits: returns true when nothing is kept any more.
  virtual Result<bool> TryFlush() = 0;

  /// Waits until TryWrite or TryFlush can make progress, or until the timeout (kTimeout).
  virtual Status WaitWritable(std::optional<std::chrono::nanoseconds> timeout) = 0;

  /// Bytes taken and not yet handed to the peer or the kernel. Always 0 over shared memory.
  virtual size_t unflushed() const = 0;

  /// Ends both directions and wakes all waiters on both sides. Idempotent.
  virtual void Shutdown() = 0;

  /// Forgets the stream without telling the peer: closes descriptors and unmaps memory of this
  /// process only. For the child of a fork().
  virtual void Abandon() = 0;

  /// Writes and flushes everything, waiting as needed. For set-up and for threads that may wait.
  Status WriteAll(Bytes bytes, bool flush = true);
  /// Reads exactly buffer.size() bytes, waiting as needed.
  Status ReadAll(std::span<std::byte> buffer, SpinPolicy spin = {});
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_CHANNEL_H_
