// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/interposer_core/fake_server.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "wire/frame.h"

namespace hawser::guest {
namespace {

[[noreturn]] void Fail(const std::string& text) { throw std::runtime_error("fake server: " + text); }

void Check(const wire::Status& status) {
  if (!status.ok()) Fail(status.text());
}

template <typename T>
T Check(wire::Result<T> result) {
  if (!result.ok()) Fail(result.status().text());
  return std::move(*result);
}

void ReadExactly(int socket, void* to, size_t size) {
  auto* at = static_cast<std::byte*>(to);
  while (size != 0) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got <= 0) Fail("the guest left during the set-up");
    at += got;
    size -= static_cast<size_t>(got);
  }
}

/// Sessions are never destroyed; this keeps leak checkers content.
std::vector<Session*>& Sessions() {
  static auto* sessions = new std::vector<Session*>();
  return *sessions;
}

}  // namespace

Peer::~Peer() { Stop(); }

void Peer::Stop() {
  if (command) command->Shutdown();
  if (bulk) bulk->Shutdown();
  if (liveness.valid()) ::shutdown(liveness.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
}

bool Peer::Next(wire::FrameHeader* header, std::vector<std::byte>* payload) {
  for (;;) {
    wire::Bytes bytes;
    wire::Status status;
    switch (reader_->Pull(header, &bytes, &status)) {
      case wire::FrameReader::Next::kFrame:
        payload->assign(bytes.begin(), bytes.end());
        return true;
      case wire::FrameReader::Next::kNeedMore:
        (void)command->WaitReadable(spin_, std::nullopt);
        break;
      default:
        return false;
    }
  }
}

void Peer::Serve(std::function<void(const wire::FrameHeader&, wire::Bytes)> handler) {
  thread_ = std::thread([this, handler = std::move(handler)] {
    wire::FrameHeader header;
    std::vector<std::byte> payload;
    while (Next(&header, &payload)) handler(header, payload);
  });
}

void Peer::SendRaw(uint16_t opcode, uint64_t seq, wire::Bytes payload) {
  // A guest that left meanwhile is no error here.
  (void)wire::WriteFrame(*command, {0, opcode, 0, seq}, payload);
}

void Peer::SendBulk(uint64_t transfer, wire::Bytes data, uint32_t chunk) {
  uint64_t offset = 0;
  do {
    wire::BulkHeader header;
    header.transfer = transfer;
    header.offset = offset;
    header.size = static_cast<uint32_t>(std::min<uint64_t>(chunk, data.size() - offset));
    if (offset + header.size == data.size()) header.flags = wire::kBulkLast;
    (void)bulk->WriteAll(wire::AsBytes(&header, sizeof(header)), false);
    (void)bulk->WriteAll(data.subspan(offset, header.size), true);
    offset += header.size;
  } while (offset < data.size());
}

void Peer::AbortBulk(uint64_t transfer, int32_t status) {
  wire::BulkHeader header;
  header.transfer = transfer;
  header.offset = static_cast<uint64_t>(static_cast<int64_t>(status));
  header.flags = wire::kBulkAbort;
  (void)bulk->WriteAll(wire::AsBytes(&header, sizeof(header)));
}

std::vector<std::byte> Peer::ReceiveBulk(uint64_t* transfer) {
  std::vector<std::byte> data;
  for (;;) {
    wire::BulkHeader header;
    Check(bulk->ReadAll(std::as_writable_bytes(std::span(&header, 1))));
    *transfer = header.transfer;
    if (header.offset != data.size()) Fail("a chunk came out of order");
    data.resize(data.size() + header.size);
    Check(bulk->ReadAll(std::span(data).subspan(header.offset)));
    if ((header.flags & wire::kBulkLast) != 0) return data;
  }
}

FakeServer::FakeServer(wire::Transport transport, FakeServerOptions options)
    : transport_(transport), options_(std::move(options)) {
  wire::Endpoint endpoint;
  if (transport == wire::Transport::kTcp) {
    endpoint = Check(wire::Endpoint::Parse("tcp:127.0.0.1:0"));
  } else {
    std::string pattern = "/tmp/hawser-core-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) Fail("no temporary directory");
    directory_ = pattern;
    path_ = directory_ + "/socket";
    endpoint = Check(wire::Endpoint::Parse("unix:" + path_));
  }
  listener_ = Check(wire::Listen(endpoint, 16));
  uri_ = transport == wire::Transport::kTcp ? Check(wire::BoundEndpoint(endpoint, listener_.get())).ToString()
                                            : std::string(wire::TransportName(transport)) + ":" + path_;
}

FakeServer::~FakeServer() {
  if (!path_.empty()) {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }
}

wire::Fd FakeServer::TakeConnection(std::vector<std::byte>* hello) {
  pollfd entry{listener_.get(), POLLIN, 0};
  if (::poll(&entry, 1, 30'000) <= 0) Fail("nobody connects");
  wire::Fd socket = Check(wire::Accept(listener_.get()));
  wire::FrameHeader header;
  ReadExactly(socket.get(), &header, sizeof(header));
  if (header.opcode != wire::kHelloOpcode) Fail("no Hello");
  hello->resize(header.size);
  ReadExactly(socket.get(), hello->data(), hello->size());
  return socket;
}

void FakeServer::Welcome(int socket, std::span<const int> fds) {
  session::Welcome welcome;
  welcome.magic = 0x52535748;
  welcome.version = opencl::kProtocolVersion;
  welcome.description = options_.description;
  welcome.accepted = options_.refuse.empty() ? 1 : 0;
  welcome.text = options_.refuse;
  welcome.session = 7;
  welcome.heap_size = options_.heap_size;
  welcome.inline_limit = 32u << 10;
  welcome.bulk_chunk = options_.bulk_chunk;
  const wire::FrameHeader header{static_cast<uint32_t>(welcome.SizeOf()), wire::kWelcomeOpcode, 0, 0};
  std::vector<std::byte> frame(sizeof(header) + header.size);
  wire::Writer writer(frame.data(), frame.size());
  writer.Put(header);
  welcome.Encode(writer);
  // In two parts, as a stream may deliver it.
  Check(wire::SendWithFds(socket, wire::Bytes(frame).first(5), fds));
  Check(wire::SendWithFds(socket, wire::Bytes(frame).subspan(5), {}));
}

std::unique_ptr<Peer> FakeServer::Accept() {
  auto peer = std::make_unique<Peer>();
  wire::Fd command = TakeConnection(&peer->hello_bytes_);
  wire::Reader reader(peer->hello_bytes_);
  if (!peer->hello.Decode(reader) || !reader.Done()) Fail("a Hello that cannot be read");
  wire::Fd bulk;
  if (transport_ != wire::Transport::kShm) {
    std::vector<std::byte> bytes;
    session::Hello second;
    bulk = TakeConnection(&bytes);
    wire::Reader second_reader(bytes);
    if (!second.Decode(second_reader) || second.nonce != peer->hello.nonce || second.channel != 1) {
      Fail("the second Hello does not belong to the first");
    }
  }
  if (!options_.refuse.empty()) {
    Welcome(options_.refuse_on_bulk ? bulk.get() : command.get(), {});
    return nullptr;
  }
  if (transport_ == wire::Transport::kShm) {
    auto shm = Check(wire::ShmSession::Create(options_.layout));
    std::vector<int> fds{shm->memfd()};
    if (options_.heap_size != 0) {
      peer->heap = Check(wire::CreateHeap(options_.heap_size, "test-heap"));
      fds.push_back(peer->heap.get());
    }
    Welcome(command.get(), fds);
    peer->liveness = std::move(command);
    peer->command = shm->CommandChannel(wire::ShmSession::Side::kServer, peer->liveness.get());
    peer->bulk = shm->BulkChannel(wire::ShmSession::Side::kServer, peer->liveness.get());
  } else {
    Welcome(command.get(), {});
    peer->command = wire::MakeSocketChannel(std::move(command), transport_);
    peer->bulk = wire::MakeSocketChannel(std::move(bulk), transport_);
  }
  peer->reader_ = std::make_unique<wire::FrameReader>(peer->command.get());
  return peer;
}

Environment FakeServer::GuestEnvironment(bool strict) const {
  Environment environment;
  environment.server = uri_;
  environment.strict = strict;
  environment.program = "test";
  return environment;
}

FakeServer::Pair FakeServer::Connect(bool strict) {
  Pair pair{};
  std::thread accepting([&] { pair.peer = Accept(); });
  wire::Result<Session*> session = SessionBuilder::Connect(GuestEnvironment(strict));
  accepting.join();
  pair.session = Check(std::move(session));
  Sessions().push_back(pair.session);
  return pair;
}

}  // namespace hawser::guest
