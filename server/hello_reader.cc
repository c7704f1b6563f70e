// SPDX-License-Identifier: Apache-2.0
#include "server/hello_reader.h"

#include <cstdio>
#include <cstring>

#include "server/worker_settings.h"
#include "wire/endpoint.h"
#include "wire/frame.h"

namespace hawser::server {
namespace {

using wire::Bytes;
using wire::Code;
using wire::Status;

static_assert(sizeof(wire::FrameHeader) == 16);

/// magic, version, description: the part that every version understands.
constexpr size_t kEternalPart = 16;

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%016llx", static_cast<unsigned long long>(value));
  return text;
}

Status NotOurs(const std::string& what) { return Status(Code::kProtocol, "not a Hawser guest: " + what); }

}  // namespace

Status HelloReader::Add(Bytes bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (bytes_.size() < target_) return {};
  if (target_ == sizeof(wire::FrameHeader)) {
    wire::FrameHeader header;
    std::memcpy(&header, bytes_.data(), sizeof(header));
    if (header.opcode != kHelloOpcode) return NotOurs("the first frame is no greeting");
    if (header.size < kEternalPart || header.size > kMaxHello - sizeof(header)) {
      return NotOurs("its greeting has " + std::to_string(header.size) + " bytes");
    }
    target_ = sizeof(header) + header.size;
    return {};
  }
  return Judge();
}

Status HelloReader::Judge() {
  const Bytes payload = Bytes(bytes_).subspan(sizeof(wire::FrameHeader));
  wire::Reader eternal(payload);
  const uint32_t magic = eternal.Get<uint32_t>();
  const uint32_t version = eternal.Get<uint32_t>();
  const uint64_t description = eternal.Get<uint64_t>();
  if (magic != kMagic) return NotOurs("its greeting begins with " + Hex(magic));
  if (version != session::kProtocolVersion || description != session::kDescriptionHash) {
    return Status(Code::kRefused, "this guest library and the server are of different builds: protocol version " +
                                      std::to_string(version) + " (description " + Hex(description) +
                                      ") in the guest, version " + std::to_string(session::kProtocolVersion) +
                                      " (description " + Hex(session::kDescriptionHash) +
                                      ") in the server; install the same release on both");
  }
  session::Hello hello;
  wire::Reader reader(payload);
  if (!hello.Decode(reader) || !reader.Done()) return NotOurs("its greeting is malformed");
  if (hello.transport < 1 || hello.transport > 4 || hello.channel > 1) return NotOurs("its greeting is malformed");
  if (hello.api >= wire::kApiCount) return NotOurs("its greeting is malformed");
  greeting_.api = static_cast<wire::Api>(hello.api);
  greeting_.shm = hello.transport == static_cast<uint32_t>(wire::Transport::kShm);
  greeting_.channel = static_cast<Greeting::Channel>(hello.channel);
  if (greeting_.shm && greeting_.channel != Greeting::Channel::kCommand) {
    return NotOurs("a second connection for shared memory");
  }
  greeting_.nonce = hello.nonce;
  greeting_.pid = hello.pid;
  greeting_.program = OneLine(hello.program);
  greeting_.token = hello.token;
  complete_ = true;
  return {};
}

}  // namespace hawser::server
