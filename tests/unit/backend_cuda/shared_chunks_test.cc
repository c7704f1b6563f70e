// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/shared_chunks.h"

#include <gtest/gtest.h>

namespace hawser::server::cuda_backend {
namespace {

constexpr uint64_t kGranule = uint64_t{2} << 20;

TEST(SharedChunks, SayHowMemoryLiesInThem) {
  const SharedChunks chunks{2 * kGranule, 5 * kGranule, 512};
  EXPECT_EQ(chunks.count(), 3u);
  EXPECT_EQ(chunks.SizeOf(0), 2 * kGranule);
  EXPECT_EQ(chunks.SizeOf(2), kGranule);
  EXPECT_TRUE(chunks.Sensible(5 * kGranule - 512, 3, kGranule));
  EXPECT_EQ(SharedChunks::Decode(chunks.Encode()), chunks);
}

TEST(SharedChunks, NonsenseIsFound) {
  const SharedChunks good{2 * kGranule, 5 * kGranule, 512};
  EXPECT_FALSE(good.Sensible(5 * kGranule - 511, 3, kGranule)) << "sticks out";
  EXPECT_FALSE(good.Sensible(0, 3, kGranule));
  EXPECT_FALSE(good.Sensible(UINT64_MAX, 3, kGranule));
  for (const size_t files : {0, 2, 4}) EXPECT_FALSE(good.Sensible(100, files, kGranule));
  EXPECT_FALSE((SharedChunks{0, 5 * kGranule, 0}.Sensible(100, 3, kGranule)));
  EXPECT_FALSE((SharedChunks{kGranule + 1, 3 * kGranule + 3, 0}.Sensible(100, 3, kGranule)));
  EXPECT_FALSE((SharedChunks{2 * kGranule, 5 * kGranule - 1, 0}.Sensible(100, 3, kGranule)));
  EXPECT_FALSE((SharedChunks{2 * kGranule, 5 * kGranule, 5 * kGranule}.Sensible(100, 3, kGranule)));
  EXPECT_FALSE((SharedChunks{2 * kGranule, 5 * kGranule, UINT64_MAX}.Sensible(100, 3, kGranule)));
  EXPECT_FALSE((SharedChunks{kGranule, UINT64_MAX - kGranule + 1, 0}.Sensible(100, 128, kGranule)));
  EXPECT_FALSE(SharedChunks().Sensible(100, 0, kGranule));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
