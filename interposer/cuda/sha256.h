// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): names of code images. Written here because a guest's machine has no library for it.
#ifndef HAWSER_INTERPOSER_CUDA_SHA256_H_
#define HAWSER_INTERPOSER_CUDA_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hawser::cu {

/// Threading: none; an object belongs to one thread.
class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;

  void Add(std::span<const std::byte> bytes);
  /// Once, at the end.
  Digest Finish();

  static Digest Of(std::span<const std::byte> bytes);

 private:
  void Block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};
  size_t in_rest_ = 0;
  uint64_t total_ = 0;
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_SHA256_H_
