// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): names images of code by what is in them. Both ends compute it, so that neither has to trust
// the other.
#ifndef HAWSER_WIRE_SHA256_H_
#define HAWSER_WIRE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "wire/codec.h"

namespace hawser::wire {

using Sha256Digest = std::array<std::byte, 32>;

/// Threading: none; one per computation.
class Sha256 {
 public:
  void Add(Bytes bytes);
  /// Once, at the end.
  Sha256Digest Finish();

 private:
  void Block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> buffer_{};
  uint64_t total_ = 0;
};

Sha256Digest Sha256Of(Bytes bytes);
/// 64 lower-case digits.
std::string HexOf(const Sha256Digest& digest);

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_SHA256_H_
