// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/image_upload.h"

#include <algorithm>

#include "interposer/cuda/client.h"
#include "proto/cuda/messages.h"
#include "proto/cuda_api/image_piece.h"

namespace hawser::cu {
namespace {

using cuda_api::kImagePiece;

int32_t SendPiece(guest::Session* session, cuda::UploadImage message, wire::Bytes piece) {
  message.size = piece.size();
  if (piece.size() <= session->inline_limit()) {
    message.data = piece;
    return session->Send(message);
  }
  message.transfer = session->NewTransfer();
  const int32_t error = session->Send(message);
  return error != 0 ? error : session->SendBulk(message.transfer, piece);
}

int32_t SendPieces(guest::Session* session, const wire::Sha256Digest& hash, wire::Bytes bytes) {
  cuda::UploadImage message;
  message.hash = hash;
  message.total = bytes.size();
  int32_t error = 0;
  do {
    const wire::Bytes piece = bytes.subspan(message.offset, std::min(bytes.size() - message.offset, kImagePiece));
    error = SendPiece(session, message, piece);
    message.offset += piece.size();
  } while (error == 0 && message.offset < bytes.size());
  return error;
}

}  // namespace

ImageTurns& ImageTurns::Get() {
  static auto* turns = new ImageTurns;  // Never destroyed: programs load code in exit handlers.
  return *turns;
}

bool ImageTurns::Begin(const wire::Sha256Digest& hash) {
  std::unique_lock lock(mutex_);
  while (under_way_) {
    const bool same = *under_way_ == hash;
    const uint64_t turn = turns_;
    ++waiting_;
    changed_.wait(lock, [&] { return turns_ != turn; });
    --waiting_;
    if (same && turns_ == turn + 1 && sent_) return false;
  }
  under_way_ = hash;
  return true;
}

void ImageTurns::End(bool sent) {
  {
    std::lock_guard lock(mutex_);
    under_way_.reset();
    sent_ = sent;
    ++turns_;
  }
  changed_.notify_all();
}

int ImageTurns::waiting() {
  std::lock_guard lock(mutex_);
  return waiting_;
}

CUresult SendImage(guest::Session* session, const wire::Sha256Digest& hash, wire::Bytes bytes, ImageTurns& turns) {
  if (bytes.size() <= kImagePiece) return FromWire(SendPieces(session, hash, bytes));
  if (!turns.Begin(hash)) return CUDA_SUCCESS;
  const int32_t error = SendPieces(session, hash, bytes);
  turns.End(error == 0);
  return FromWire(error);
}

}  // namespace hawser::cu
