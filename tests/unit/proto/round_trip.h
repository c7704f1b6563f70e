// SPDX-License-Identifier: Apache-2.0
// What holds for the codec of each message; the generated roundtrip_test.cc names the messages.
#ifndef HAWSER_TESTS_UNIT_PROTO_ROUND_TRIP_H_
#define HAWSER_TESTS_UNIT_PROTO_ROUND_TRIP_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "proto/sample_arena.h"
#include "wire/codec.h"

namespace hawser::proto {

/// Encodes into memory of exactly SizeOf() bytes.
template <typename Message>
std::vector<std::byte> Encoded(const Message& message) {
  std::vector<std::byte> bytes(message.SizeOf());
  wire::Writer writer(bytes.data(), bytes.size());
  message.Encode(writer);
  EXPECT_FALSE(writer.failed());
  EXPECT_EQ(writer.written(), bytes.size());
  return bytes;
}

/// Decodes a copy of exactly these bytes, so that a sanitizer sees a read beyond them.
template <typename Message>
bool Decodes(const std::vector<std::byte>& bytes, size_t size) {
  const std::vector<std::byte> copy(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
  wire::Reader reader(copy);
  Message message;
  const bool good = message.Decode(reader);
  EXPECT_EQ(good, !reader.failed());
  return good && reader.Done();
}

template <typename Message>
void TestRoundTripOf(const Message& message) {
  const std::vector<std::byte> bytes = Encoded(message);
  EXPECT_GE(bytes.size(), Message::kFixedSize);
  Message decoded;
  wire::Reader reader(bytes);
  ASSERT_TRUE(decoded.Decode(reader));
  EXPECT_TRUE(reader.Done());
  EXPECT_EQ(Encoded(decoded), bytes);

  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(Decodes<Message>(bytes, size)) << size;

  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Decodes<Message>(longer, longer.size()));

  if (!bytes.empty()) {
    std::vector<std::byte> small(bytes.size() - 1);
    wire::Writer writer(small.data(), small.size());
    message.Encode(writer);
    EXPECT_TRUE(writer.failed());
  }
}

/// Of an empty message and of one with something in every field.
template <typename Message>
void TestRoundTrip() {
  TestRoundTripOf(Message{});
  SampleArena arena;
  Message message;
  FillSample(arena, &message);
  TestRoundTripOf(message);
}

}  // namespace hawser::proto

#endif  // HAWSER_TESTS_UNIT_PROTO_ROUND_TRIP_H_
