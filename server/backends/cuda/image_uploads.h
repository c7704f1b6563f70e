// SPDX-License-Identifier: Apache-2.0
// Images on their way from the guest, piece by piece. The executor says where a piece goes and meets the next command;
// the bytes come meanwhile, and whoever brings them hashes them. Nobody sees an image before all of it is here and is
// what its hash says.
//
// Nothing is believed: pieces have the size that is agreed, come in order and end where the first one said; an image's
// size is bounded before memory is taken for it, and so are all uploads together, those included that were given up
// while bytes for them are still to come.
//
// Threading: ImageUploads is the executor's. ImageUpload: as said there.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_IMAGE_UPLOADS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_IMAGE_UPLOADS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/backends/cuda/image_store.h"
#include "wire/codec.h"
#include "wire/sha256.h"
#include "wire/status.h"

namespace hawser::server::cuda_backend {

/// What a guest says of a piece.
struct ImagePiece {
  wire::Sha256Digest hash{};  ///< Of the whole image.
  uint64_t total = 0;         ///< Bytes of the whole image.
  uint64_t offset = 0;
  uint64_t size = 0;

  /// Size and place are possible.
  bool WellFormed() const;
  bool last() const { return offset + size == total; }
};

/// One image that is coming. Whoever brings bytes for it shares it: it lives until no more can come.
/// Lock: its mutex, a leaf; not held while bytes are hashed.
class ImageUpload {
 public:
  /// Bytes of all uploads that live.
  using Account = std::shared_ptr<std::atomic<uint64_t>>;

  /// May throw std::bad_alloc.
  ImageUpload(uint64_t total, Account account);
  ~ImageUpload();
  ImageUpload(const ImageUpload&) = delete;
  ImageUpload& operator=(const ImageUpload&) = delete;

  /// A place for the next `size` bytes, which stays theirs while this lives. Executor.
  struct Room {
    std::byte* bytes = nullptr;
    uint64_t number = 0;  ///< For Arrived().
  };
  Room NextRoom(uint64_t size);
  /// The bytes of that room are there (0), or will never be. Once for each; any thread. Hashes.
  void Arrived(uint64_t number, int32_t status);
  /// Waits until all bytes are there, and takes them. kInvalid: they did not come, or hash to something else. Executor;
  /// after the last room, once.
  wire::Status Finish(const wire::Sha256Digest& hash, std::vector<std::byte>* image);

 private:
  struct Expected {
    uint64_t size = 0;
    bool here = false;
  };

  const uint64_t total_;
  const Account account_;
  std::vector<std::byte> bytes_;  ///< Never moves: all of it is reserved. Grown by the executor.
  std::byte* base_ = nullptr;     ///< Its first byte. Never changes.
  wire::Sha256 hash_;             ///< Used by whoever set hashing_.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Expected> expected_;  ///< That nobody has hashed.
  uint64_t first_ = 0;             ///< Number of the front.
  uint64_t hashed_ = 0;            ///< Bytes.
  bool hashing_ = false;
  bool failed_ = false;
};

class ImageUploads {
 public:
  /// Uploads begun and not finished. A guest of ours has one large and some small ones.
  static constexpr size_t kMostOpen = 16;

  /// `largest`: bytes of an image, and of all uploads together, beside one of a single piece.
  explicit ImageUploads(uint64_t largest);

  /// The upload that this piece belongs to; the caller asks it for room for the piece, and Finish() after the last
  /// one. A first piece begins an upload; one of the same image that was under way is given up. kInvalid, kExhausted:
  /// refused. Null: the piece belongs to an upload that has been refused already; there is nothing more to say.
  wire::Result<std::shared_ptr<ImageUpload>> Take(const ImagePiece& piece);
  /// After Take() of a last piece, when its bytes are there or come by themselves. Waits for them.
  wire::Result<Image> Finish(const wire::Sha256Digest& hash);
  /// Gives an upload up; the rest of it is not wanted.
  void Refuse(const ImagePiece& piece, const wire::Status& why);
  /// Why the last upload that was refused was, if it was of this image. Tells it once.
  std::optional<wire::Status> TakeRefusal(const wire::Sha256Digest& hash);

  /// Bytes that uploads hold.
  uint64_t held() const { return held_->load(std::memory_order_relaxed); }
  size_t open() const { return open_.size(); }

 private:
  struct Open {
    std::shared_ptr<ImageUpload> upload;  ///< Null: refused.
    uint64_t total = 0;
    uint64_t next = 0;  ///< Offset.
  };

  wire::Status Begin(const ImagePiece& piece);

  const uint64_t largest_;
  const uint64_t most_;  ///< Bytes of all.
  const ImageUpload::Account held_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::map<wire::Sha256Digest, Open> open_;
  std::optional<std::pair<wire::Sha256Digest, wire::Status>> refused_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_IMAGE_UPLOADS_H_
