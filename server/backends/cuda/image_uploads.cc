// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/image_uploads.h"

#include <new>

#include "proto/cuda_api/image_piece.h"

namespace hawser::server::cuda_backend {

using wire::Code;
using wire::Result;
using wire::Sha256Digest;
using wire::Status;

bool ImagePiece::WellFormed() const {
  if (size > cuda_api::kImagePiece || offset > total || size > total - offset) return false;
  return last() ? size != 0 || total == 0 : size == cuda_api::kImagePiece;
}

ImageUpload::ImageUpload(uint64_t total, Account account) : total_(total), account_(std::move(account)) {
  bytes_.reserve(total);
  base_ = bytes_.data();
  account_->fetch_add(total_, std::memory_order_relaxed);
}

ImageUpload::~ImageUpload() { account_->fetch_sub(total_, std::memory_order_relaxed); }

ImageUpload::Room ImageUpload::NextRoom(uint64_t size) {
  const uint64_t begin = bytes_.size();
  bytes_.resize(begin + size);
  const std::lock_guard<std::mutex> lock(mutex_);
  expected_.push_back({size, false});
  return {base_ + begin, first_ + expected_.size() - 1};
}

void ImageUpload::Arrived(uint64_t number, int32_t status) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (status != 0) failed_ = true;
  expected_[number - first_].here = true;
  // Transfers may end on two threads: who is at it takes the other one's bytes too, in their order.
  if (!hashing_) {
    hashing_ = true;
    while (!failed_ && !expected_.empty() && expected_.front().here) {
      const wire::Bytes bytes(base_ + hashed_, expected_.front().size);
      expected_.pop_front();
      ++first_;
      lock.unlock();
      hash_.Add(bytes);
      lock.lock();
      hashed_ += bytes.size();
    }
    hashing_ = false;
  }
  changed_.notify_all();
}

Status ImageUpload::Finish(const Sha256Digest& hash, std::vector<std::byte>* image) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !hashing_ && (failed_ || hashed_ == total_); });
    // More bytes may be on their way here: they stay.
    if (failed_) return Status(Code::kInvalid, "the image did not come");
  }
  if (hash_.Finish() != hash) return Status(Code::kInvalid, "the image is not what its hash says");
  *image = std::move(bytes_);
  return {};
}

// An image of one piece comes and goes within a command, beside a large one.
ImageUploads::ImageUploads(uint64_t largest) : largest_(largest), most_(largest + cuda_api::kImagePiece) {}

Status ImageUploads::Begin(const ImagePiece& piece) {
  open_.erase(piece.hash);  // The guest begins anew.
  if (piece.total > largest_) {
    return Status(Code::kInvalid, "an image of " + std::to_string(piece.total) + " bytes is larger than is allowed");
  }
  if (open_.size() >= kMostOpen) return Status(Code::kExhausted, "too many images are being uploaded");
  Open& open = open_[piece.hash];
  open.total = piece.total;
  if (held() > most_ || piece.total > most_ - held()) {
    return Status(Code::kExhausted, "the images that are being uploaded are too large together");
  }
  try {
    open.upload = std::make_shared<ImageUpload>(piece.total, held_);
  } catch (const std::bad_alloc&) {
    return Status(Code::kExhausted, "there is no memory for an image of " + std::to_string(piece.total) + " bytes");
  }
  return {};
}

Result<std::shared_ptr<ImageUpload>> ImageUploads::Take(const ImagePiece& piece) {
  Status status;
  if (!piece.WellFormed()) {
    status = Status(Code::kInvalid, "a piece of an image has a size that it cannot have");
  } else if (piece.offset == 0) {
    status = Begin(piece);
  }
  if (!status.ok()) {
    Refuse(piece, status);
    return status;
  }
  const auto at = open_.find(piece.hash);
  if (at != open_.end() && at->second.upload == nullptr) {
    if (piece.last()) open_.erase(at);
    return std::shared_ptr<ImageUpload>();
  }
  if (at == open_.end() || at->second.total != piece.total || at->second.next != piece.offset) {
    status = Status(Code::kInvalid, "a piece of an image does not follow the one before");
    Refuse(piece, status);
    return status;
  }
  at->second.next += piece.size;
  return at->second.upload;
}

void ImageUploads::Refuse(const ImagePiece& piece, const Status& why) {
  refused_.emplace(piece.hash, why);
  const auto at = open_.find(piece.hash);
  if (at == open_.end()) return;
  at->second.upload.reset();
  // Else its other pieces are on their way.
  if (!piece.WellFormed() || piece.last()) open_.erase(at);
}

Result<Image> ImageUploads::Finish(const Sha256Digest& hash) {
  const std::shared_ptr<ImageUpload> upload = std::move(open_.extract(hash).mapped().upload);
  std::vector<std::byte> bytes;
  if (Status status = upload->Finish(hash, &bytes); !status.ok()) {
    refused_.emplace(hash, status);
    return status;
  }
  return Image(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
}

std::optional<Status> ImageUploads::TakeRefusal(const Sha256Digest& hash) {
  if (!refused_ || refused_->first != hash) return std::nullopt;
  std::optional<Status> why = std::move(refused_->second);
  refused_.reset();
  return why;
}

}  // namespace hawser::server::cuda_backend
