// SPDX-License-Identifier: Apache-2.0
// What a stream waits for that is not the device's affair: functions of the guest, room in the driver's queue, and room
// for what is kept.
#include <gtest/gtest.h>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

TEST(CudaPending, AFunctionOfTheGuestIsNotTheDriversAffair) {
  Session::Options options;
  // A function that the driver runs at once, where it stands: that would be the executor.
  options.adjust = [](DriverTable* driver) {
    driver->cuLaunchHostFunc = [](CUstream, CUhostFn, void*) { return CUDA_ERROR_NOT_SUPPORTED; };
  };
  Session session(options);
  const wire::Id context = session.NewContext();
  const wire::Id one = session.NewStream(context), two = session.NewStream(context);
  const wire::Id add = session.NewFunction(session.NewModule(context), "add");
  cuda::EnqueueHostFunction enqueue;
  enqueue.context = context;
  enqueue.stream = one;
  ASSERT_EQ(session.Do(enqueue), 0);
  // Whatever comes behind it is kept, and what is not behind it has its answer.
  uint64_t memory = session.NewMemory(context, 64);
  struct {
    uint64_t pointer;
    uint32_t count = 4, value = 1;
  } parameters{memory};
  for (int i = 0; i < 3000; ++i) {
    session.Launch(context, one, add, wire::AsBytes(&parameters, sizeof(parameters)));
    ASSERT_TRUE(session.last().deferred);
  }
  cuda::Release release;
  release.object = two;
  EXPECT_EQ(session.Synchronize(context, two), 0);
  EXPECT_EQ(session.Do(release), 0);
  EXPECT_FALSE(session.last().deferred);
  EXPECT_NE(session.NewMemory(context, 64), 0u);
  // A stream whose end waits leaves its place to another one.
  release.object = one;
  (void)session.Do(release);
  EXPECT_TRUE(session.last().deferred);
  cuda::CreateStream create;
  create.stream = wire::Id(one.type(), one.generation() + 1, one.index());
  create.context = context;
  EXPECT_EQ(session.Do(create), 0);
  EXPECT_EQ(session.Synchronize(context, create.stream), 0);
  cuda::HostFunctionDone done;
  done.run = session.AwaitNotice<cuda::RunHostFunction>()->run;
  EXPECT_EQ(session.Do(done), 0);
  EXPECT_EQ(session.Synchronize(context), 0);
}

TEST(CudaPending, AStreamThatIsFarAheadIsHeldAndNoOther) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id one = session.NewStream(context), two = session.NewStream(context);
  const wire::Id module = session.NewModule(context);
  const wire::Id add = session.NewFunction(module, "add");
  uint64_t memory = session.NewMemory(context, 64);
  struct {
    uint64_t pointer;
    uint32_t count = 4, value = 1;
  } parameters{memory};
  ASSERT_EQ(session.Launch(context, one, session.NewFunction(module, "block")), 0);
  int given = 0;
  for (; given < 1024; ++given) {
    session.Launch(context, one, add, wire::AsBytes(&parameters, sizeof(parameters)));
    if (session.last().deferred) break;
  }
  EXPECT_GT(given, 100);
  EXPECT_LT(given, 500) << "half of what a driver's queue takes";
  EXPECT_EQ(session.Synchronize(context, two), 0);
  session.driver.Unblock();
  EXPECT_EQ(session.Synchronize(context, one), 0);
  session.Launch(context, one, add, wire::AsBytes(&parameters, sizeof(parameters)));
  EXPECT_FALSE(session.last().deferred);
}

TEST(CudaPending, WhoSendsWithoutEndIsToldAndAsksForRoom) {
  Session session;
  const wire::Id context = session.NewContext();
  const wire::Id one = session.NewStream(context), two = session.NewStream(context);
  cuda::EnqueueHostFunction enqueue;
  enqueue.context = context;
  enqueue.stream = one;
  ASSERT_EQ(session.Do(enqueue), 0);
  cuda::SynchronizeStream behind;
  behind.context = context;
  behind.stream = one;
  for (size_t i = 0; i < Deferral::kManyFrames; ++i) (void)session.Start(behind);
  EXPECT_EQ(session.AwaitNotice<cuda::Crowded>()->crowded, 1u);
  const size_t told = session.replies.count();
  cuda::AwaitRoom room;
  room.context = context;
  room.stream = two;
  EXPECT_EQ(session.Ask<cuda::Status>(room)->status, 0) << "that one waits for nothing";
  room.stream = one;
  const uint64_t waits = session.Start(room);
  EXPECT_FALSE(session.Answered(waits));
  cuda::HostFunctionDone done;
  done.run = session.AwaitNotice<cuda::RunHostFunction>()->run;
  EXPECT_EQ(session.Do(done), 0);
  EXPECT_EQ(session.Answer<cuda::Status>(waits)->status, 0);
  EXPECT_EQ(session.AwaitNotice<cuda::Crowded>(told)->crowded, 0u);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
