// SPDX-License-Identifier: Apache-2.0
// One end of a measured transport, with or without wire::Channel around it.
#ifndef HAWSER_BENCH_RAW_STREAM_H_
#define HAWSER_BENCH_RAW_STREAM_H_

#include <cstddef>
#include <memory>
#include <span>

#include "wire/channel.h"
#include "wire/codec.h"
#include "wire/endpoint.h"
#include "wire/ring.h"
#include "wire/socket.h"
#include "wire/status.h"

namespace hawser::bench {

/// Blocking, exact reads and writes. False once the peer is gone.
class RawStream {
 public:
  virtual ~RawStream() = default;
  virtual bool Write(wire::Bytes bytes) = 0;
  /// As Write, but may gather. Flush() sends the rest.
  virtual bool WriteRecord(wire::Bytes bytes) { return Write(bytes); }
  virtual bool Flush() { return true; }
  virtual bool Read(std::span<std::byte> buffer) = 0;
  /// At least one byte, as many as are there.
  virtual size_t ReadSome(std::span<std::byte> buffer) = 0;
};

/// Two ends made before fork(): one process takes the parent's, the other the child's.
class RawPair {
 public:
  virtual ~RawPair() = default;
  /// Call once, in the process that uses it, after fork(); closes the other end there.
  virtual wire::Result<std::unique_ptr<RawStream>> Take(bool child) = 0;
};

wire::Result<std::unique_ptr<RawPair>> MakeRawPair(wire::Transport transport, bool through_channel,
                                                   wire::SocketUse use);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_RAW_STREAM_H_
