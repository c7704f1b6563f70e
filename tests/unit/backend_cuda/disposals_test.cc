// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/disposals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace hawser::server::cuda_backend {
namespace {

/// So long that a test which waits for it has failed.
constexpr std::chrono::hours kVeryLong{1};

TEST(Disposals, FreesInOrder) {
  const DriverTable driver;
  Disposals disposals(&driver);
  std::vector<int> freed;
  for (int i = 0; i < 10; ++i) disposals.Add(nullptr, [&freed, i] { freed.push_back(i); });
  EXPECT_TRUE(disposals.DrainFor(kVeryLong));
  EXPECT_EQ(freed, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Disposals, NobodyWaitsInVainTwice) {
  const DriverTable driver;
  Disposals disposals(&driver);
  std::promise<void> first, second_begins, second;
  disposals.Add(nullptr, [&] { first.get_future().wait(); });
  EXPECT_FALSE(disposals.DrainFor(std::chrono::milliseconds(1)));
  EXPECT_FALSE(disposals.DrainFor(kVeryLong));
  disposals.Add(nullptr, [&] {
    second_begins.set_value();
    second.get_future().wait();
  });
  EXPECT_FALSE(disposals.DrainFor(kVeryLong));

  // Something more was freed: from then on waiting is worth while.
  first.set_value();
  second_begins.get_future().wait();
  const auto later = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    second.set_value();
  });
  EXPECT_TRUE(disposals.DrainFor(kVeryLong));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
