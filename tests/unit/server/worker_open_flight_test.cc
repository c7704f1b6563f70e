// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "server/worker/open_flight.h"

namespace hawser::server {
namespace {

constexpr uint64_t kCap = 8'000'000;

/// A device in virtual time that runs one launch after the other. A mark is when it is passed.
class Device {
 public:
  explicit Device(uint64_t cap = kCap) : cap_(cap) {}

  struct Kernel {
    double ns_per_item;
    std::shared_ptr<OpenSpeed> speed = std::make_shared<OpenSpeed>();
  };

  void Look() {
    flight.Look([&](uint64_t mark) { return mark <= now; }, [](uint64_t one, uint64_t other) { return other - one; });
  }
  /// As a backend does it: waits where it must.
  void Launch(Kernel& kernel, uint64_t items) {
    if (flight.full()) Look();
    while (flight.full()) {
      const uint64_t at = flight.ResumeAt();
      ASSERT_GT(at, now);
      now = at;
      ++pauses;
      if (now == free_at) ++dry;
      Look();
    }
    free_at = std::max(free_at, now) + static_cast<uint64_t>(kernel.ns_per_item * static_cast<double>(items));
    longest = std::max(longest, free_at - now);
    if (flight.Add(*kernel.speed, items)) {
      ++checks;
      Look();
      flight.Over(seen_over);
      if (flight.Due()) {
        ++marks;
        flight.Put(free_at, kernel.speed, items, cap_);
      }
    }
    now += host_ns;
  }
  /// The program waits for all of it, and the backend sees that.
  void Synchronize() {
    now = std::max(now, free_at) + 20'000;
    seen_over = flight.given();
  }

  OpenFlight<uint64_t> flight;
  uint64_t now = 1, free_at = 0, host_ns = 1000, longest = 0;
  uint64_t seen_over = 0;
  int pauses = 0, marks = 0, dry = 0, checks = 0;

 private:
  const uint64_t cap_;
};

TEST(OpenFlight, BoundsWhatIsUnderWay) {
  Device device;
  Device::Kernel kernel{10};
  for (int i = 0; i < 100'000; ++i) device.Launch(kernel, 1000);  // 10 us each, ten times as fast as the device.
  EXPECT_LE(device.longest, kCap + kCap / 8 + 10'000);
  EXPECT_GT(device.longest, kCap / 2);
  EXPECT_EQ(device.dry, 0);
  EXPECT_LT(device.marks, 100'000 / 90);
  // Half of the bound each time.
  EXPECT_LT(device.pauses, 400);
}

TEST(OpenFlight, LongKernelsAreTwoAtATime) {
  Device device;
  Device::Kernel kernel{1e5};
  for (int i = 0; i < 50; ++i) device.Launch(kernel, 1000);  // 100 ms.
  EXPECT_LE(device.longest, 200'000'000u);
  EXPECT_EQ(device.dry, 0);
}

TEST(OpenFlight, AKernelIsKnownAfterTwoLaunches) {
  Device device;
  Device::Kernel fast{1}, slow{1000};
  for (int i = 0; i < 10'000; ++i) device.Launch(fast, 1000);  // 1 us.
  device.longest = 0;
  for (int i = 0; i < 100; ++i) device.Launch(slow, 2000);  // 2 ms.
  EXPECT_NEAR(slow.speed->ns_per_item(), 1000, 1);
  EXPECT_LE(device.longest, kCap + 2 * 2'000'000);
}

TEST(OpenFlight, KernelsOfAllLengthsTogetherKeepTheBound) {
  Device device;
  std::vector<Device::Kernel> kernels{{1}, {50}, {700}, {2}};
  for (uint64_t i = 0; i < 40'000; ++i) device.Launch(kernels[i * 7 % kernels.size()], 1000 + i % 3 * 500);
  EXPECT_LE(device.longest, kCap * 3 / 2);
  EXPECT_EQ(device.dry, 0);
}

TEST(OpenFlight, FollowsAKernelThatBecomesLonger) {
  Device device;
  Device::Kernel kernel{1};
  for (int i = 0; i < 10'000; ++i) device.Launch(kernel, 1000);
  kernel.ns_per_item = 100;
  for (int i = 0; i < 10'000; ++i) device.Launch(kernel, 1000);
  device.longest = 0;
  for (int i = 0; i < 1'000; ++i) device.Launch(kernel, 1000);
  EXPECT_LE(device.longest, kCap * 3 / 2);
  EXPECT_NEAR(kernel.speed->ns_per_item(), 100, 1);
}

TEST(OpenFlight, WhatWasMeasuredOneByOneIsNotBelievedOfMany) {
  for (const int probes : {1, 4, 30, 1000}) {
    Device device;
    Device::Kernel kernel{20};
    for (int i = 0; i < probes; ++i) {
      device.Launch(kernel, 1000);  // 20 us.
      device.Synchronize();
    }
    kernel.ns_per_item = 94'000;
    for (int i = 0; i < 100; ++i) device.Launch(kernel, 1000);  // 94 ms.
    EXPECT_LE(device.longest, 10 * 94'000'000u) << probes;
    device.longest = 0;
    for (int i = 0; i < 20; ++i) device.Launch(kernel, 1000);
    EXPECT_LE(device.longest, 3 * 94'000'000u) << probes;
    EXPECT_LE(device.dry, 1);  // When the last two share a mark.
  }
}

TEST(OpenFlight, WhatDoublesEachTimeIsNotBelievedOfMany) {
  Device device;
  Device::Kernel kernel{1};
  for (; kernel.ns_per_item < 50'000; kernel.ns_per_item *= 2) {
    device.Launch(kernel, 1000);
    device.Synchronize();
  }
  for (int i = 0; i < 100; ++i) device.Launch(kernel, 1000);
  EXPECT_LE(device.longest, 10 * 66'000'000u);
}

TEST(OpenFlight, WhoWaitsForEachLaunchNeedsFewMarks) {
  Device device;
  Device::Kernel kernel{10};
  for (int i = 0; i < 10'000; ++i) {
    device.Launch(kernel, 1000);
    device.Synchronize();
  }
  EXPECT_LE(device.marks, 10'000 * 31 / 1000 + 20);  // Each eighth of the bound; the pauses are taken for its length.
  EXPECT_LE(device.checks, 10'000);
  EXPECT_EQ(device.pauses, 0);
}

TEST(OpenFlight, WhoWaitsForAFewNeedsFewMarks) {
  for (const int burst : {2, 5, 10, 50, 300}) {
    Device device;
    Device::Kernel kernel{10};
    for (int i = 0; i < 30'000 / burst; ++i) {
      for (int k = 0; k < burst; ++k) device.Launch(kernel, 1000);
      device.Synchronize();
    }
    EXPECT_LE(device.marks, 30'000 / 70) << burst;
    EXPECT_LE(device.pauses, 5) << burst;
    EXPECT_EQ(device.dry, 0) << burst;
  }
}

TEST(OpenFlight, AProgramSlowerThanTheDeviceNeedsFewMarks) {
  Device device;
  device.host_ns = 20'000;
  Device::Kernel kernel{10};
  for (int i = 0; i < 10'000; ++i) device.Launch(kernel, 1000);
  EXPECT_LE(device.marks, 10'000 * 20 / 1000 + 20);  // As above.
  EXPECT_EQ(device.pauses, 0);
}

TEST(OpenFlight, WhoHearsOfTheEndsOfLaunchesNeedsFewMarks) {
  for (const size_t depth : {1, 2, 16, 30}) {
    Device device;
    Device::Kernel kernel{10};
    std::deque<uint64_t> ends;  // Of what is under way.
    const auto launch = [&](int count) {
      for (int i = 0; i < count; ++i) {
        if (ends.size() == depth) {
          device.now = std::max(device.now, ends.front());
          ends.pop_front();
        }
        device.seen_over = device.flight.given() - ends.size();
        device.Launch(kernel, 1000);
        ends.push_back(device.free_at);
      }
    };
    launch(5'000);
    device.marks = device.checks = device.pauses = 0;
    launch(50'000);
    EXPECT_LE(device.marks, 50'000 / 1000 + 5) << depth;
    EXPECT_LE(device.checks, 50'000 / static_cast<int>(depth) + 100) << depth;
    EXPECT_EQ(device.pauses, 0) << depth;
    EXPECT_LE(device.flight.flying_ns(), kCap / 4) << depth;
    EXPECT_NEAR(kernel.speed->ns_per_item(), 10, 2) << depth;
    // Nothing is heard of any more, and what comes is long.
    kernel.ns_per_item = 94'000;
    device.longest = 0;
    for (int i = 0; i < 2'000; ++i) device.Launch(kernel, 1000);
    EXPECT_LE(device.longest, 12 * (depth + 1) * 94'000'000u) << depth;
  }
}

TEST(OpenFlight, AWindowThatIsNotUsedShrinks) {
  Device device;
  Device::Kernel kernel{10};
  for (int i = 0; i < 10'000; ++i) device.Launch(kernel, 1000);
  for (int i = 0; i < 5'000; ++i) {
    device.Synchronize();
    device.Launch(kernel, 1000);
  }
  device.Synchronize();
  device.longest = 0;
  kernel.ns_per_item = 94'000;
  for (int i = 0; i < 100; ++i) device.Launch(kernel, 1000);
  EXPECT_LE(device.longest, 10 * 94'000'000u);
}

TEST(OpenFlight, AStallOfTheDeviceDoesNotMakeItRunDry) {
  Device device;
  Device::Kernel kernel{10};
  for (int i = 0; i < 20'000; ++i) {
    device.Launch(kernel, 1000);
    if (i % 2'000 == 1'999) device.free_at += 6'000'000;
  }
  EXPECT_EQ(device.dry, 0);
  EXPECT_LE(device.marks, 20'000 / 90);
}

TEST(OpenFlight, IsNotFullWhileThereIsNoMarkToWaitFor) {
  OpenFlight<uint64_t> flight;
  const auto speed = std::make_shared<OpenSpeed>();
  speed->Set(1);
  const auto launch = [&](int count) {
    bool mark = false;
    for (int i = 0; i < count; ++i) mark = flight.Add(*speed, 1000) && flight.Due();
    return mark;
  };
  constexpr int kMost = OpenFlight<uint64_t>::kMostUnmarked;
  for (int i = 0; i < 10; ++i) {
    while (!launch(1)) {
    }
    flight.Put(0, speed, 1000, kCap);
    flight.Look([](uint64_t) { return true; }, [](uint64_t, uint64_t) { return 1000; });
  }
  for (uint64_t mark = 1; mark <= 2; ++mark) {
    ASSERT_TRUE(launch(kMost));
    flight.Put(mark, speed, 1000, kCap);
  }
  // Of these nobody knows the end when it turns out that all before them took a thousand times as long.
  ASSERT_FALSE(launch(kMost / 2));
  flight.Look([](uint64_t) { return true; }, [](uint64_t, uint64_t) { return uint64_t{1'000'000} * kMost; });
  EXPECT_GE(flight.flying_ns(), kCap);
  EXPECT_FALSE(flight.has_marks());
  EXPECT_FALSE(flight.full());
  ASSERT_TRUE(launch(1));
  flight.Put(3, speed, 1000, kCap);
  EXPECT_TRUE(flight.full());
  EXPECT_EQ(flight.ResumeAt(), 3u);
}

TEST(OpenFlight, WhoWaitsForTheDeviceNeverPauses) {
  Device device;
  Device::Kernel kernel{10};
  for (int i = 0; i < 10'000; ++i) {
    device.Launch(kernel, 1000);
    device.now = std::max(device.now, device.free_at) + 50'000;
  }
  EXPECT_EQ(device.pauses, 0);
  EXPECT_LT(device.marks, 1000);
}

TEST(OpenFlight, APauseOfTheProgramIsSoonForgotten) {
  Device device;
  Device::Kernel kernel{1000};
  device.Launch(kernel, 1000);  // 1 ms.
  device.now += 2'000'000'000;
  device.Launch(kernel, 1000);
  device.now += 2'000'000'000;
  // All that is known is that it takes two seconds at most.
  for (int i = 0; i < 6; ++i) device.Launch(kernel, 1000);
  EXPECT_NEAR(kernel.speed->ns_per_item(), 1000, 1);
  EXPECT_LE(device.pauses, 3);
}

TEST(OpenFlight, WithoutABoundThereAreMarksAllTheSame) {
  Device device(UINT64_MAX);
  Device::Kernel kernel{10};
  for (int i = 0; i < 10'000; ++i) device.Launch(kernel, 1000);
  EXPECT_LE(device.pauses, 8);  // The first launches do not know of that.
  EXPECT_GE(device.marks, 10'000 / 128);
  EXPECT_TRUE(device.flight.has_marks());
}

TEST(OpenFlight, WhatWasLaunchedWithoutItCountsAndTeachesNothing) {
  Device device;
  Device::Kernel kernel{10'000};
  for (int i = 0; i < 3; ++i) device.Launch(kernel, 1);
  device.now = device.free_at;
  device.Look();
  const double known = kernel.speed->ns_per_item();
  (void)device.flight.Take();
  device.free_at = device.now + kCap;
  device.flight.Assume(device.free_at, kCap / 2);
  EXPECT_FALSE(device.flight.full());
  // So the rest of the bound is left, and passing the mark frees it.
  int launched = 0;
  for (; !device.flight.full(); ++launched) {
    const bool asked = device.flight.Add(*kernel.speed, 1);
    device.flight.Over(device.flight.given() - 2);
    if (asked && device.flight.Due()) device.flight.Put(device.free_at += 10'000, kernel.speed, 1, kCap);
  }
  EXPECT_NEAR(launched, kCap / 2 / known, 2);
  EXPECT_EQ(device.flight.ResumeAt(), device.now + kCap);
  device.now += kCap;
  device.Look();
  EXPECT_FALSE(device.flight.full());
  EXPECT_NEAR(kernel.speed->ns_per_item(), known, known / 10);
}

TEST(OpenFlight, TakeBeginsAnew) {
  OpenFlight<int> flight;
  const auto kernel = std::make_shared<OpenSpeed>();
  for (int i = 1; i <= 2; ++i) {
    ASSERT_FALSE(flight.full());
    ASSERT_TRUE(flight.Add(*kernel, 1));
    flight.Put(i, kernel, 1, kCap);
  }
  EXPECT_TRUE(flight.full());
  EXPECT_EQ(flight.ResumeAt(), 1);
  EXPECT_EQ(flight.Take(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(flight.full());
  EXPECT_FALSE(flight.has_marks());
}

// Launches like the one before are agreed upon beforehand and added up later: nobody sees a difference.
TEST(OpenFlight, LaunchesAlikeAreCountedAsOthers) {
  OpenFlight<uint64_t> flight;
  const auto one = std::make_shared<OpenSpeed>(), other = std::make_shared<OpenSpeed>();
  one->Set(2);
  other->Set(3);
  double want = 0;
  uint64_t looks = 0, seen = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    // Now and then another kernel, or another size.
    const bool is_other = i % 97 == 0;
    const uint64_t items = i % 31 == 0 ? 5 : 10;
    const auto& kernel = is_other ? other : one;
    const bool look = flight.Add(*kernel, items);
    want += kernel->ns_per_item() * static_cast<double>(items);
    ASSERT_EQ(flight.given(), i + 1);
    ASSERT_NEAR(flight.flying_ns(), want, 1e-3) << i;
    if (!look) continue;
    ++looks;
    flight.Over(seen);
    seen = flight.given() - 1;
    if (!flight.Due()) continue;
    flight.Put(i, kernel, items, kCap);
    flight.Look([](uint64_t) { return true; }, [](uint64_t, uint64_t) { return uint64_t{0}; });
    ASSERT_EQ(flight.flying_ns(), 0);
    want = 0;
  }
  EXPECT_GT(looks, 100u);
}

TEST(OpenFlight, AKernelInThePlaceOfAnotherIsAnother) {
  OpenFlight<uint64_t> flight;
  alignas(OpenSpeed) unsigned char place[sizeof(OpenSpeed)];
  auto* speed = new (place) OpenSpeed();
  speed->Set(1);
  // The first eight have few launches between two looks.
  for (int i = 0; i < 20; ++i) {
    if (flight.Add(*speed, 1000)) {
      flight.Over(flight.given());
      (void)flight.Due();
    }
  }
  const double before = flight.flying_ns();
  speed->~OpenSpeed();
  speed = new (place) OpenSpeed();
  speed->Set(5000);
  (void)flight.Add(*speed, 1000);
  EXPECT_NEAR(flight.flying_ns() - before, 5e6, 1);
  speed->~OpenSpeed();
}

// Who hears of the ends of launches asks the driver for no mark that these did not come to.
TEST(OpenFlight, MarksAreAskedForOnlyWhenTheyCanBePassed) {
  OpenFlight<uint64_t> flight;
  const auto kernel = std::make_shared<OpenSpeed>();
  kernel->Set(1);
  for (int i = 0; i < 50; ++i) (void)flight.Add(*kernel, 1);
  flight.Put(1, kernel, 1, kCap);
  int asked = 0;
  const auto look = [&](bool quickly) {
    flight.Look(
        [&](uint64_t) {
          ++asked;
          return false;
        },
        [](uint64_t, uint64_t) { return uint64_t{0}; }, quickly);
  };
  flight.Over(20);
  look(true);
  EXPECT_EQ(asked, 0);
  look(false);
  EXPECT_EQ(asked, 1);
  look(true);  // Nothing was heard since the last look: perhaps nobody tells.
  EXPECT_EQ(asked, 2);
  flight.Over(50);
  look(true);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace hawser::server
