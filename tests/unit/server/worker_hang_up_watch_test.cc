// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "server/worker/hang_up_watch.h"

namespace hawser::server {
namespace {

struct Pair {
  Pair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours.Reset(fds[0]);
    guests.Reset(fds[1]);
  }
  wire::Fd ours, guests;
};

TEST(HangUpWatch, SaysOnceThatTheGuestIsGone) {
  Pair pair;
  std::promise<void> gone;
  std::atomic<int> calls{0};
  auto watch = HangUpWatch::Start(pair.ours.get(), [&] {
    if (calls.fetch_add(1) == 0) gone.set_value();
  });
  ASSERT_TRUE(watch.ok()) << watch.status().text();
  pair.guests.Reset();
  gone.get_future().wait();
  watch->reset();
  EXPECT_EQ(calls.load(), 1);
}

TEST(HangUpWatch, IsNotDisturbedByWhatAGuestSays) {
  Pair pair;
  std::atomic<int> calls{0};
  auto watch = HangUpWatch::Start(pair.ours.get(), [&] { ++calls; });
  ASSERT_TRUE(watch.ok()) << watch.status().text();
  ASSERT_EQ(::write(pair.guests.get(), "noise", 5), 5);
  watch->reset();
  EXPECT_EQ(calls.load(), 0);
}

TEST(HangUpWatch, IsSilentOnceStopped) {
  Pair pair;
  std::atomic<int> calls{0};
  auto watch = HangUpWatch::Start(pair.ours.get(), [&] { ++calls; });
  ASSERT_TRUE(watch.ok()) << watch.status().text();
  watch->reset();
  pair.guests.Reset();
  EXPECT_EQ(calls.load(), 0);
}

}  // namespace
}  // namespace hawser::server
