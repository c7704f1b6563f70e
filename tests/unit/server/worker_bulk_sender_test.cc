// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <vector>

#include "server/worker/channel_bulk_sender.h"
#include "tests/unit/server/fake_channel.h"
#include "wire/frame.h"

namespace hawser::server {
namespace {

wire::BulkHeader HeaderAt(const std::vector<std::byte>& bytes, size_t at) {
  wire::BulkHeader header;
  std::memcpy(&header, bytes.data() + at, sizeof(header));
  return header;
}

TEST(ChannelBulkSender, CutsATransferIntoChunks) {
  FakeChannel channel;
  std::promise<void> done;
  ChannelBulkSender sender(&channel, 400);
  std::vector<std::byte> data(1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  sender.Send(3, data, [&] { done.set_value(); });
  done.get_future().wait();
  const auto bytes = channel.Take();
  ASSERT_EQ(bytes.size(), 1000 + 3 * sizeof(wire::BulkHeader));
  size_t at = 0, offset = 0;
  for (const uint32_t size : {400u, 400u, 200u}) {
    const wire::BulkHeader header = HeaderAt(bytes, at);
    EXPECT_EQ(header.transfer, 3u);
    EXPECT_EQ(header.offset, offset);
    EXPECT_EQ(header.size, size);
    EXPECT_EQ(header.flags, offset + size == 1000 ? wire::kBulkLast : 0);
    at += sizeof(header);
    EXPECT_EQ(std::memcmp(bytes.data() + at, data.data() + offset, size), 0);
    at += size;
    offset += size;
  }
}

TEST(ChannelBulkSender, KeepsTheOrderOfTransfersAndAborts) {
  FakeChannel channel;
  std::promise<void> done;
  ChannelBulkSender sender(&channel, 1u << 20);
  const std::vector<std::byte> data(8);
  sender.Send(1, data, [] {});
  sender.Abort(2, -38);
  sender.Send(3, data, [&] { done.set_value(); });
  done.get_future().wait();
  const auto bytes = channel.Take();
  ASSERT_EQ(bytes.size(), 3 * sizeof(wire::BulkHeader) + 16);
  EXPECT_EQ(HeaderAt(bytes, 0).transfer, 1u);
  const wire::BulkHeader abort = HeaderAt(bytes, sizeof(wire::BulkHeader) + 8);
  EXPECT_EQ(abort.transfer, 2u);
  EXPECT_EQ(abort.flags, wire::kBulkAbort);
  EXPECT_EQ(static_cast<int64_t>(abort.offset), -38);
  EXPECT_EQ(abort.size, 0u);
}

TEST(ChannelBulkSender, WaitsForASlowGuestWithoutLosingBytes) {
  FakeChannel channel;
  channel.SetCapacity(100);
  ChannelBulkSender sender(&channel, 4096);
  const std::vector<std::byte> data(20'000, std::byte{9});
  std::atomic<bool> done{false};
  sender.Send(1, data, [&] { done = true; });
  const size_t total = 20'000 + 5 * sizeof(wire::BulkHeader);
  EXPECT_EQ(channel.TakeAtLeast(total).size(), total);
}

TEST(ChannelBulkSender, GivesDataBackWhenTheGuestIsGone) {
  FakeChannel channel;
  channel.SetCapacity(10);
  std::atomic<int> done{0};
  const std::vector<std::byte> data(1000);
  {
    ChannelBulkSender sender(&channel, 4096);
    for (uint64_t i = 1; i <= 5; ++i) sender.Send(i, data, [&] { ++done; });
    channel.Shutdown();
  }
  EXPECT_EQ(done, 5);
}

}  // namespace
}  // namespace hawser::server
