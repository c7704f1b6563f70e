// SPDX-License-Identifier: Apache-2.0
// Frames: the first bytes of the input say in which portions the rest arrives. However it is cut, the
// frames are the same, and memory stays in proportion to what arrived.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wire/frame_reader.h"

namespace {

using hawser::wire::Bytes;
using hawser::wire::Channel;
using hawser::wire::Code;
using hawser::wire::FrameHeader;
using hawser::wire::FrameReader;
using hawser::wire::Result;
using hawser::wire::SpinPolicy;
using hawser::wire::Status;

constexpr size_t kCutBytes = 4;

/// Hands out `bytes` in portions taken in turn from `cuts`; no cuts: all there is.
class CutChannel final : public Channel {
 public:
  CutChannel(Bytes bytes, Bytes cuts) : bytes_(bytes), cuts_(cuts) {}

  Result<size_t> TryRead(std::span<std::byte> buffer) override {
    if (bytes_.empty()) return Status(Code::kClosed, "end");
    size_t size = std::min(buffer.size(), bytes_.size());
    if (!cuts_.empty()) size = std::min(size, static_cast<size_t>(cuts_[turn_++ % cuts_.size()]));
    if (size == 0 && ++empty_ > 8) size = 1;
    if (size != 0) std::memcpy(buffer.data(), bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
    return size;
  }
  Status WaitReadable(SpinPolicy, std::optional<std::chrono::nanoseconds>) override { return {}; }
  Result<size_t> TryWrite(Bytes bytes) override { return bytes.size(); }
  Result<bool> TryFlush() override { return true; }
  Status WaitWritable(std::optional<std::chrono::nanoseconds>) override { return {}; }
  size_t unflushed() const override { return 0; }
  void Shutdown() override {}
  void Abandon() override {}

 private:
  Bytes bytes_;
  Bytes cuts_;
  size_t turn_ = 0;
  int empty_ = 0;
};

/// Everything that a reader says about a stream, as bytes to compare.
std::vector<uint8_t> Transcript(Bytes stream, Bytes cuts) {
  CutChannel channel(stream, cuts);
  FrameReader reader(&channel);
  std::vector<uint8_t> transcript;
  const size_t fresh = reader.capacity();
  for (;;) {
    FrameHeader header;
    Bytes payload;
    Status status;
    const FrameReader::Next next = reader.Pull(&header, &payload, &status);
    if (reader.capacity() > std::max(fresh, 2 * stream.size())) std::abort();
    if (next == FrameReader::Next::kNeedMore) continue;
    transcript.push_back(static_cast<uint8_t>(next));
    if (next != FrameReader::Next::kFrame) {
      if (status.ok()) std::abort();
      return transcript;
    }
    if (payload.size() != header.size) std::abort();
    const auto* raw = reinterpret_cast<const uint8_t*>(&header);
    transcript.insert(transcript.end(), raw, raw + sizeof(header));
    const auto* bytes = reinterpret_cast<const uint8_t*>(payload.data());
    transcript.insert(transcript.end(), bytes, bytes + payload.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = hawser::wire::AsBytes(data, size);
  const size_t cut_bytes = std::min(size, kCutBytes);
  const Bytes cuts = input.first(cut_bytes);
  const Bytes stream = input.subspan(cut_bytes);
  if (Transcript(stream, {}) != Transcript(stream, cuts)) std::abort();
  return 0;
}
