// SPDX-License-Identifier: Apache-2.0
#include "wire/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace hawser::wire {
namespace {

struct Point {
  uint16_t x = 0;
  std::string_view label;
  size_t SizeOf() const { return 2 + 4 + label.size(); }
  void Encode(Writer& writer) const {
    writer.Put(x);
    writer.PutString(label);
  }
  void Decode(Reader& reader) {
    x = reader.Get<uint16_t>();
    label = reader.GetString();
  }
};

TEST(Codec, WritesLittleEndianWithoutPadding) {
  std::array<std::byte, 64> memory{};
  Writer writer(memory.data(), memory.size());
  writer.Put(uint8_t{1});
  writer.Put(uint32_t{0x01020304});
  writer.PutString("ab");
  const uint16_t numbers[] = {5, 6};
  writer.PutArray(ArrayView<uint16_t>(numbers, 2));
  ASSERT_FALSE(writer.failed());
  const uint8_t expected[] = {1, 4, 3, 2, 1, 2, 0, 0, 0, 'a', 'b', 2, 0, 0, 0, 5, 0, 6, 0};
  ASSERT_EQ(writer.written(), sizeof(expected));
  EXPECT_EQ(std::memcmp(memory.data(), expected, sizeof(expected)), 0);

  Reader reader({memory.data(), writer.written()});
  EXPECT_EQ(reader.Get<uint8_t>(), 1);
  EXPECT_EQ(reader.Get<uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.GetString(), "ab");
  const ArrayView<uint16_t> view = reader.GetArray<uint16_t>();
  ASSERT_EQ(view.size(), 2u);
  EXPECT_EQ(view[0], 5);
  EXPECT_EQ(view[1], 6);
  EXPECT_TRUE(reader.Done());
}

TEST(Codec, AWriterThatOverflowsWritesNothingMore) {
  std::array<std::byte, 6> memory{};
  Writer writer(memory.data(), 5);
  writer.Put(uint32_t{7});
  writer.Put(uint32_t{8});
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(writer.written(), 4u);
  writer.PutString("ab");
  EXPECT_TRUE(writer.failed());
  EXPECT_EQ(memory[5], std::byte{0});
}

TEST(Codec, TheFirstErrorSticks) {
  const uint8_t raw[] = {1, 2, 3};
  Reader reader(AsBytes(raw, sizeof(raw)));
  EXPECT_EQ(reader.Get<uint32_t>(), 0u);
  EXPECT_TRUE(reader.failed());
  EXPECT_EQ(reader.Get<uint8_t>(), 0) << "a byte is there, but not after an error";
  EXPECT_TRUE(reader.GetBytes().empty());
  EXPECT_TRUE(reader.GetArray<uint64_t>().empty());
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_FALSE(reader.Done());
}

TEST(Codec, CountsThatLieAreErrors) {
  const uint32_t count = 0xffffffff;
  {
    Reader reader(AsBytes(&count, sizeof(count)));
    EXPECT_TRUE(reader.GetBytes().empty());
    EXPECT_TRUE(reader.failed());
  }
  {
    Reader reader(AsBytes(&count, sizeof(count)));
    EXPECT_TRUE(reader.GetArray<uint64_t>().empty()) << "count * 8 would wrap in 32 bits";
    EXPECT_TRUE(reader.failed());
  }
  {
    Reader reader(AsBytes(&count, sizeof(count)));
    ListView<Point> list;
    list.Decode(reader);
    EXPECT_EQ(list.size(), 0u);
    EXPECT_TRUE(reader.failed());
  }
}

TEST(Codec, CountsAboveTheCallersLimitAreErrors) {
  const uint8_t raw[] = {3, 0, 0, 0, 'a', 'b', 'c'};
  Reader fits(AsBytes(raw, sizeof(raw)));
  EXPECT_EQ(fits.GetString(3), "abc");
  EXPECT_TRUE(fits.Done());
  Reader too_long(AsBytes(raw, sizeof(raw)));
  EXPECT_EQ(too_long.GetString(2), "");
  EXPECT_TRUE(too_long.failed());
}

TEST(Codec, BytesLeftOverAreNotDone) {
  const uint8_t raw[] = {1, 2};
  Reader reader(AsBytes(raw, sizeof(raw)));
  reader.Get<uint8_t>();
  EXPECT_FALSE(reader.failed());
  EXPECT_FALSE(reader.Done());
}

TEST(Codec, ListsRoundTrip) {
  const Point points[] = {{1, "one"}, {2, ""}, {3, "three"}};
  const ListView<Point> list{std::span<const Point>(points)};
  std::vector<std::byte> memory(list.SizeOf());
  Writer writer(memory.data(), memory.size());
  list.Encode(writer);
  ASSERT_FALSE(writer.failed());
  EXPECT_EQ(writer.written(), memory.size());

  ListView<Point> decoded;
  Reader reader(memory);
  decoded.Decode(reader);
  ASSERT_TRUE(reader.Done());
  std::string seen;
  decoded.ForEach([&](const Point& point) { seen += std::to_string(point.x) + std::string(point.label) + ";"; });
  EXPECT_EQ(seen, "1one;2;3three;");
  EXPECT_EQ(decoded.SizeOf(), memory.size());

  // Cut anywhere, it is an error and the list is empty.
  for (size_t cut = 0; cut < memory.size(); ++cut) {
    Reader half(Bytes(memory.data(), cut));
    ListView<Point> broken;
    broken.Decode(half);
    EXPECT_FALSE(half.Done()) << cut;
    EXPECT_EQ(broken.size(), 0u) << cut;
  }
}

TEST(Codec, EmptyThingsCostTheirCountOnly) {
  std::array<std::byte, 12> memory{};
  Writer writer(memory.data(), memory.size());
  writer.PutBytes({});
  writer.PutArray(ArrayView<uint64_t>());
  ListView<Point>().Encode(writer);
  EXPECT_FALSE(writer.failed());
  EXPECT_EQ(writer.written(), 12u);
}

}  // namespace
}  // namespace hawser::wire
