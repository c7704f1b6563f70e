// SPDX-License-Identifier: Apache-2.0
// Which reads are to land before what, and what waits for them.
#include "interposer/cuda/landing.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace hawser::cu {
namespace {

class CudaLanding : public ::testing::Test {
 protected:
  std::shared_ptr<Landing> Read(size_t offset, size_t size) {
    return std::make_shared<Landing>(HostRegion::Linear(memory_.data() + offset, size));
  }

  std::array<std::byte, 1000> memory_{};
};

TEST_F(CudaLanding, WhatWaitsForOneIsCalledOnceWhenItLands) {
  const auto landing = Read(0, 10);
  int calls = 0;
  EXPECT_TRUE(landing->Then([&] { ++calls; }));
  EXPECT_TRUE(landing->Then([&] { ++calls; }));
  EXPECT_EQ(calls, 0);
  landing->Land();
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(landing->Then([&] { ++calls; }));
  EXPECT_EQ(calls, 2);
}

TEST_F(CudaLanding, WhatWaitsForSeveralIsCalledByTheLast) {
  const auto one = Read(0, 10), two = Read(10, 10), over = Read(20, 10);
  over->Land();
  int calls = 0;
  WhenLanded({one, over, two}, [&] { ++calls; });
  two->Land();
  EXPECT_EQ(calls, 0);
  one->Land();
  EXPECT_EQ(calls, 1);
  WhenLanded({}, [&] { ++calls; });
  WhenLanded({over}, [&] { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST_F(CudaLanding, OnlyThoseOfTheSameMemoryOverlap) {
  const auto front = Read(0, 100), middle = Read(50, 100), back = Read(200, 100);
  const Landings all{front, middle, back};
  const auto overlapping = [&](size_t offset, size_t size) {
    return Overlapping(all, HostRegion::Linear(memory_.data() + offset, size));
  };
  EXPECT_EQ(overlapping(99, 1), (Landings{front, middle}));
  EXPECT_EQ(overlapping(150, 50), Landings{});
  EXPECT_EQ(overlapping(149, 52), (Landings{middle, back}));
  EXPECT_TRUE(Overlaps(all, HostRegion::Linear(memory_.data() + 299, 1)));
  EXPECT_FALSE(Overlaps(all, HostRegion::Linear(memory_.data() + 300, 1)));
}

TEST_F(CudaLanding, AListKnowsEachOnceAndForgetsWhatHasLanded) {
  LandingList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.version(), 0u);
  list.Add(Landings{});
  EXPECT_EQ(list.version(), 0u);
  const auto one = Read(0, 10), two = Read(10, 10);
  list.Add(one);
  list.Add(Landings{one, two});
  EXPECT_EQ(list.Open(), (Landings{one, two}));
  EXPECT_EQ(list.version(), 2u);
  one->Land();
  EXPECT_EQ(list.Open(), Landings{two});
  two->Land();
  EXPECT_FALSE(list.empty());  // Until somebody looks.
  EXPECT_EQ(list.Open(), Landings{});
  EXPECT_TRUE(list.empty());
  list.Assign({one});
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace hawser::cu
