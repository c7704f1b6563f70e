// SPDX-License-Identifier: Apache-2.0
// Shared-memory transport: rings in a sealed memfd, with a unix socket as the line that tells when
// the peer is gone.
//
// Trust: the server creates and seals the memfd (no shrink, no grow), so the guest cannot make the
// server fault. Each side keeps its own position in private memory, publishes a copy, and checks
// the peer's published position for plausibility (0 <= tail - head <= capacity) before use; bytes
// are copied out before they are decoded.
#ifndef HAWSER_WIRE_SHM_H_
#define HAWSER_WIRE_SHM_H_

#include <cstddef>
#include <memory>

#include "wire/channel.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::wire {

/// Sizes of the four rings of a session, bytes, powers of two.
struct ShmLayout {
  uint32_t command_up = 1u << 20;    ///< guest to server
  uint32_t command_down = 1u << 20;  ///< server to guest
  uint32_t bulk_up = 4u << 20;
  uint32_t bulk_down = 4u << 20;
};

/// The memory that both sides map. Owned by the channels made from it.
class ShmSession {
 public:
  /// Server: creates, sizes and seals the memfd and maps it.
  static Result<std::unique_ptr<ShmSession>> Create(const ShmLayout& layout);
  /// Guest: maps a received memfd after checking its size and its layout header.
  static Result<std::unique_ptr<ShmSession>> Open(Fd memfd);

  virtual ~ShmSession() = default;
  virtual int memfd() const = 0;

  enum class Side : uint8_t { kServer, kGuest };
  /// The two channels of one side. `liveness` is this side's end of the unix socket (borrowed; it must
  /// outlive the channels); a parked waiter looks at it at least every 100 ms. The memory stays
  /// mapped until the last channel is destroyed. The guest's mapping is not inherited by fork().
  virtual std::unique_ptr<Channel> CommandChannel(Side side, int liveness) = 0;
  virtual std::unique_ptr<Channel> BulkChannel(Side side, int liveness) = 0;
};

/// A sealed, sparse memfd that both sides map: the session's heap for zero-copy buffers.
/// Pages exist once touched.
Result<Fd> CreateHeap(size_t size, const char* name);

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SHM_H_
