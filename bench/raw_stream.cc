// SPDX-License-Identifier: Apache-2.0
#include "bench/raw_stream.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "wire/shm.h"
#include "wire/spin.h"

namespace hawser::bench {
namespace {

using wire::Bytes;
using wire::Code;
using wire::Endpoint;
using wire::Fd;
using wire::Result;
using wire::Status;
using wire::Transport;

/// How long a waiting end spins before it parks.
constexpr wire::SpinPolicy kSpin{std::chrono::microseconds(50)};
constexpr uint32_t kBareRing = 4u << 20;

class ChannelStream final : public RawStream {
 public:
  ChannelStream(std::unique_ptr<wire::ShmSession> session, Fd line, std::unique_ptr<wire::Channel> channel)
      : line_(std::move(line)), session_(std::move(session)), channel_(std::move(channel)) {}

  bool Write(Bytes bytes) override { return channel_->WriteAll(bytes).ok(); }
  bool WriteRecord(Bytes bytes) override {
    Result<size_t> taken = channel_->TryWrite(bytes);
    if (!taken.ok()) return false;
    return *taken == bytes.size() || channel_->WriteAll(bytes.subspan(*taken), /*flush=*/false).ok();
  }
  bool Flush() override { return channel_->WriteAll({}).ok(); }
  bool Read(std::span<std::byte> buffer) override { return channel_->ReadAll(buffer, kSpin).ok(); }
  size_t ReadSome(std::span<std::byte> buffer) override {
    for (;;) {
      Result<size_t> got = channel_->TryRead(buffer);
      if (!got.ok()) return 0;
      if (*got != 0) return *got;
      if (!channel_->WaitReadable(kSpin, std::nullopt).ok()) return 0;
    }
  }

 private:
  const Fd line_;
  const std::unique_ptr<wire::ShmSession> session_;
  const std::unique_ptr<wire::Channel> channel_;
};

class SocketStream final : public RawStream {
 public:
  explicit SocketStream(Fd fd) : fd_(std::move(fd)) {}

  bool Write(Bytes bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return true;
  }
  bool Read(std::span<std::byte> buffer) override {
    while (!buffer.empty()) {
      const size_t got = ReadSome(buffer);
      if (got == 0) return false;
      buffer = buffer.subspan(got);
    }
    return true;
  }
  size_t ReadSome(std::span<std::byte> buffer) override {
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return got > 0 ? static_cast<size_t>(got) : 0;
  }

 private:
  const Fd fd_;
};

/// The rings and nothing else: both ends spin, so this is what two cores can do.
class RingStream final : public RawStream {
 public:
  RingStream(wire::RingProducer out, wire::RingConsumer in) : out_(out), in_(in) {}

  bool Write(Bytes bytes) override {
    while (!bytes.empty()) {
      const size_t taken = out_.Write(bytes);
      bytes = bytes.subspan(taken);
      if (taken == 0 && !WaitFor([this] { return out_.HasRoom(); })) return false;
    }
    return true;
  }
  bool Read(std::span<std::byte> buffer) override {
    while (!buffer.empty()) {
      const size_t got = ReadSome(buffer);
      if (got == 0) return false;
      buffer = buffer.subspan(got);
    }
    return true;
  }
  size_t ReadSome(std::span<std::byte> buffer) override {
    size_t got = in_.Read(buffer);
    if (got == 0 && WaitFor([this] { return in_.HasBytes(); })) got = in_.Read(buffer);
    return got;
  }

 private:
  /// A peer that is silent for so long is dead.
  template <typename Ready>
  static bool WaitFor(Ready ready) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!ready()) {
      // It gives up where others want the cores; who has only memory to look at looks again.
      if (wire::SpinUntil(std::chrono::seconds(20), ready)) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      ::sched_yield();
    }
    return true;
  }

  wire::RingProducer out_;
  wire::RingConsumer in_;
};

class SocketPair final : public RawPair {
 public:
  SocketPair(Transport transport, bool through_channel, Fd parent, Fd child)
      : transport_(transport),
        through_channel_(through_channel),
        parent_(std::move(parent)),
        child_(std::move(child)) {}

  Result<std::unique_ptr<RawStream>> Take(bool child) override {
    Fd mine = std::move(child ? child_ : parent_);
    (child ? parent_ : child_).Reset();
    if (transport_ == Transport::kShm) return TakeShm(child, std::move(mine));
    if (!through_channel_) return std::unique_ptr<RawStream>(std::make_unique<SocketStream>(std::move(mine)));
    return std::unique_ptr<RawStream>(
        std::make_unique<ChannelStream>(nullptr, Fd(), wire::MakeSocketChannel(std::move(mine), transport_)));
  }

  Status CreateMemory() {
    Result<std::unique_ptr<wire::ShmSession>> session = wire::ShmSession::Create({});
    if (!session.ok()) return session.status();
    session_ = std::move(*session);
    return {};
  }

 private:
  Result<std::unique_ptr<RawStream>> TakeShm(bool child, Fd line) {
    using Side = wire::ShmSession::Side;
    std::unique_ptr<wire::ShmSession> session = std::move(session_);
    if (child) {
      Result<std::unique_ptr<wire::ShmSession>> opened = wire::ShmSession::Open(Fd(::dup(session->memfd())));
      if (!opened.ok()) return opened.status();
      session = std::move(*opened);
    }
    // The bulk rings: their 4 MiB suit both kinds of measurement.
    auto channel = session->BulkChannel(child ? Side::kGuest : Side::kServer, line.get());
    return std::unique_ptr<RawStream>(
        std::make_unique<ChannelStream>(std::move(session), std::move(line), std::move(channel)));
  }

  const Transport transport_;
  const bool through_channel_;
  Fd parent_;
  Fd child_;
  std::unique_ptr<wire::ShmSession> session_;
};

class RingPair final : public RawPair {
 public:
  explicit RingPair(void* memory) : memory_(memory) {}
  ~RingPair() override { ::munmap(memory_, kSize); }
  static constexpr size_t kSize = 4096 + 2 * size_t{kBareRing};

  Result<std::unique_ptr<RawStream>> Take(bool child) override {
    auto* controls = static_cast<wire::RingControl*>(memory_);
    std::byte* data = static_cast<std::byte*>(memory_) + 4096;
    const int out = child ? 1 : 0;
    const int in = 1 - out;
    return std::unique_ptr<RawStream>(
        std::make_unique<RingStream>(wire::RingProducer(controls + out, data + out * kBareRing, kBareRing),
                                     wire::RingConsumer(controls + in, data + in * kBareRing, kBareRing)));
  }

 private:
  void* const memory_;
};

Result<std::unique_ptr<RawPair>> MakeBareRings() {
  void* memory = ::mmap(nullptr, RingPair::kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Status::FromErrno("cannot map memory for two rings");
  auto* controls = static_cast<wire::RingControl*>(memory);
  for (int i = 0; i < 2; ++i) new (controls + i) wire::RingControl();
  return std::unique_ptr<RawPair>(std::make_unique<RingPair>(memory));
}

/// Two ends of one loopback connection. The endpoint is listened on only while they are made.
Result<std::pair<Fd, Fd>> ConnectEnds(Endpoint endpoint, wire::SocketUse use) {
  Result<Fd> listener = wire::Listen(endpoint, 1);
  if (!listener.ok()) return listener.status();
  Result<Endpoint> bound = wire::BoundEndpoint(endpoint, listener->get());
  if (!bound.ok()) return bound.status();
  Result<Fd> child = wire::Connect(*bound, use, std::chrono::seconds(5));
  if (!child.ok()) return child.status();
  pollfd entry{listener->get(), POLLIN, 0};
  if (::poll(&entry, 1, 5000) != 1) return Status(Code::kTimeout, "a loopback connection did not arrive");
  Result<Fd> parent = wire::Accept(listener->get());
  if (!parent.ok()) return parent.status();
  if (Status status = wire::TuneStream(parent->get(), endpoint.transport, use); !status.ok()) return status;
  return std::pair(std::move(*parent), std::move(*child));
}

}  // namespace

Result<std::unique_ptr<RawPair>> MakeRawPair(Transport transport, bool through_channel, wire::SocketUse use) {
  if (transport == Transport::kVsock) {
    return Status(Code::kInvalid, "vsock cannot be measured alone: it needs a virtual machine");
  }
  if (transport == Transport::kShm && !through_channel) return MakeBareRings();
  Endpoint endpoint;
  endpoint.transport = transport;
  std::string directory;
  if (transport == Transport::kTcp) {
    endpoint.host = "127.0.0.1";
  } else {
    const char* base = std::getenv("TMPDIR");
    directory = std::string(base != nullptr ? base : "/tmp") + "/hawser-raw-XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) return Status::FromErrno("cannot make the directory " + directory);
    endpoint.path = directory + "/s";
  }
  Result<std::pair<Fd, Fd>> ends = ConnectEnds(endpoint, use);
  if (!directory.empty()) {
    ::unlink(endpoint.path.c_str());
    ::rmdir(directory.c_str());
  }
  if (!ends.ok()) return ends.status();
  auto pair = std::make_unique<SocketPair>(transport, through_channel, std::move(ends->first), std::move(ends->second));
  if (transport == Transport::kShm) {
    if (Status status = pair->CreateMemory(); !status.ok()) return status;
  }
  return std::unique_ptr<RawPair>(std::move(pair));
}

}  // namespace hawser::bench
