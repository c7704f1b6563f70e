// SPDX-License-Identifier: Apache-2.0
// Vectors of FIPS 180-4 (NIST's examples) and pieces of every size.
#include "interposer/cuda/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/codec.h"

namespace hawser::cu {
namespace {

std::string Hex(const Sha256::Digest& digest) {
  std::string text;
  for (const std::byte each : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned>(each) >> 4];
    text += kDigits[static_cast<unsigned>(each) & 15];
  }
  return text;
}

std::string HashOf(std::string_view text) { return Hex(Sha256::Of(wire::AsBytes(text))); }

TEST(Sha256Test, GivesThePublishedDigests) {
  EXPECT_EQ(HashOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HashOf(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesDoNotMatter) {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const auto all = std::span<const std::byte>(bytes).first(size);
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{63}, size_t{64}, size_t{65}}) {
      Sha256 hash;
      for (size_t at = 0; at < size; at += piece) hash.Add(all.subspan(at, std::min(piece, size - at)));
      ASSERT_EQ(hash.Finish(), Sha256::Of(all)) << size << " bytes in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace hawser::cu
