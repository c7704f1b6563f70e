// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/address_range.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <vector>

namespace hawser::soft {
namespace {

constexpr uint64_t kBase = 0x3000'0000'0000;
constexpr uint64_t kSize = uint64_t{1} << 30;
constexpr uint64_t kPage = AddressRange::kPage;

TEST(AddressRange, LiesWhereItWasAskedFor) {
  const AddressRange range(kBase, kSize);
#if defined(__SANITIZE_THREAD__)
  std::puts(
      "skipped here: whether the range lies where it was asked for; ThreadSanitizer allows no addresses of our choice");
#else
  EXPECT_EQ(range.begin(), kBase);
#endif
  EXPECT_EQ(range.end() - range.begin(), kSize);
  EXPECT_TRUE(range.Contains(range.begin()));
  EXPECT_FALSE(range.Contains(range.end()));
}

TEST(AddressRange, GoesElsewhereWhenThatIsTaken) {
  const AddressRange first(kBase, kSize);
  const AddressRange second(kBase, kSize);
  EXPECT_NE(second.begin(), first.begin());
  EXPECT_EQ(second.end() - second.begin(), kSize);
}

TEST(AddressRange, GivesEachAddressToOne) {
  AddressRange range(kBase, kSize);
  const uint64_t a = range.Take(1, 512);
  const uint64_t b = range.Take(5 * kPage, uint64_t{2} << 20);
  ASSERT_NE(a, 0U);
  ASSERT_NE(b, 0U);
  EXPECT_EQ(b % (uint64_t{2} << 20), 0U);
  EXPECT_GE(b, a + kPage);
  EXPECT_FALSE(range.Give(a + kPage, 1));
  EXPECT_FALSE(range.Give(b, kPage));
  EXPECT_TRUE(range.Give(a, 1));
  EXPECT_FALSE(range.Give(a, 1));
}

TEST(AddressRange, UsesAddressesAgainAsLateAsPossible) {
  AddressRange range(kBase, kSize);
  const uint64_t a = range.Take(kPage, kPage);
  ASSERT_TRUE(range.Give(a, kPage));
  EXPECT_NE(range.Take(kPage, kPage), a);
  const uint64_t rest = range.Take(kSize - 2 * kPage, kPage);
  ASSERT_NE(rest, 0U);
  EXPECT_EQ(range.Take(kPage, kPage), a);  // Nothing else is left.
  EXPECT_EQ(range.Take(kPage, kPage), 0U);
}

TEST(AddressRange, MergesWhatIsGivenBack) {
  AddressRange range(kBase, kSize);
  const uint64_t third = kSize / 4;
  const std::vector<uint64_t> parts = {range.Take(third, kPage), range.Take(third, kPage), range.Take(third, kPage),
                                       range.Take(third, kPage)};
  for (const size_t i : {1U, 3U, 0U, 2U}) EXPECT_TRUE(range.Give(parts[i], third));
  EXPECT_EQ(range.Take(kSize, kPage), range.begin());
  EXPECT_EQ(range.Take(kSize + 1, kPage), 0U);
}

TEST(AddressRange, FollowsAHint) {
  AddressRange range(kBase, kSize);
  const uint64_t wanted = range.begin() + 100 * kPage;
  EXPECT_EQ(range.Take(kPage, kPage, wanted), wanted);
  EXPECT_NE(range.Take(kPage, kPage, wanted), wanted);
}

TEST(AddressRange, MemoryIsThereOnlyWhileCommitted) {
  AddressRange range(kBase, kSize);
  const uint64_t a = range.Take(kPage, kPage);
  auto* const bytes = reinterpret_cast<volatile char*>(a);
  ASSERT_TRUE(AddressRange::Commit(a, kPage));
  EXPECT_EQ(*bytes, 0);
  *bytes = 1;
  AddressRange::Decommit(a, kPage);
  ASSERT_TRUE(AddressRange::Commit(a, kPage));
  EXPECT_EQ(*bytes, 0);  // Fresh.
  EXPECT_TRUE(range.Give(a, kPage));
  EXPECT_DEATH(static_cast<void>(*bytes), "");
}

}  // namespace
}  // namespace hawser::soft
