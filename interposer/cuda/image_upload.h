// SPDX-License-Identifier: Apache-2.0
// Sends images that the server lacks. A large one goes in pieces, a command each, so that commands and copies of other
// threads come between them.
#ifndef HAWSER_INTERPOSER_CUDA_IMAGE_UPLOAD_H_
#define HAWSER_INTERPOSER_CUDA_IMAGE_UPLOAD_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "interposer/core/session.h"
#include "interposer/cuda/driver_api.h"
#include "wire/codec.h"
#include "wire/sha256.h"

namespace hawser::cu {

/// One large image at a time: the server names an upload by its image, so two of the same one would disturb each other,
/// and it bounds what is on its way. Thread-safe. Whoever waits here holds nothing that a sender needs.
class ImageTurns {
 public:
  /// Those of the process.
  static ImageTurns& Get();

  /// Waits until no other upload is under way. False: the one that it waited for last was of this very image and is
  /// done; nothing has begun.
  bool Begin(const wire::Sha256Digest& hash);
  /// What Begin() began is over. `sent`: all of it.
  void End(bool sent);
  /// Threads that wait in Begin().
  int waiting();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<wire::Sha256Digest> under_way_;
  uint64_t turns_ = 0;  ///< That are over.
  bool sent_ = false;   ///< How the last one ended.
  int waiting_ = 0;
};

/// Sends `bytes`, whose hash is `hash`; borrowed until it returns. Does not wait for the server's verdict: whoever
/// asks for the image next hears it. Of one piece: a single command.
CUresult SendImage(guest::Session* session, const wire::Sha256Digest& hash, wire::Bytes bytes,
                   ImageTurns& turns = ImageTurns::Get());

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_IMAGE_UPLOAD_H_
