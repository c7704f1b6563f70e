// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/server/test_guest.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/frame.h"

namespace hawser::server {

using wire::Bytes;
using wire::Code;
using wire::Fd;
using wire::FrameHeader;
using wire::FrameReader;
using wire::Result;
using wire::Status;
using wire::Transport;

std::vector<std::byte> HelloFrame(const HelloOptions& options) {
  session::Hello hello;
  hello.magic = options.magic;
  hello.version = options.version;
  hello.description = options.description;
  hello.transport = static_cast<uint32_t>(options.transport);
  hello.channel = options.channel;
  hello.nonce.fill(std::byte{options.nonce});
  hello.pid = 4242;
  hello.program = options.program;
  hello.token = options.token;
  FrameHeader header;
  header.size = static_cast<uint32_t>(hello.SizeOf());
  header.opcode = wire::kHelloOpcode;
  std::vector<std::byte> frame(sizeof(header) + header.size);
  wire::Writer writer(frame.data(), frame.size());
  writer.Put(header);
  hello.Encode(writer);
  return frame;
}

Result<WelcomeText> ReadWelcome(int socket) {
  WelcomeText welcome;
  std::vector<std::byte> frame(sizeof(FrameHeader));
  size_t have = 0;
  while (have < frame.size()) {
    pollfd entry{socket, POLLIN, 0};
    if (::poll(&entry, 1, 20'000) == 0) return Status(Code::kTimeout, "no welcome");
    Result<size_t> got = wire::ReceiveWithFds(socket, std::span(frame).subspan(have), &welcome.fds, 4);
    if (!got.ok()) return got.status();
    have += *got;
    if (have < frame.size() || frame.size() > sizeof(FrameHeader)) continue;
    FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof(header));
    if (header.opcode != wire::kWelcomeOpcode || header.size == 0 || header.size > 8192) {
      return Status(Code::kProtocol, "not a welcome");
    }
    frame.resize(sizeof(header) + header.size);
  }
  session::Welcome message;
  wire::Reader reader(Bytes(frame).subspan(sizeof(FrameHeader)));
  if (!message.Decode(reader)) return Status(Code::kProtocol, "a malformed welcome");
  welcome.accepted = message.accepted != 0;
  welcome.text = message.text;
  welcome.session = message.session;
  welcome.heap_size = message.heap_size;
  welcome.inline_limit = message.inline_limit;
  welcome.bulk_chunk = message.bulk_chunk;
  return welcome;
}

std::pair<Fd, Fd> ConnectedPair(Transport transport) {
  if (transport != Transport::kTcp) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
    return {Fd(ends[0]), Fd(ends[1])};
  }
  wire::Endpoint endpoint = *wire::Endpoint::Parse("tcp:127.0.0.1:0");
  Result<Fd> listener = wire::Listen(endpoint, 1);
  endpoint = *wire::BoundEndpoint(endpoint, listener->get());
  Result<Fd> one = wire::Connect(endpoint, wire::SocketUse::kCommand, std::chrono::seconds(5));
  pollfd entry{listener->get(), POLLIN, 0};
  ::poll(&entry, 1, 5000);
  Result<Fd> other = wire::Accept(listener->get());
  return {std::move(*one), std::move(*other)};
}

TestGuest::TestGuest(Transport transport, Fd command, Fd bulk, WelcomeText welcome) : welcome_(std::move(welcome)) {
  if (transport == Transport::kShm) {
    liveness_ = std::move(command);
    auto shm = wire::ShmSession::Open(std::move(welcome_.fds.at(0)));
    shm_ = std::move(*shm);
    command_ = shm_->CommandChannel(wire::ShmSession::Side::kGuest, liveness_.get());
    bulk_ = shm_->BulkChannel(wire::ShmSession::Side::kGuest, liveness_.get());
  } else {
    command_ = wire::MakeSocketChannel(std::move(command), transport);
    bulk_ = wire::MakeSocketChannel(std::move(bulk), transport);
  }
  reader_ = std::make_unique<FrameReader>(command_.get());
}

std::optional<TestGuest::Frame> TestGuest::Next() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    Frame frame;
    Bytes payload;
    Status status;
    switch (reader_->Pull(&frame.header, &payload, &status)) {
      case FrameReader::Next::kFrame:
        frame.payload.assign(payload.begin(), payload.end());
        return frame;
      case FrameReader::Next::kNeedMore:
        if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
        (void)command_->WaitReadable({}, std::chrono::milliseconds(200));
        break;
      default:
        return std::nullopt;
    }
  }
}

std::vector<TestGuest::Frame> TestGuest::DrainToEnd() {
  std::vector<Frame> frames;
  while (std::optional<Frame> frame = Next()) frames.push_back(std::move(*frame));
  return frames;
}

Status TestGuest::SendBulk(uint64_t transfer, Bytes data, uint32_t chunk) {
  for (size_t offset = 0; offset < data.size();) {
    wire::BulkHeader header;
    header.transfer = transfer;
    header.offset = offset;
    header.size = static_cast<uint32_t>(std::min<size_t>(chunk, data.size() - offset));
    header.flags = offset + header.size == data.size() ? wire::kBulkLast : 0;
    if (Status status = bulk_->WriteAll(wire::AsBytes(&header, sizeof(header)), false); !status.ok()) return status;
    if (Status status = bulk_->WriteAll(data.subspan(offset, header.size)); !status.ok()) return status;
    offset += header.size;
  }
  return {};
}

std::optional<std::vector<std::byte>> TestGuest::ReceiveBulk(uint64_t transfer, int32_t* status) {
  std::vector<std::byte> data;
  *status = 0;
  for (;;) {
    wire::BulkHeader header;
    if (!bulk_->ReadAll({reinterpret_cast<std::byte*>(&header), sizeof(header)}).ok()) return std::nullopt;
    if (header.transfer != transfer) return std::nullopt;
    if ((header.flags & wire::kBulkAbort) != 0) {
      *status = static_cast<int32_t>(static_cast<int64_t>(header.offset));
      return std::nullopt;
    }
    if (header.offset != data.size() || header.size > wire::kMaxBulkChunk) return std::nullopt;
    data.resize(data.size() + header.size);
    if (!bulk_->ReadAll(std::span(data).subspan(header.offset)).ok()) return std::nullopt;
    if ((header.flags & wire::kBulkLast) != 0) return data;
  }
}

void TestGuest::Leave() {
  if (shm_ != nullptr) {
    ::shutdown(liveness_.get(), SHUT_RDWR);
    return;
  }
  command_->Shutdown();
  bulk_->Shutdown();
}

}  // namespace hawser::server
