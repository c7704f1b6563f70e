// SPDX-License-Identifier: Apache-2.0
#include "wire/short_slice.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <thread>

namespace hawser::wire {
namespace {

// As in sched_getattr(2): the first version of the structure.
struct Attributes {
  uint32_t size = 0, policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

Attributes Mine() {
  Attributes attributes;
  EXPECT_EQ(::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0), 0);
  return attributes;
}

// In threads of their own: it cannot be taken back.
template <typename F>
void InThread(F body) {
  std::thread(body).join();
}

TEST(ShortSliceTest, TheThreadHasShorterSlicesAndNothingElse) {
  InThread([] {
    const Attributes before = Mine();
    ASSERT_TRUE(TakeShortSlices());
    const Attributes after = Mine();
    EXPECT_EQ(after.policy, static_cast<uint32_t>(SCHED_OTHER));
    EXPECT_EQ(after.nice, before.nice);
    // Before Linux 6.12 there are no slices of one's own, and this is 0.
    if (before.runtime_ns == 0) {
      EXPECT_EQ(after.runtime_ns, 0u);
      std::puts(
          "skipped here: this kernel has no slices of a thread's own, only that nothing else changes was looked at");
    } else {
      EXPECT_LT(after.runtime_ns, before.runtime_ns);
      EXPECT_GE(after.runtime_ns, 100'000u);
    }
  });
}

TEST(ShortSliceTest, ItsOwnThreadsHaveTheUsualOnes) {
  InThread([] {
    const uint64_t usual = Mine().runtime_ns;
    ASSERT_TRUE(TakeShortSlices());
    InThread([usual] { EXPECT_EQ(Mine().runtime_ns, usual); });
  });
}

TEST(ShortSliceTest, WhoIsNiceStaysSo) {
  InThread([] {
    ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 5), 0);
    ASSERT_TRUE(TakeShortSlices());
    EXPECT_EQ(Mine().nice, 5);
  });
}

TEST(ShortSliceTest, AnotherClassStaysAsItIs) {
  InThread([] {
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
    EXPECT_FALSE(TakeShortSlices());
    EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  });
}

TEST(ExactTimersTest, TheThreadHasThem) {
  InThread([] {
    const int usual = ::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    ASSERT_GT(usual, 1000) << "nanoseconds";
    ASSERT_TRUE(TakeExactTimers());
    EXPECT_EQ(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1);
  });
  EXPECT_GT(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1000) << "of the thread that started it";
}

TEST(BatchClassTest, TheThreadAndThoseItStartsHaveIt) {
  InThread([] {
    const Attributes before = Mine();
    ASSERT_TRUE(TakeBatchClass());
    EXPECT_EQ(Mine().policy, static_cast<uint32_t>(SCHED_BATCH));
    EXPECT_EQ(Mine().nice, before.nice);
    const uint64_t slice = Mine().runtime_ns;
    // 0: a kernel without slices of a thread's own.
    if (before.runtime_ns != 0) {
      EXPECT_GT(slice, 10 * before.runtime_ns);
    }
    EXPECT_FALSE(TakeBatchClass());  // There is nothing to change.
    InThread([slice] {
      EXPECT_EQ(Mine().policy, static_cast<uint32_t>(SCHED_BATCH));
      EXPECT_EQ(Mine().runtime_ns, slice);
    });
    LeaveBatchClass();
    EXPECT_EQ(Mine().policy, static_cast<uint32_t>(SCHED_OTHER));
    EXPECT_EQ(Mine().nice, before.nice);
    EXPECT_EQ(Mine().runtime_ns, before.runtime_ns);
  });
}

TEST(BatchClassTest, AnotherClassStaysAsItIs) {
  InThread([] {
    const sched_param none{};
    ASSERT_EQ(::sched_setscheduler(0, SCHED_IDLE, &none), 0);
    EXPECT_FALSE(TakeBatchClass());
    LeaveBatchClass();
    EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
  });
}

}  // namespace
}  // namespace hawser::wire
