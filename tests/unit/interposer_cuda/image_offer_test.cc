// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/image_offer.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "wire/sha256.h"

namespace hawser::cu {
namespace {

constexpr char kPtx[] = ".version 7.5\n.target sm_75\n.address_size 64\n";

template <typename T>
void Put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

/// A fatbin with one entry of each kind, as the layout in proto/facts/fatbin.h has it.
std::vector<std::byte> Fatbin(const std::vector<std::pair<uint16_t, uint32_t>>& entries) {
  constexpr size_t kHeader = 0x40;
  constexpr size_t kPayload = 16;
  std::vector<std::byte> bytes(16 + entries.size() * (kHeader + kPayload));
  Put<uint32_t>(bytes, 0, 0xba55ed50);
  Put<uint16_t>(bytes, 4, 1);
  Put<uint16_t>(bytes, 6, 16);
  Put<uint64_t>(bytes, 8, bytes.size() - 16);
  size_t at = 16;
  for (const auto& [kind, sm] : entries) {
    Put<uint16_t>(bytes, at, kind);
    Put<uint16_t>(bytes, at + 2, 0x0101);
    Put<uint32_t>(bytes, at + 4, kHeader);
    Put<uint64_t>(bytes, at + 8, kPayload);
    Put<uint16_t>(bytes, at + 0x1a, 9);
    Put<uint32_t>(bytes, at + 0x1c, sm);
    Put<uint64_t>(bytes, at + 0x28, 0x11);
    bytes[at + kHeader] = static_cast<std::byte>(sm);
    at += kHeader + kPayload;
  }
  return bytes;
}

TEST(ImageOfferTest, OffersPtxAsItIs) {
  ImageOffer offer;
  ASSERT_EQ(offer.AddImage(kPtx), CUDA_SUCCESS);
  ASSERT_EQ(offer.entries().size(), 1u);
  EXPECT_EQ(offer.entries()[0].form, 2u);
  EXPECT_EQ(offer.entries()[0].kind, 1u);
  EXPECT_EQ(offer.entries()[0].size, sizeof(kPtx));  // With its zero byte.
  EXPECT_EQ(offer.entries()[0].hash, wire::Sha256Of(wire::AsBytes(kPtx, sizeof(kPtx))));
}

TEST(ImageOfferTest, SaysWhatACubinIsFor) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_machine = 190;
  header.e_flags = 0x6005a04;
  ImageOffer offer;
  ASSERT_EQ(offer.AddImage(&header), CUDA_SUCCESS);
  ASSERT_EQ(offer.entries().size(), 1u);
  EXPECT_EQ(offer.entries()[0].form, 2u);
  EXPECT_EQ(offer.entries()[0].kind, 2u);
  EXPECT_EQ(offer.entries()[0].sm, 90u);
}

TEST(ImageOfferTest, OffersEachEntryOfAFatbinWithItsHeader) {
  const std::vector<std::byte> fatbin = Fatbin({{2, 75}, {1, 90}});
  ImageOffer offer;
  ASSERT_EQ(offer.AddImage(fatbin.data()), CUDA_SUCCESS);
  ASSERT_EQ(offer.entries().size(), 2u);
  EXPECT_EQ(offer.entries()[0].form, 1u);
  EXPECT_EQ(offer.entries()[0].kind, 2u);
  EXPECT_EQ(offer.entries()[0].sm, 75u);
  EXPECT_EQ(offer.entries()[1].kind, 1u);
  EXPECT_EQ(offer.entries()[1].sm, 90u);
  EXPECT_EQ(offer.entries()[1].group, 0u);
  EXPECT_EQ(offer.entries()[1].size, 0x50u);
  EXPECT_EQ(offer.bytes(1).data(), fatbin.data() + 16 + 0x50);
  EXPECT_NE(offer.entries()[0].hash, offer.entries()[1].hash);
}

TEST(ImageOfferTest, FollowsAWrapperToItsTranslationUnits) {
  struct Wrapper {
    uint32_t magic;
    uint32_t version;
    const void* fatbin;
    const void* const* parts;
  };
  const std::vector<std::byte> linked = Fatbin({{2, 90}});
  const std::vector<std::byte> one = Fatbin({{1, 75}});
  const std::vector<std::byte> two = Fatbin({{1, 75}, {2, 90}});
  const void* parts[] = {one.data(), two.data(), nullptr};
  const Wrapper wrapper{0x466243b1, 2, linked.data(), parts};
  ImageOffer offer;
  ASSERT_EQ(offer.AddImage(&wrapper), CUDA_SUCCESS);
  ASSERT_EQ(offer.entries().size(), 4u);
  const uint32_t groups[] = {0, 1, 2, 2};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(offer.entries()[i].group, groups[i]) << i;
}

TEST(ImageOfferTest, RefusesWhatIsNoImage) {
  ImageOffer offer;
  EXPECT_EQ(offer.AddBytes(wire::AsBytes("\x01\x02\x03\x04", 4)), CUDA_ERROR_INVALID_IMAGE);
  std::vector<std::byte> fatbin = Fatbin({{1, 75}});
  Put<uint64_t>(fatbin, 16 + 8, 1u << 20);  // The entry is longer than the fatbin.
  EXPECT_EQ(offer.AddImage(fatbin.data()), CUDA_ERROR_INVALID_IMAGE);
}

}  // namespace
}  // namespace hawser::cu
