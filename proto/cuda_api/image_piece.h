// SPDX-License-Identifier: Apache-2.0
// How an image of code travels that is too large for one command.
#ifndef HAWSER_PROTO_CUDA_API_IMAGE_PIECE_H_
#define HAWSER_PROTO_CUDA_API_IMAGE_PIECE_H_

#include <cstdint>

namespace hawser::cuda_api {

/// Bytes of each UploadImage but an image's last one. What comes between two pieces waits for the transfer of some of
/// them at most, so they are small; a piece costs the server some 50 us beside its transfer, so they are not smaller.
inline constexpr uint64_t kImagePiece = 1u << 20;

}  // namespace hawser::cuda_api

#endif  // HAWSER_PROTO_CUDA_API_IMAGE_PIECE_H_
