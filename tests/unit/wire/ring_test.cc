// SPDX-License-Identifier: Apache-2.0
#include "wire/ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hawser::wire {
namespace {

constexpr uint32_t kCapacity = 4096;

struct Ring {
  RingControl control;
  std::vector<std::byte> data = std::vector<std::byte>(kCapacity);
  RingProducer producer{&control, data.data(), kCapacity};
  RingConsumer consumer{&control, data.data(), kCapacity};

  std::string Read(size_t most) {
    std::string text(most, '\0');
    text.resize(consumer.Read(std::as_writable_bytes(std::span(text))));
    return text;
  }
};

std::string Numbered(size_t size, size_t from) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>((from + i) * 31 % 251);
  return text;
}

TEST(Ring, EveryOffsetWrapsWhole) {
  Ring ring;
  size_t position = 0;
  // 1000 and 4096 share no period, so writes of every kind cross the end at many places.
  for (int i = 0; i < 5000; ++i) {
    const size_t size = 1 + static_cast<size_t>(i * 37) % 1000;
    const std::string text = Numbered(size, position);
    ASSERT_EQ(ring.producer.Write(AsBytes(text)), size);
    ASSERT_EQ(ring.Read(2000), text);
    position += size;
  }
  EXPECT_FALSE(ring.producer.broken());
  EXPECT_FALSE(ring.consumer.broken());
}

TEST(Ring, FullTakesNothingAndEmptyGivesNothing) {
  Ring ring;
  EXPECT_EQ(ring.Read(10), "");
  EXPECT_FALSE(ring.consumer.HasBytes());
  EXPECT_TRUE(ring.producer.HasRoom());
  const std::string text = Numbered(kCapacity + 100, 0);
  EXPECT_EQ(ring.producer.Write(AsBytes(text)), kCapacity);
  EXPECT_EQ(ring.producer.Write(AsBytes("x")), 0u);
  EXPECT_FALSE(ring.producer.HasRoom());
  EXPECT_TRUE(ring.consumer.HasBytes());
  EXPECT_EQ(ring.Read(1), text.substr(0, 1));
  EXPECT_TRUE(ring.producer.HasRoom());
  EXPECT_EQ(ring.producer.Write(AsBytes("xy")), 1u);
  EXPECT_EQ(ring.Read(kCapacity), text.substr(1, kCapacity - 1) + "x");
}

TEST(Ring, AReadSeesWhatCameSinceTheLastLook) {
  Ring ring;
  ASSERT_EQ(ring.producer.Write(AsBytes("abc")), 3u);
  EXPECT_TRUE(ring.consumer.HasBytes());
  ASSERT_EQ(ring.producer.Write(AsBytes("def")), 3u);
  // The consumer knew of three bytes and is asked for six.
  EXPECT_EQ(ring.Read(6), "abcdef");
}

TEST(Ring, AProducerRefusesAHeadAheadOfItsTail) {
  Ring ring;
  ASSERT_EQ(ring.producer.Write(AsBytes("abc")), 3u);
  ring.control.head = 4;
  EXPECT_EQ(ring.producer.Write(AsBytes(std::string(kCapacity, 'x'))), 0u);
  EXPECT_TRUE(ring.producer.broken());
  ring.control.head = 3;
  EXPECT_EQ(ring.producer.Write(AsBytes("x")), 0u) << "a broken ring stays broken";
}

TEST(Ring, AProducerRefusesAHeadThatGoesBack) {
  Ring ring;
  ASSERT_EQ(ring.producer.Write(AsBytes(std::string(kCapacity, 'a'))), kCapacity);
  ring.control.head = 100;
  ASSERT_EQ(ring.producer.Write(AsBytes(std::string(100, 'b'))), 100u);
  for (const uint64_t head : {uint64_t{99}, uint64_t{0}, ~uint64_t{0}}) {
    ring.control.head = head;
    EXPECT_FALSE(ring.producer.HasRoom());
    EXPECT_TRUE(ring.producer.broken());
  }
}

TEST(Ring, AConsumerRefusesATailFurtherThanTheCapacity) {
  for (const uint64_t tail : {uint64_t{kCapacity} + 1, ~uint64_t{0}, uint64_t{1} << 63}) {
    Ring ring;
    ring.control.tail = tail;
    EXPECT_EQ(ring.Read(10), "");
    EXPECT_TRUE(ring.consumer.broken()) << tail;
  }
}

TEST(Ring, AConsumerRefusesATailThatGoesBack) {
  Ring ring;
  ASSERT_EQ(ring.producer.Write(AsBytes("abcdef")), 6u);
  ASSERT_EQ(ring.Read(6), "abcdef");
  ring.control.tail = 5;
  EXPECT_FALSE(ring.consumer.HasBytes());
  EXPECT_TRUE(ring.consumer.broken());
  EXPECT_EQ(ring.Read(1), "");
}

TEST(Ring, PositionsInSharedMemoryAreNotReadBack) {
  // A hostile peer may scribble over our published position; our own copy is what counts.
  Ring ring;
  ASSERT_EQ(ring.producer.Write(AsBytes("abc")), 3u);
  ASSERT_EQ(ring.Read(2), "ab");
  ring.control.head = 0;
  EXPECT_EQ(ring.Read(2), "c");
  EXPECT_EQ(ring.control.head, 3u);
}

TEST(Ring, WakesAConsumerAtOnceAndAProducerWithAQuarterFree) {
  Ring ring;
  ring.control.consumer_parked = 1;
  ASSERT_EQ(ring.producer.Write(AsBytes("a")), 1u);
  EXPECT_EQ(ring.control.consumer_parked, 0u);

  ASSERT_EQ(ring.producer.Write(AsBytes(std::string(kCapacity, 'b'))), kCapacity - 1);
  ring.control.producer_parked = 1;
  EXPECT_EQ(ring.Read(kCapacity / 4 - 1).size(), kCapacity / 4 - 1);
  EXPECT_EQ(ring.control.producer_parked, 1u);
  EXPECT_EQ(ring.Read(1).size(), 1u);
  EXPECT_EQ(ring.control.producer_parked, 0u);
}

}  // namespace
}  // namespace hawser::wire
