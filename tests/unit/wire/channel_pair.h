// SPDX-License-Identifier: Apache-2.0
// Two connected channels over any transport, made the way products make them: Listen, Connect,
// Accept, and for shared memory the memfd sent over the unix socket.
#ifndef HAWSER_TESTS_UNIT_WIRE_CHANNEL_PAIR_H_
#define HAWSER_TESTS_UNIT_WIRE_CHANNEL_PAIR_H_

#include <memory>
#include <string>

#include "wire/channel.h"
#include "wire/endpoint.h"
#include "wire/shm.h"
#include "wire/socket.h"

namespace hawser::wire {

/// A directory that goes away with its contents.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

enum class PairKind { kShmCommand, kShmBulk, kUnix, kTcp, kHybridVsock };
std::string PairKindName(PairKind kind);

/// A pair in this process. Members are destroyed bottom up: channels before what they borrow.
struct ChannelPair {
  PairKind kind;
  TempDir dir;
  Fd guest_socket;  ///< shm: the line that tells when the peer is gone.
  Fd server_socket;
  int guest_fd = -1;  ///< Sockets: the channel's descriptor, borrowed, to look at its options.
  int server_fd = -1;
  std::unique_ptr<ShmSession> guest_session;
  std::unique_ptr<ShmSession> server_session;
  std::unique_ptr<Channel> guest;
  std::unique_ptr<Channel> server;
};

/// Aborts the program with a message when it cannot.
std::unique_ptr<ChannelPair> MakeChannelPair(PairKind kind);

}  // namespace hawser::wire

#endif  // HAWSER_TESTS_UNIT_WIRE_CHANNEL_PAIR_H_
