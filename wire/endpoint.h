// SPDX-License-Identifier: Apache-2.0
// Addresses of servers, and the connections to them.
#ifndef HAWSER_WIRE_ENDPOINT_H_
#define HAWSER_WIRE_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::wire {

enum class Transport : uint8_t { kShm = 1, kUnix = 2, kTcp = 3, kVsock = 4 };

std::string_view TransportName(Transport transport);  ///< "shm", "unix", "tcp", "vsock"

/// A parsed URI:
///   shm:/path/to.sock        rings in shared memory, set up over the unix socket
///   unix:/path/to.sock       the unix socket itself; listening here serves shm: clients too
///   tcp:host:port            also tcp:[v6]:port
///   vsock:cid:port           AF_VSOCK; listening: vsock::port (any CID), port 0: a free one
///   vsock:/path:port         listening only: the hybrid form, a unix socket named <path>_<port>
struct Endpoint {
  Transport transport = Transport::kUnix;
  std::string path;   ///< shm, unix; for the hybrid vsock form the base path.
  std::string host;   ///< tcp.
  uint32_t cid = 0;   ///< vsock; UINT32_MAX is any.
  uint32_t port = 0;  ///< tcp, vsock.

  static Result<Endpoint> Parse(std::string_view uri);
  std::string ToString() const;
  bool IsHybridVsock() const { return transport == Transport::kVsock && !path.empty(); }
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_ENDPOINT_H_
