// SPDX-License-Identifier: Apache-2.0
// Frames: what travels on the command channel (both directions) and on the bulk channel.
#ifndef HAWSER_WIRE_FRAME_H_
#define HAWSER_WIRE_FRAME_H_

#include <cstddef>
#include <cstdint>

namespace hawser::wire {

/// Head of each frame on the command channel, 16 bytes, little-endian, followed by `size` bytes.
struct FrameHeader {
  uint32_t size = 0;    ///< Payload bytes, at most kMaxFramePayload.
  uint16_t opcode = 0;  ///< Which message; numbers come from the description in proto/.
  uint16_t flags = 0;   ///< FrameFlags.
  /// Guest to server: the command's number, counting from 1 without a gap. Server to guest: the
  /// number of the command that is answered, or 0 for a message nobody asked for.
  uint64_t seq = 0;
};
static_assert(sizeof(FrameHeader) == 16);

/// Bits of FrameHeader::flags.
enum FrameFlags : uint16_t {
  kWantStatus = 1,  ///< Answer with a Status message once executed, failed or not (strict mode).
};

/// The set-up of a session (proto/hawser/session.proto). The description's own numbers stay below.
inline constexpr uint16_t kHelloOpcode = 0xfff0;
inline constexpr uint16_t kWelcomeOpcode = 0xfff1;

/// No frame is larger. Receivers grow their buffer as bytes arrive, never by the claimed size.
inline constexpr uint32_t kMaxFramePayload = 64u << 20;

/// Head of each chunk on the bulk channel, 24 bytes, followed by `size` bytes.
struct BulkHeader {
  uint64_t transfer = 0;  ///< Named by the guest, never reused within a session.
  uint64_t offset = 0;    ///< Where in the transfer these bytes go.
  uint32_t size = 0;      ///< At most kMaxBulkChunk. 0 with kBulkAbort.
  uint16_t flags = 0;     ///< BulkFlags.
  uint16_t reserved = 0;  ///< 0.
};
static_assert(sizeof(BulkHeader) == 24);

enum BulkFlags : uint16_t {
  kBulkLast = 1,   ///< The last chunk of this transfer.
  kBulkAbort = 2,  ///< The transfer failed; `offset` holds the API's error code (two's complement).
};

inline constexpr uint32_t kMaxBulkChunk = 4u << 20;

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_FRAME_H_
