// SPDX-License-Identifier: Apache-2.0
#include "wire/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace hawser::wire {
namespace {

constexpr size_t kReadSize = 64u << 10;
/// An empty buffer above this is given back.
constexpr size_t kKeepSize = 1u << 20;

}  // namespace

FrameReader::FrameReader(Channel* channel, uint32_t max_payload) : channel_(channel), max_payload_(max_payload) {
  Reallocate(kReadSize);
}

FrameReader::Next FrameReader::Pull(FrameHeader* header, Bytes* payload, Status* status) {
  for (;;) {
    const size_t have = end_ - begin_;
    if (have >= sizeof(FrameHeader)) {
      std::memcpy(header, buffer_.get() + begin_, sizeof(FrameHeader));
      if (header->size > max_payload_) [[unlikely]] {
        *status = Status(Code::kProtocol, "the peer announced a frame of " + std::to_string(header->size) +
                                              " bytes (opcode " + std::to_string(header->opcode) + "); the limit is " +
                                              std::to_string(max_payload_));
        return Next::kError;
      }
      const size_t whole = sizeof(FrameHeader) + header->size;
      if (have >= whole) {
        *payload = Bytes(buffer_.get() + begin_ + sizeof(FrameHeader), header->size);
        begin_ += whole;
        return Next::kFrame;
      }
    }
    if (const Next next = Fill(status); next != Next::kFrame) return next;
  }
}

/// Reads once; kFrame when some bytes came.
FrameReader::Next FrameReader::Fill(Status* status) {
  MakeRoom();
  Result<size_t> got = channel_->TryRead({buffer_.get() + end_, capacity_ - end_});
  if (!got.ok()) [[unlikely]] {
    *status = got.status();
    if (status->code() != Code::kClosed) return Next::kError;
    if (begin_ != end_) *status = Status(Code::kClosed, status->text() + " in the middle of a frame");
    return Next::kClosed;
  }
  if (*got == 0) return Next::kNeedMore;
  end_ += *got;
  return Next::kFrame;
}

void FrameReader::MakeRoom() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (capacity_ > kKeepSize) Reallocate(kReadSize);
    return;
  }
  if (begin_ != 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Full of one unfinished frame: everything in it has arrived, so doubling is earned.
  if (end_ == capacity_) Reallocate(capacity_ * 2);
}

void FrameReader::Reallocate(size_t capacity) {
  std::unique_ptr<std::byte[]> larger(new std::byte[capacity]);  // Not zeroed: it is written before it is read.
  if (end_ != 0) std::memcpy(larger.get(), buffer_.get(), end_);
  buffer_ = std::move(larger);
  capacity_ = capacity;
}

Status WriteFrame(Channel& channel, FrameHeader header, Bytes payload) {
  if (payload.size() > kMaxFramePayload) {
    return Status(Code::kInvalid, "a frame of " + std::to_string(payload.size()) +
                                      " bytes cannot be sent; the limit is " + std::to_string(kMaxFramePayload));
  }
  header.size = static_cast<uint32_t>(payload.size());
  if (Status status = channel.WriteAll(AsBytes(&header, sizeof(header)), /*flush=*/false); !status.ok()) return status;
  return channel.WriteAll(payload);
}

}  // namespace hawser::wire
