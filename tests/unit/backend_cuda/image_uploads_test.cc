// SPDX-License-Identifier: Apache-2.0
// Images that come in pieces, what hostile guests may say of them, and the commands of others meanwhile.
#include "server/backends/cuda/image_uploads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "proto/cuda_api/image_piece.h"
#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

using cuda_api::kImagePiece;
using wire::Code;

constexpr uint64_t kLargest = 8 * kImagePiece;

std::string Text(size_t size, char first = 'a') {
  std::string text(size, first);
  for (size_t i = 0; i < size; i += 1000) text[i] = static_cast<char>('b' + (i / 1000) % 20);
  return text;
}

ImagePiece PieceOf(const std::string& image, uint64_t index) {
  ImagePiece piece;
  piece.hash = wire::Sha256Of(wire::AsBytes(image));
  piece.total = image.size();
  piece.offset = index * kImagePiece;
  piece.size = std::min(kImagePiece, piece.total - piece.offset);
  return piece;
}

/// Takes a piece with its bytes; how that went.
wire::Status Feed(ImageUploads& uploads, const ImagePiece& piece, const std::string& image) {
  const auto upload = uploads.Take(piece);
  if (!upload.ok()) return upload.status();
  if (upload.value() == nullptr) return wire::Status(Code::kClosed, "refused before");
  const ImageUpload::Room room = upload.value()->NextRoom(piece.size);
  std::copy_n(wire::AsBytes(image).begin() + static_cast<ptrdiff_t>(piece.offset), piece.size, room.bytes);
  upload.value()->Arrived(room.number, 0);
  return {};
}

wire::Status Feed(ImageUploads& uploads, const std::string& image, uint64_t index) {
  return Feed(uploads, PieceOf(image, index), image);
}

bool Same(const Image& image, const std::string& text) {
  return std::equal(image->begin(), image->end(), wire::AsBytes(text).begin(), wire::AsBytes(text).end());
}

TEST(ImageUploads, PiecesInOrderMakeAnImage) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, kImagePiece, kImagePiece + 1, 3 * kImagePiece, kLargest}) {
    ImageUploads uploads(kLargest);
    const std::string text = Text(size);
    uint64_t index = 0;
    do {
      ASSERT_TRUE(Feed(uploads, text, index).ok()) << index << " of " << size;
    } while (++index * kImagePiece < size);
    const auto image = uploads.Finish(PieceOf(text, 0).hash);
    ASSERT_TRUE(image.ok()) << image.status().text();
    EXPECT_TRUE(Same(image.value(), text));
    EXPECT_EQ(uploads.open(), 0u);
    EXPECT_EQ(uploads.held(), 0u);
  }
}

TEST(ImageUploads, BytesMayComeLateAndInAnyOrder) {
  ImageUploads uploads(kLargest);
  const std::string text = Text(2 * kImagePiece + 7);
  const wire::Bytes bytes = wire::AsBytes(text);
  std::vector<ImageUpload::Room> rooms;
  std::shared_ptr<ImageUpload> upload;
  for (uint64_t i = 0; i < 3; ++i) {
    const ImagePiece piece = PieceOf(text, i);
    auto taken = uploads.Take(piece);
    ASSERT_TRUE(taken.ok());
    upload = taken.value();
    rooms.push_back(upload->NextRoom(piece.size));
  }
  std::thread late([&] {
    for (const size_t i : {size_t{2}, size_t{0}, size_t{1}}) {
      const ImagePiece piece = PieceOf(text, i);
      std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(piece.offset), piece.size, rooms[i].bytes);
      upload->Arrived(rooms[i].number, 0);
    }
  });
  const auto image = uploads.Finish(PieceOf(text, 0).hash);
  late.join();
  ASSERT_TRUE(image.ok()) << image.status().text();
  EXPECT_TRUE(Same(image.value(), text));
}

TEST(ImageUploads, APieceThatDoesNotFollowEndsTheUpload) {
  const std::string text = Text(4 * kImagePiece);
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{2}, uint64_t{3}}) {  // Where piece 1 is next.
    ImageUploads uploads(kLargest);
    ASSERT_TRUE(Feed(uploads, text, 0).ok());
    const wire::Status status = Feed(uploads, text, wrong);
    if (wrong == 0) {  // It begins anew.
      ASSERT_TRUE(status.ok());
      for (uint64_t index = 1; index < 4; ++index) ASSERT_TRUE(Feed(uploads, text, index).ok());
      EXPECT_TRUE(uploads.Finish(PieceOf(text, 0).hash).ok());
      continue;
    }
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_EQ(uploads.held(), 0u) << "its memory is free at once";
    if (wrong == 2) {
      EXPECT_EQ(Feed(uploads, text, 3).code(), Code::kClosed) << "said once";
    }
    EXPECT_EQ(uploads.open(), 0u) << "its last piece has gone by";
    EXPECT_TRUE(uploads.TakeRefusal(PieceOf(text, 0).hash).has_value());
    EXPECT_FALSE(uploads.TakeRefusal(PieceOf(text, 0).hash).has_value()) << "told once";
  }
}

TEST(ImageUploads, APieceOfNothingIsRefused) {
  ImageUploads uploads(kLargest);
  EXPECT_EQ(Feed(uploads, Text(4 * kImagePiece), 1).code(), Code::kInvalid);
  EXPECT_EQ(uploads.open(), 0u);
}

TEST(ImageUploads, SizesThatCannotBeAreRefused) {
  const std::string text = Text(2 * kImagePiece);
  const auto refused = [&](uint64_t total, uint64_t offset, uint64_t size) {
    ImageUploads uploads(kLargest);
    ImagePiece piece = PieceOf(text, 0);
    piece.total = total;
    piece.offset = offset;
    piece.size = size;
    const auto taken = uploads.Take(piece);
    return !taken.ok() && taken.status().code() == Code::kInvalid && uploads.open() == 0 && uploads.held() == 0;
  };
  EXPECT_TRUE(refused(2 * kImagePiece, 0, kImagePiece - 1)) << "too short for one that is not the last";
  EXPECT_TRUE(refused(2 * kImagePiece, 0, 2 * kImagePiece)) << "too long";
  EXPECT_TRUE(refused(100, 0, 101)) << "beyond the end";
  EXPECT_TRUE(refused(100, 0, 0)) << "nothing";
  EXPECT_TRUE(refused(100, 100, 0)) << "nothing, at the end";
  EXPECT_TRUE(refused(100, 101, UINT64_MAX)) << "around the end of the numbers";
  EXPECT_TRUE(refused(UINT64_MAX, UINT64_MAX, 1));
  EXPECT_TRUE(refused(kLargest + 1, 0, kImagePiece)) << "larger than is allowed";
  EXPECT_TRUE(refused(UINT64_MAX, 0, kImagePiece));
}

TEST(ImageUploads, ATotalThatChangesEndsTheUpload) {
  ImageUploads uploads(kLargest);
  const std::string text = Text(4 * kImagePiece);
  ASSERT_TRUE(Feed(uploads, text, 0).ok());
  ImagePiece piece = PieceOf(text, 1);
  piece.total = 5 * kImagePiece;
  EXPECT_EQ(uploads.Take(piece).status().code(), Code::kInvalid);
  EXPECT_EQ(uploads.held(), 0u);
}

TEST(ImageUploads, AnImageThatIsNotWhatItsHashSaysIsRefused) {
  ImageUploads uploads(kLargest);
  const std::string good = Text(kImagePiece + 5), evil = Text(kImagePiece + 5, 'x');
  ASSERT_TRUE(Feed(uploads, PieceOf(good, 0), good).ok());
  ASSERT_TRUE(Feed(uploads, PieceOf(good, 1), evil).ok());
  EXPECT_EQ(uploads.Finish(PieceOf(good, 0).hash).status().code(), Code::kInvalid);
  EXPECT_EQ(uploads.open(), 0u);
  EXPECT_TRUE(uploads.TakeRefusal(PieceOf(good, 0).hash).has_value());
}

TEST(ImageUploads, BytesThatNeverComeEndTheUpload) {
  ImageUploads uploads(kLargest);
  const std::string text = Text(kImagePiece + 5);
  const auto taken = uploads.Take(PieceOf(text, 0));
  ASSERT_TRUE(taken.ok());
  const ImageUpload::Room room = taken.value()->NextRoom(kImagePiece);
  ASSERT_TRUE(Feed(uploads, text, 1).ok());
  taken.value()->Arrived(room.number, -5);
  EXPECT_EQ(uploads.Finish(PieceOf(text, 0).hash).status().code(), Code::kInvalid);
}

TEST(ImageUploads, WhatIsGivenUpCountsUntilNoByteCanCome) {
  ImageUploads uploads(kLargest);
  const std::string text = Text(kLargest);
  std::shared_ptr<ImageUpload> coming = uploads.Take(PieceOf(text, 0)).value();
  const ImageUpload::Room room = coming->NextRoom(kImagePiece);
  EXPECT_EQ(uploads.held(), kLargest);
  EXPECT_EQ(Feed(uploads, text, 0).code(), Code::kExhausted) << "anew, while its memory is needed";
  room.bytes[kImagePiece - 1] = std::byte{1};
  coming->Arrived(room.number, 0);
  coming.reset();
  EXPECT_EQ(uploads.held(), 0u);
  EXPECT_TRUE(Feed(uploads, text, 0).ok());
}

TEST(ImageUploads, AreBoundedTogether) {
  ImageUploads uploads(kLargest);
  ASSERT_TRUE(Feed(uploads, Text(kLargest), 0).ok());
  EXPECT_EQ(Feed(uploads, Text(kImagePiece + 1), 0).code(), Code::kExhausted);
  const std::string small = Text(kImagePiece);
  ASSERT_TRUE(Feed(uploads, small, 0).ok()) << "beside a large one";
  EXPECT_TRUE(uploads.Finish(PieceOf(small, 0).hash).ok());
  EXPECT_LE(uploads.held(), kLargest);
}

TEST(ImageUploads, OnlySoManyAreOpen) {
  ImageUploads uploads(1024 * kImagePiece);
  for (size_t i = 0; i < ImageUploads::kMostOpen; ++i) {
    ASSERT_TRUE(Feed(uploads, Text(kImagePiece + 1 + i), 0).ok());
  }
  EXPECT_EQ(Feed(uploads, Text(kImagePiece + 100), 0).code(), Code::kExhausted);
  EXPECT_EQ(uploads.open(), ImageUploads::kMostOpen);
  EXPECT_TRUE(Feed(uploads, Text(kImagePiece + 1), 1).ok());
  EXPECT_TRUE(uploads.Finish(PieceOf(Text(kImagePiece + 1), 0).hash).ok());
  EXPECT_TRUE(Feed(uploads, Text(kImagePiece + 100), 0).ok());
}

TEST(ImageUploads, AnImageMayComeTwice) {
  ImageUploads uploads(kLargest);
  const std::string text = Text(kImagePiece + 1);
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Feed(uploads, text, 0).ok());
    ASSERT_TRUE(Feed(uploads, text, 1).ok());
    EXPECT_TRUE(uploads.Finish(PieceOf(text, 0).hash).ok());
  }
}

// --- in a session

class ImageSession : public testing::Test {
 protected:
  static cuda::UploadImage Message(const std::string& image, uint64_t index, uint64_t transfer) {
    const ImagePiece piece = PieceOf(image, index);
    cuda::UploadImage message;
    message.hash = piece.hash;
    message.total = piece.total;
    message.offset = piece.offset;
    message.size = piece.size;
    message.transfer = transfer;
    if (transfer == 0) message.data = Data(image, index);
    return message;
  }
  static wire::Bytes Data(const std::string& image, uint64_t index) {
    const ImagePiece piece = PieceOf(image, index);
    return wire::AsBytes(image).subspan(piece.offset, piece.size);
  }
  static std::vector<std::byte> Copy(wire::Bytes bytes) { return {bytes.begin(), bytes.end()}; }
  static Received<cuda::ModuleInfo> Load(Session& session, const std::string& image) {
    cuda::ImageEntry entry;
    entry.form = 2;
    entry.kind = 1;
    entry.size = image.size();
    entry.hash = PieceOf(image, 0).hash;
    cuda::LoadModule load;
    load.module = session.NewId(cuda::Handle::kModule);
    load.context = session.NewContext();
    load.entries = wire::ListView<cuda::ImageEntry>(std::span<const cuda::ImageEntry>(&entry, 1));
    return session.Ask<cuda::ModuleInfo>(load);
  }
};

TEST_F(ImageSession, OthersGoOnWhileALargeImageComes) {
  Session::Options options;
  options.limits.staging_memory = kImagePiece;
  Session session(options);
  const wire::Id context = session.NewContext();
  const std::string text = Text(2 * kImagePiece + 100'000);
  EXPECT_EQ(session.Do(Message(text, 0, 71)), 0);
  EXPECT_EQ(session.Do(Message(text, 1, 72)), 0);
  // Not a byte of it is here.
  EXPECT_EQ(session.Synchronize(context), 0);
  EXPECT_NE(session.NewMemory(context, 64), 0u);
  EXPECT_TRUE(session.NewModule(context, "another")) << "a small one";
  EXPECT_EQ(Load(session, text)->missing.size(), 1u) << "nobody sees half of it";
  session.bulk_in.Deliver(71, Copy(Data(text, 0)));
  session.bulk_in.Deliver(72, Copy(Data(text, 1)));
  session.bulk_in.ready[73] = Copy(Data(text, 2));
  EXPECT_EQ(session.Do(Message(text, 2, 73)), 0);
  const auto loaded = Load(session, text);
  EXPECT_EQ(loaded->status, 0);
  EXPECT_EQ(loaded->missing.size(), 0u);
  EXPECT_EQ(session.driver.loaded_images().back(), text);
}

TEST_F(ImageSession, ALoadTellsWhyAnUploadWasRefused) {
  Session session;
  const std::string good = Text(kImagePiece + 10), evil = Text(kImagePiece + 10, 'x');
  cuda::UploadImage second = Message(good, 1, 0);
  second.data = Data(evil, 1);
  EXPECT_EQ(session.Do(Message(good, 0, 0)), 0);
  EXPECT_EQ(session.Do(second), CUDA_ERROR_INVALID_IMAGE);
  const auto refused = Load(session, good);
  EXPECT_EQ(refused->status, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_NE(refused->error_log.find("hash"), std::string_view::npos) << refused->error_log;
  EXPECT_EQ(Load(session, good)->missing.size(), 1u) << "another thread may try";
}

TEST_F(ImageSession, DataOfRefusedPiecesIsNotStuck) {
  Session session;
  const std::string text = Text(3 * kImagePiece);
  EXPECT_EQ(session.Do(Message(text, 1, 5)), CUDA_ERROR_INVALID_IMAGE);
  session.bulk_in.Deliver(5, Copy(Data(text, 1)));  // It is expected.
  EXPECT_EQ(session.Do(Message(text, 0, 6)), 0);
  EXPECT_EQ(session.Do(Message(text, 0, 6)), CUDA_ERROR_INVALID_VALUE) << "a used name";
  session.bulk_in.Deliver(6, Copy(Data(text, 0)));
  cuda::UploadImage lying = Message(text, 0, 0);
  lying.size = 5;
  EXPECT_EQ(session.Do(lying), CUDA_ERROR_INVALID_IMAGE) << "its data is longer";
}

TEST_F(ImageSession, WhoHasTheAnswerToALoadLeavesTheImageToTheNextProcess) {
  char name[] = "/tmp/hawser-uploads-XXXXXX";
  Session::Options options;
  options.cache = ::mkdtemp(name);
  const std::string text = Text(kImagePiece + 10);
  {
    Session first(options);
    EXPECT_EQ(first.Do(Message(text, 0, 0)), 0);
    EXPECT_EQ(first.Do(Message(text, 1, 0)), 0);
    EXPECT_EQ(Load(first, text)->status, 0);
    ImageStore::Options same;
    same.directory = options.cache;
    same.tenant = options.tenant;
    EXPECT_TRUE(ImageStore(same, [](const std::string&) {}).Has(PieceOf(text, 0).hash));
  }
  {
    Session second(options);
    EXPECT_EQ(Load(second, text)->missing.size(), 0u);
  }
  std::filesystem::remove_all(options.cache);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
