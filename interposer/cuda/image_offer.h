// SPDX-License-Identifier: Apache-2.0
// What a guest offers the server when it loads code: each entry of the image with its hash (docs/decisions/0006). Bytes
// are sent only when the server lacks them.
#ifndef HAWSER_INTERPOSER_CUDA_IMAGE_OFFER_H_
#define HAWSER_INTERPOSER_CUDA_IMAGE_OFFER_H_

#include <span>
#include <string>
#include <vector>

#include "interposer/cuda/driver_api.h"
#include "proto/cuda/messages.h"

namespace hawser::cu {

class ImageOffer {
 public:
  /// `image`: what an application gives to cuModuleLoadData or cuLibraryLoadData: a wrapper, a fatbin, a cubin, or PTX
  /// text. Borrowed while the offer lives. CUDA_ERROR_INVALID_IMAGE: none of these.
  CUresult AddImage(const void* image);
  /// Bytes of known length (a file, cuLinkAddData).
  CUresult AddBytes(std::span<const std::byte> bytes);

  /// An object file or an archive of them: the device code of each translation unit, to be linked.
  CUresult AddObject(std::span<const std::byte> file);

  std::span<const cuda::ImageEntry> entries() const { return entries_; }
  std::span<const std::byte> bytes(size_t entry) const { return bytes_[entry]; }

 private:
  CUresult AddFatbin(const void* fatbin, uint32_t group);
  CUresult AddFatbinBytes(std::span<const std::byte> bytes, uint32_t group);
  void AddPlain(std::span<const std::byte> bytes, uint32_t kind, uint32_t group);
  void Add(uint32_t form, uint32_t kind, uint32_t group, uint32_t sm, uint64_t flags, std::span<const std::byte> bytes);

  std::vector<cuda::ImageEntry> entries_;
  std::vector<std::span<const std::byte>> bytes_;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_IMAGE_OFFER_H_
