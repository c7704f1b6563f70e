// SPDX-License-Identifier: Apache-2.0
// One packet of the sockets between workers and hawserd, with the descriptors that belong to it (SCM_RIGHTS).
#ifndef HAWSER_SERVER_EXPORT_PACKET_H_
#define HAWSER_SERVER_EXPORT_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/exported.h"
#include "wire/socket.h"

namespace hawser::server {

/// Sends all of it, or nothing: false. `flags`: MSG_DONTWAIT, or 0. At most kMaxExportedDescriptors.
bool SendExportPacket(int socket, std::span<const std::byte> packet, std::span<const wire::Fd> files, int flags);

enum class PacketGot : uint8_t {
  kPacket,
  kNone,    ///< There is none: not now, or not in time.
  kBroken,  ///< The other end has gone, or the packet has another size.
};
/// Receives one packet of just that size. *files: what came with it, close-on-exec; fewer than were sent when this
/// process may not have so many.
PacketGot ReceiveExportPacket(int socket, std::span<std::byte> packet, std::vector<wire::Fd>* files, int flags);

/// Whether this may be what a driver gives out for a chunk of memory: a file in memory whose size is sealed, a device
/// (not a terminal), or a buffer without a file system. So closing it never waits for anybody. Does not wait itself.
bool MayBeChunk(int descriptor);
/// Closes what may be anything, on a thread of its own: a file system that somebody's program serves, or a socket that
/// lingers, holds up whoever closes it.
void CloseStrange(std::vector<wire::Fd> files);

}  // namespace hawser::server

#endif  // HAWSER_SERVER_EXPORT_PACKET_H_
