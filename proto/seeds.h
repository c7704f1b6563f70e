// SPDX-License-Identifier: Apache-2.0
// Sample frames of everything that a peer can send: seeds for the fuzzers, cases for the tests.
#ifndef HAWSER_PROTO_SEEDS_H_
#define HAWSER_PROTO_SEEDS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "proto/sample_arena.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace hawser::proto {

struct Seed {
  std::string folder;  ///< "calls", "replies", "notices" or "handshake"
  std::string name;
  std::vector<std::byte> frame;  ///< Header and payload.
};

/// Collects seeds. `values`: what they are filled with; null: values that count up.
class SeedSink {
 public:
  explicit SeedSink(SampleValues* values = nullptr) : values_(values) {}

  template <typename Message>
  void Add(const char* folder, const char* name, uint16_t opcode) {
    SampleArena arena(values_);
    Message message;
    FillSample(arena, &message);
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(message.SizeOf());
    header.opcode = opcode;
    header.seq = seeds_.size() + 1;
    Seed seed{folder, name, std::vector<std::byte>(sizeof(header) + header.size)};
    std::memcpy(seed.frame.data(), &header, sizeof(header));
    wire::Writer writer(seed.frame.data() + sizeof(header), header.size);
    message.Encode(writer);
    seeds_.push_back(std::move(seed));
  }

  const std::vector<Seed>& seeds() const { return seeds_; }

 private:
  SampleValues* const values_;
  std::vector<Seed> seeds_;
};

}  // namespace hawser::proto

namespace hawser::opencl {
void AddSeeds(proto::SeedSink& sink);
}  // namespace hawser::opencl

namespace hawser::cuda {
void AddSeeds(proto::SeedSink& sink);
}  // namespace hawser::cuda

namespace hawser::session {
void AddSeeds(proto::SeedSink& sink);
}  // namespace hawser::session

#endif  // HAWSER_PROTO_SEEDS_H_
