// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/connector.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "interposer/core/log.h"
#include "proto/session/messages.h"
#include "wire/deadline.h"
#include "wire/frame.h"
#include "wire/shm.h"

namespace hawser::guest {
namespace {

using wire::Code;
using wire::Fd;
using wire::Result;
using wire::Status;

constexpr uint32_t kMagic = 0x52535748;  // "HWSR"
constexpr size_t kMaxWelcome = 64u << 10;
constexpr uint32_t kCommandChannel = 0;
constexpr uint32_t kBulkChannel = 1;
/// How long to listen for a refusal after a connection broke.
constexpr std::chrono::milliseconds kRefusalTime{500};
using Nonce = std::array<std::byte, 16>;

std::string Hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Result<Nonce> MakeNonce() {
  Nonce nonce;
  size_t have = 0;
  while (have < nonce.size()) {
    const ssize_t got = ::getrandom(nonce.data() + have, nonce.size() - have, 0);
    if (got < 0 && errno != EINTR) return Status::FromErrno("cannot get random bytes");
    if (got > 0) have += static_cast<size_t>(got);
  }
  return nonce;
}

Status SendHello(int socket, const wire::Endpoint& endpoint, uint32_t channel, const Nonce& nonce,
                 const Environment& environment) {
  session::Hello hello;
  hello.magic = kMagic;
  hello.version = environment.api->version;
  hello.description = environment.api->description;
  hello.api = static_cast<uint32_t>(environment.api->number);
  hello.transport = static_cast<uint32_t>(endpoint.transport);
  hello.channel = channel;
  hello.nonce = nonce;
  hello.pid = static_cast<uint32_t>(::getpid());
  hello.program = std::string_view(environment.program).substr(0, 256);
  hello.token = environment.token;
  if (environment.token.size() > 1024) return Status(Code::kInvalid, "$HAWSER_TOKEN is longer than 1024 bytes");
  const size_t size = hello.SizeOf();
  std::vector<std::byte> frame(sizeof(wire::FrameHeader) + size);
  const wire::FrameHeader header{static_cast<uint32_t>(size), wire::kHelloOpcode, 0, 0};
  std::memcpy(frame.data(), &header, sizeof(header));
  wire::Writer writer(frame.data() + sizeof(header), size);
  hello.Encode(writer);
  return wire::SendWithFds(socket, frame, {});
}

/// A frame of the set-up, which arrives on one of two sockets.
class WelcomeReader {
 public:
  WelcomeReader(int command, int bulk, const std::string& who, std::chrono::milliseconds timeout)
      : sockets_{command, bulk}, who_(who), deadline_(timeout) {}

  /// The payload of the first whole frame.
  Result<wire::Bytes> Read();
  std::vector<Fd> TakeFds() { return std::move(fds_); }
  bool from_command() const { return from_ == 0; }

 private:
  Status Wait();
  Status Receive(size_t size);

  const std::array<int, 2> sockets_;
  const std::string who_;
  const wire::Deadline deadline_;
  int from_ = -1;  ///< The socket that spoke first.
  bool heard_both_ = false;
  std::vector<std::byte> bytes_;
  std::vector<Fd> fds_;
};

Status WelcomeReader::Wait() {
  for (;;) {
    pollfd entries[2] = {{sockets_[0], POLLIN, 0}, {sockets_[1], POLLIN, 0}};
    if (from_ >= 0) entries[1 - from_].fd = -1;
    const auto left = deadline_.Left(std::chrono::hours(1));
    const int ready = ::poll(entries, 2, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    if (ready < 0 && errno != EINTR) return Status::FromErrno("cannot wait for " + who_);
    if (ready > 0) {
      if (from_ < 0) from_ = entries[0].revents != 0 ? 0 : 1;
      return {};
    }
    if (deadline_.Passed()) return Status(Code::kTimeout, who_ + " accepted the connection but did not answer");
  }
}

Status WelcomeReader::Receive(size_t size) {
  while (bytes_.size() < size) {
    if (Status status = Wait(); !status.ok()) return status;
    std::array<std::byte, 4096> part;
    const size_t most = std::min(part.size(), size - bytes_.size());
    Result<size_t> got = wire::ReceiveWithFds(sockets_[static_cast<size_t>(from_)], {part.data(), most}, &fds_, 8);
    if (!got.ok()) {
      if (got.status().code() == Code::kTimeout) continue;
      if (got.status().code() != Code::kClosed) return got.status();
      if (bytes_.empty() && !heard_both_ && sockets_[1] >= 0) {
        // Perhaps the other one says why.
        heard_both_ = true;
        from_ = 1 - from_;
        continue;
      }
      return Status(Code::kClosed, who_ + " closed the connection during the set-up; its log says why");
    }
    bytes_.insert(bytes_.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(*got));
  }
  return {};
}

Result<wire::Bytes> WelcomeReader::Read() {
  wire::FrameHeader header;
  if (Status status = Receive(sizeof(header)); !status.ok()) return status;
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (header.opcode != wire::kWelcomeOpcode || header.size > kMaxWelcome) {
    return Status(Code::kProtocol, who_ + " does not answer like a Hawser server");
  }
  if (Status status = Receive(sizeof(header) + header.size); !status.ok()) return status;
  return wire::Bytes(bytes_).subspan(sizeof(header));
}

/// The first three fields keep their places for ever; the rest is read only if both sides are of the same build.
Status CheckWelcome(wire::Bytes payload, const std::string& who, const Api& api, session::Welcome* welcome) {
  wire::Reader head(payload);
  const auto magic = head.Get<uint32_t>();
  const auto version = head.Get<uint32_t>();
  const auto description = head.Get<uint64_t>();
  if (head.failed() || magic != kMagic) return Status(Code::kProtocol, who + " does not answer like a Hawser server");
  wire::Reader reader(payload);
  const bool decoded = welcome->Decode(reader) && reader.Done();
  if (version != api.version || description != api.description) {
    return Status(Code::kRefused, who + " is of another build: it speaks protocol " + std::to_string(version) +
                                      ", description " + Hex(description) + "; this library speaks protocol " +
                                      std::to_string(api.version) + ", description " + Hex(api.description) +
                                      ". Install the same version on both sides");
  }
  if (!decoded) return Status(Code::kProtocol, who + " sent a welcome that cannot be read");
  if (!welcome->accepted) {
    return Status(Code::kRefused,
                  who + " refused: " + (welcome->text.empty() ? "no reason given" : std::string(welcome->text)));
  }
  return {};
}

/// Maps the heap. Without it the session works too, so a failure is only logged.
void MapHeap(const Fd& memfd, uint64_t size, Connection* connection) {
  struct stat info {};
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  if (::fstat(memfd.get(), &info) != 0 || info.st_size < 0 || static_cast<uint64_t>(info.st_size) < size || seals < 0 ||
      (static_cast<unsigned>(seals) & F_SEAL_SHRINK) == 0) {
    Log(LogLevel::kWarning, "the server's heap is too small or not sealed; going on without it");
    return;
  }
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd.get(), 0);
  if (base == MAP_FAILED) {
    Log(LogLevel::kWarning, "cannot map the heap of %llu bytes: %s; going on without it",
        static_cast<unsigned long long>(size), std::strerror(errno));
    return;
  }
  connection->heap = static_cast<std::byte*>(base);
  connection->heap_size = size;
}

Status UseSharedMemory(Fd socket, std::vector<Fd> fds, const session::Welcome& welcome, Connection* connection) {
  const size_t expected = welcome.heap_size != 0 ? 2 : 1;
  if (fds.size() != expected) {
    return Status(Code::kProtocol, "the server sent " + std::to_string(fds.size()) + " descriptors where " +
                                       std::to_string(expected) + " belong to the welcome");
  }
  auto shm = wire::ShmSession::Open(std::move(fds[0]));
  if (!shm.ok()) return shm.status();
  connection->liveness = std::move(socket);
  const int liveness = connection->liveness.get();
  connection->command = (*shm)->CommandChannel(wire::ShmSession::Side::kGuest, liveness);
  connection->bulk = (*shm)->BulkChannel(wire::ShmSession::Side::kGuest, liveness);
  if (welcome.heap_size != 0) MapHeap(fds[1], welcome.heap_size, connection);
  return {};
}

}  // namespace

Result<Connection> Connect(const Environment& environment, const ConnectTimeouts& timeouts) {
  Result<wire::Endpoint> endpoint = wire::Endpoint::Parse(environment.server);
  if (!endpoint.ok()) return endpoint.status();
  const std::string who = endpoint->ToString();
  const bool shm = endpoint->transport == wire::Transport::kShm;
  Result<Nonce> nonce = MakeNonce();
  if (!nonce.ok()) return nonce.status();

  Result<Fd> command = wire::Connect(*endpoint, wire::SocketUse::kCommand, timeouts.connect);
  if (!command.ok()) return command.status();
  // A server that refuses early may close before it has read everything, so its words are looked for in any case.
  Status trouble = SendHello(command->get(), *endpoint, kCommandChannel, *nonce, environment);
  Fd bulk;
  if (!shm && trouble.ok()) {
    Result<Fd> second = wire::Connect(*endpoint, wire::SocketUse::kBulk, timeouts.connect);
    if (second.ok()) bulk = std::move(*second);
    trouble = second.ok() ? SendHello(bulk.get(), *endpoint, kBulkChannel, *nonce, environment) : second.status();
  }

  WelcomeReader reader(command->get(), bulk.get(), who, trouble.ok() ? timeouts.welcome : kRefusalTime);
  Result<wire::Bytes> payload = reader.Read();
  if (!payload.ok()) return trouble.ok() ? payload.status() : trouble;
  session::Welcome welcome;
  if (Status status = CheckWelcome(*payload, who, *environment.api, &welcome); !status.ok()) return status;
  if (!trouble.ok()) return trouble;
  if (!reader.from_command()) return Status(Code::kProtocol, who + " sent its welcome on the bulk connection");

  Connection connection;
  connection.endpoint = *endpoint;
  connection.inline_limit = std::min(welcome.inline_limit, wire::kMaxFramePayload / 2);
  connection.bulk_chunk =
      welcome.bulk_chunk == 0 ? wire::kMaxBulkChunk : std::min(welcome.bulk_chunk, wire::kMaxBulkChunk);
  connection.session = welcome.session;
  if (shm) {
    if (Status status = UseSharedMemory(std::move(*command), reader.TakeFds(), welcome, &connection); !status.ok()) {
      return status;
    }
  } else {
    connection.command = wire::MakeSocketChannel(std::move(*command), endpoint->transport);
    connection.bulk = wire::MakeSocketChannel(std::move(bulk), endpoint->transport);
  }
  for (wire::Channel* channel : {connection.command.get(), connection.bulk.get()}) {
    if (Status status = channel->EnableInterrupts(); !status.ok()) return status;
  }
  return connection;
}

}  // namespace hawser::guest
