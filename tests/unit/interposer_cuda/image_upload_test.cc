// SPDX-License-Identifier: Apache-2.0
// Images on their way to the server: in pieces, with other threads' commands and data between them, over each
// transport.
#include "interposer/cuda/image_upload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "proto/cuda/messages.h"
#include "proto/cuda/opcodes.h"
#include "proto/cuda_api/image_piece.h"
#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::cu {
namespace {

using cuda_api::kImagePiece;

std::vector<std::byte> Pattern(size_t size, size_t seed) {
  std::vector<std::byte> data(size);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>((i * 31 + seed * 7 + (i >> 10)) & 0xff);
  return data;
}

/// The commands that a peer has met.
struct Commands {
  explicit Commands(guest::Peer* from) : peer(from) {}

  /// Meets one more. False: there are no more.
  bool Next() {
    wire::FrameHeader header;
    std::vector<std::byte>& payload = payloads.emplace_back();
    if (!peer->Next(&header, &payload)) return false;
    opcode = static_cast<cuda::Opcode>(header.opcode);
    if (opcode != cuda::Opcode::kUploadImage) return true;
    wire::Reader reader(payload);
    cuda::UploadImage& message = pieces.emplace_back();
    EXPECT_TRUE(message.Decode(reader));
    return true;
  }
  /// The image of the pieces and of the data that came on the bulk channel, by transfer.
  std::vector<std::byte> Image(const std::map<uint64_t, std::vector<std::byte>>& data) const {
    std::vector<std::byte> image;
    for (const cuda::UploadImage& piece : pieces) {
      EXPECT_EQ(piece.offset, image.size());
      const wire::Bytes bytes = piece.transfer == 0 ? piece.data : wire::Bytes(data.at(piece.transfer));
      EXPECT_EQ(piece.size, bytes.size());
      image.insert(image.end(), bytes.begin(), bytes.end());
    }
    return image;
  }

  guest::Peer* const peer;
  cuda::Opcode opcode{};
  std::vector<cuda::UploadImage> pieces;         ///< Views into payloads.
  std::vector<std::vector<std::byte>> payloads;  ///< Moved, never copied.
};

class ImageUploadTest : public testing::TestWithParam<wire::Transport> {};

TEST_P(ImageUploadTest, ASmallImageIsOneCommand) {
  guest::FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  for (const size_t size : {size_t{0}, size_t{100}, size_t{kImagePiece}}) {
    const std::vector<std::byte> image = Pattern(size, size);
    std::thread sender([&, s = session] { EXPECT_EQ(SendImage(s, wire::Sha256Of(image), image), CUDA_SUCCESS); });
    Commands commands(peer.get());
    ASSERT_TRUE(commands.Next());
    ASSERT_EQ(commands.pieces.size(), 1u);
    EXPECT_EQ(commands.pieces[0].total, size);
    std::map<uint64_t, std::vector<std::byte>> data;
    uint64_t transfer = 0;
    if (size > session->inline_limit()) {
      std::vector<std::byte> bytes = peer->ReceiveBulk(&transfer);
      data[transfer] = std::move(bytes);
    }
    EXPECT_EQ(commands.Image(data), image);
    sender.join();
  }
}

TEST_P(ImageUploadTest, CommandsAndCopiesOfOthersComeBetweenThePieces) {
  guest::FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  // More than any transport keeps: while the server takes no data the upload cannot end.
  const std::vector<std::byte> image = Pattern(32 * kImagePiece + 5, 1), other = Pattern(100'000, 2);
  const wire::Sha256Digest hash = wire::Sha256Of(image);
  std::thread sender([&, s = session] { EXPECT_EQ(SendImage(s, hash, image), CUDA_SUCCESS); });
  Commands commands(peer.get());
  ASSERT_TRUE(commands.Next());
  ASSERT_EQ(commands.pieces.size(), 1u) << "it has begun";
  cuda::Write write;
  write.size = other.size();
  write.transfer = session->NewTransfer();
  std::thread copier([&, s = session] {
    EXPECT_EQ(s->Send(cuda::Launch()), 0);
    EXPECT_EQ(s->Send(write), 0);
    EXPECT_EQ(s->SendBulk(write.transfer, other), 0);
  });
  bool launched = false;
  do {
    ASSERT_TRUE(commands.Next());
    launched = launched || commands.opcode == cuda::Opcode::kLaunch;
  } while (commands.opcode != cuda::Opcode::kWrite);
  EXPECT_TRUE(launched);
  EXPECT_LT(commands.pieces.back().offset + commands.pieces.back().size, image.size()) << "and is under way";
  std::map<uint64_t, std::vector<std::byte>> data;
  std::vector<uint64_t> order;
  for (size_t i = 0; i < 33; ++i) {  // The last piece has room in its command.
    uint64_t transfer = 0;
    std::vector<std::byte> bytes = peer->ReceiveBulk(&transfer);
    order.push_back(transfer);
    data[transfer] = std::move(bytes);
  }
  while (commands.pieces.size() < 33) ASSERT_TRUE(commands.Next());
  sender.join();
  copier.join();
  EXPECT_EQ(data.at(write.transfer), other);
  EXPECT_NE(order.back(), write.transfer) << "its data comes between that of the pieces";
  EXPECT_TRUE(commands.Image(data) == image);
  for (const cuda::UploadImage& piece : commands.pieces) {
    EXPECT_EQ(piece.hash, hash);
    EXPECT_EQ(piece.total, image.size());
    EXPECT_LE(piece.size, kImagePiece);
  }
}

TEST_P(ImageUploadTest, TheSessionMayEndInTheMiddle) {
  guest::FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  const std::vector<std::byte> image = Pattern(32 * kImagePiece, 1);
  const wire::Sha256Digest hash = wire::Sha256Of(image);
  ImageTurns turns;
  CUresult result = CUDA_SUCCESS;
  std::thread sender([&, s = session] { result = SendImage(s, hash, image, turns); });
  Commands commands(peer.get());
  EXPECT_TRUE(commands.Next());
  peer->Stop();
  sender.join();
  EXPECT_NE(result, CUDA_SUCCESS);
  EXPECT_TRUE(turns.Begin(hash)) << "nobody is left in its turn";
}

std::string Name(const testing::TestParamInfo<wire::Transport>& info) {
  return std::string(wire::TransportName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Transports, ImageUploadTest,
                         testing::Values(wire::Transport::kShm, wire::Transport::kUnix, wire::Transport::kTcp), Name);

// --- ImageTurns

const wire::Sha256Digest kOne{std::byte{1}}, kTwo{std::byte{2}};

/// What Begin(kOne) of a thread says that waited while an upload of `first` was under way, which ended with `sent`.
bool BeginsBehind(const wire::Sha256Digest& first, bool sent) {
  ImageTurns turns;
  EXPECT_TRUE(turns.Begin(first));
  bool began = false;
  std::thread waiter([&] { began = turns.Begin(kOne); });
  while (turns.waiting() == 0) std::this_thread::yield();
  turns.End(sent);
  waiter.join();
  return began;
}

TEST(ImageTurnsTest, WhoWaitedForTheSameImageNeedNotSendIt) { EXPECT_FALSE(BeginsBehind(kOne, true)); }
TEST(ImageTurnsTest, WhatWasNotSentWholeIsSentByTheNext) { EXPECT_TRUE(BeginsBehind(kOne, false)); }
TEST(ImageTurnsTest, AnotherImageWaitsAndIsSent) { EXPECT_TRUE(BeginsBehind(kTwo, true)); }

}  // namespace
}  // namespace hawser::cu
