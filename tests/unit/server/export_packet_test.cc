// SPDX-License-Identifier: Apache-2.0
#include "server/export_packet.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace hawser::server {
namespace {

wire::Fd MemoryFile(int seals) {
  wire::Fd file(::memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

class ExportPacket : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    here_ = wire::Fd(ends[0]);
    there_ = wire::Fd(ends[1]);
  }
  PacketGot Receive(size_t size, int flags = 0) {
    files_.clear();
    room_.assign(size, std::byte{0});
    return ReceiveExportPacket(there_.get(), room_, &files_, flags);
  }

  wire::Fd here_, there_;
  std::vector<wire::Fd> files_;
  std::vector<std::byte> room_;
};

TEST_F(ExportPacket, ComesWithWhatBelongsToIt) {
  const std::array<std::byte, 5> packet{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  std::vector<wire::Fd> files(kMaxExportedDescriptors);
  for (wire::Fd& each : files) each = MemoryFile(F_SEAL_SHRINK);
  ASSERT_TRUE(SendExportPacket(here_.get(), packet, files, 0));
  ASSERT_TRUE(SendExportPacket(here_.get(), packet, {}, MSG_DONTWAIT));
  ASSERT_EQ(Receive(5), PacketGot::kPacket);
  EXPECT_EQ(room_[4], std::byte{5});
  EXPECT_EQ(files_.size(), kMaxExportedDescriptors);
  ASSERT_EQ(Receive(5), PacketGot::kPacket);
  EXPECT_TRUE(files_.empty());
  EXPECT_EQ(Receive(5, MSG_DONTWAIT), PacketGot::kNone);
  files.emplace_back();
  EXPECT_FALSE(SendExportPacket(here_.get(), packet, files, 0)) << "too many";
}

TEST_F(ExportPacket, OfAnotherSizeItIsNone) {
  const std::array<std::byte, 5> packet{};
  for (const size_t expected : {4, 6}) {
    ASSERT_TRUE(SendExportPacket(here_.get(), packet, {}, 0));
    EXPECT_EQ(Receive(expected), PacketGot::kBroken);
  }
  here_.Reset();
  EXPECT_EQ(Receive(5), PacketGot::kBroken) << "nobody is there";
  EXPECT_FALSE(SendExportPacket(there_.get(), packet, {}, 0));
}

TEST(ExportedFiles, AreWhatDriversGiveOut) {
  EXPECT_TRUE(MayBeChunk(MemoryFile(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL).get()));
  EXPECT_TRUE(MayBeChunk(wire::Fd(::open("/dev/null", O_RDWR | O_CLOEXEC)).get()));
  EXPECT_FALSE(MayBeChunk(MemoryFile(F_SEAL_GROW).get())) << "it may shrink";
  for (const char* path : {"/", "/proc/self/exe"}) {
    EXPECT_FALSE(MayBeChunk(wire::Fd(::open(path, O_RDONLY | O_CLOEXEC)).get())) << path;
  }
  const wire::Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal.valid());
  EXPECT_FALSE(MayBeChunk(terminal.get()));
  EXPECT_FALSE(MayBeChunk(wire::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)).get()));
  EXPECT_FALSE(MayBeChunk(-1));
}

TEST(ExportedFiles, ASocketThatLingersHoldsNobodyUp) {
  const wire::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, length), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &length), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  std::vector<wire::Fd> files;
  files.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int client = files.front().get();
  ASSERT_EQ(::connect(client, generic, length), 0);
  const wire::Fd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(server.valid());
  // Full, of what nobody reads; closing it would take an hour.
  const linger long_time{1, 3600};
  ASSERT_EQ(::setsockopt(client, SOL_SOCKET, SO_LINGER, &long_time, sizeof(long_time)), 0);
  const std::vector<char> data(1u << 20);
  while (::send(client, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  CloseStrange(std::move(files));
}

}  // namespace
}  // namespace hawser::server
