// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wire/channel_pair.h"

#include <poll.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace hawser::wire {
namespace {

using std::chrono::seconds;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "cannot set up a channel pair: %s\n", result.status().text().c_str());
    std::abort();
  }
  return std::move(*result);
}

void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "cannot set up a channel pair: %s\n", status.text().c_str());
  std::abort();
}

/// Waits for the connection that was just made.
Fd AcceptOne(int listener) {
  pollfd entry{listener, POLLIN, 0};
  if (::poll(&entry, 1, 10'000) != 1) Must(Status(Code::kTimeout, "no connection arrived"));
  return Must(Accept(listener));
}

void ShareSession(ChannelPair* pair) {
  ShmLayout layout;
  layout.command_up = layout.command_down = 64u << 10;  // Small, so that tests meet full rings.
  layout.bulk_up = layout.bulk_down = 1u << 20;
  pair->server_session = Must(ShmSession::Create(layout));
  const int fd = pair->server_session->memfd();
  Must(SendWithFds(pair->server_socket.get(), AsBytes("rings"), {&fd, 1}));
  std::byte buffer[16];
  std::vector<Fd> fds;
  Must(ReceiveWithFds(pair->guest_socket.get(), buffer, &fds, 1));
  if (fds.size() != 1) Must(Status(Code::kProtocol, "the memfd did not arrive"));
  pair->guest_session = Must(ShmSession::Open(std::move(fds[0])));
}

}  // namespace

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = std::string(base != nullptr ? base : "/tmp") + "/hawser-wire-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) Must(Status::FromErrno("cannot make a directory " + pattern));
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string PairKindName(PairKind kind) {
  switch (kind) {
    case PairKind::kShmCommand:
      return "ShmCommand";
    case PairKind::kShmBulk:
      return "ShmBulk";
    case PairKind::kUnix:
      return "Unix";
    case PairKind::kTcp:
      return "Tcp";
    case PairKind::kHybridVsock:
      return "HybridVsock";
  }
  return "Unknown";
}

std::unique_ptr<ChannelPair> MakeChannelPair(PairKind kind) {
  auto pair = std::make_unique<ChannelPair>();
  pair->kind = kind;
  const std::string path = pair->dir.path() + "/s";
  Endpoint at;
  Endpoint to;
  switch (kind) {
    case PairKind::kShmCommand:
    case PairKind::kShmBulk:
      at = to = Must(Endpoint::Parse("shm:" + path));
      break;
    case PairKind::kUnix:
      at = to = Must(Endpoint::Parse("unix:" + path));
      break;
    case PairKind::kTcp:
      at = Must(Endpoint::Parse("tcp:127.0.0.1:0"));
      break;
    case PairKind::kHybridVsock:
      at = Must(Endpoint::Parse("vsock:" + path + ":5000"));
      to = Must(Endpoint::Parse("unix:" + path + "_5000"));  // What the VMM does for its guest.
      break;
  }
  const Fd listener = Must(Listen(at, 4));
  if (kind == PairKind::kTcp) to = Must(BoundEndpoint(at, listener.get()));
  const SocketUse use = kind == PairKind::kShmBulk ? SocketUse::kBulk : SocketUse::kCommand;
  pair->guest_socket = Must(Connect(to, use, seconds(10)));
  pair->server_socket = AcceptOne(listener.get());
  Must(TuneStream(pair->server_socket.get(), at.transport, use));

  if (kind == PairKind::kShmCommand || kind == PairKind::kShmBulk) {
    ShareSession(pair.get());
    const int guest_line = pair->guest_socket.get();
    const int server_line = pair->server_socket.get();
    using Side = ShmSession::Side;
    if (kind == PairKind::kShmCommand) {
      pair->guest = pair->guest_session->CommandChannel(Side::kGuest, guest_line);
      pair->server = pair->server_session->CommandChannel(Side::kServer, server_line);
    } else {
      pair->guest = pair->guest_session->BulkChannel(Side::kGuest, guest_line);
      pair->server = pair->server_session->BulkChannel(Side::kServer, server_line);
    }
    return pair;
  }
  pair->guest_fd = pair->guest_socket.get();
  pair->server_fd = pair->server_socket.get();
  pair->guest = MakeSocketChannel(std::move(pair->guest_socket), to.transport);
  pair->server = MakeSocketChannel(std::move(pair->server_socket), at.transport);
  return pair;
}

}  // namespace hawser::wire
