// SPDX-License-Identifier: Apache-2.0
// Bytes that no mistake produces by chance. Eight at a time: tests make hundreds of megabytes, also where each access
// is watched by a sanitizer.
#ifndef HAWSER_TESTS_INTEGRATION_RANDOM_BYTES_H_
#define HAWSER_TESTS_INTEGRATION_RANDOM_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace hawser::test {

/// The same bytes for the same seed.
inline std::vector<unsigned char> RandomBytes(size_t size, unsigned seed) {
  std::vector<uint64_t> words((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  std::mt19937_64 random(seed);
  for (uint64_t& word : words) word = random();
  std::vector<unsigned char> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), words.data(), size);
  return bytes;
}

}  // namespace hawser::test

#endif  // HAWSER_TESTS_INTEGRATION_RANDOM_BYTES_H_
