// SPDX-License-Identifier: Apache-2.0
#include "wire/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::wire {
namespace {

// The examples of FIPS 180-4's companion (NIST CSRC, "SHA256.pdf").
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(HexOf(Sha256Of(AsBytes(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf(Sha256Of(AsBytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf(Sha256Of(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexOf(Sha256Of(AsBytes(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveWhatTheWholeGives) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += static_cast<char>(i * 7);
    for (const size_t piece : {size_t{1}, size_t{63}, size_t{64}, size_t{65}}) {
      Sha256 hash;
      for (size_t at = 0; at < text.size(); at += piece) hash.Add(AsBytes(std::string_view(text).substr(at, piece)));
      ASSERT_EQ(hash.Finish(), Sha256Of(AsBytes(text))) << text.size() << " bytes by " << piece;
    }
  }
}

}  // namespace
}  // namespace hawser::wire
