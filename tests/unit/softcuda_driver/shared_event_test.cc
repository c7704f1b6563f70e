// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/shared_event.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace hawser::soft {
namespace {

bool Never() { return false; }

/// A child that runs `body` with the event opened and leaves when told: 0 when body returned true.
class Child {
 public:
  Child(const SharedHandle& handle, const std::function<bool(SharedEvent&, int in, int out)>& body) {
    int there[2], back[2];
    EXPECT_EQ(::pipe(there), 0);
    EXPECT_EQ(::pipe(back), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      std::shared_ptr<SharedEvent> event;
      const bool opened = SharedEvent::Open(handle, &event) == CUDA_SUCCESS;
      ::_exit(opened && body(*event, there[0], back[1]) ? 0 : 1);
    }
    ::close(there[0]);
    ::close(back[1]);
    in_ = back[0];
    out_ = there[1];
  }
  ~Child() {
    if (pid_ > 0) Kill();
    ::close(in_);
    ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Say() const { (void)!::write(out_, "x", 1); }
  bool Hear() const {
    char word = 0;
    return ::read(in_, &word, 1) == 1;
  }
  void Kill() {
    ::kill(pid_, SIGKILL);
    (void)Wait();
  }
  int Wait() {
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
};

bool HearOn(int fd) {
  char word = 0;
  return ::read(fd, &word, 1) == 1;
}
void SayOn(int fd) { (void)!::write(fd, "x", 1); }

TEST(SharedEventTest, RecordsAreOverInAnyOrder) {
  const auto event = SharedEvent::Create();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->last(), 0u);
  const uint64_t one = event->Begin(), two = event->Begin(), three = event->Begin();
  EXPECT_EQ(event->last(), three);
  event->End(three);
  EXPECT_TRUE(event->Over(three));
  EXPECT_FALSE(event->Over(one));
  EXPECT_FALSE(event->Over(two));
  event->End(one);
  EXPECT_TRUE(event->Over(one));
  EXPECT_FALSE(event->Over(two));
  event->Await(one, Never);
}

TEST(SharedEventTest, WhoWaitsIsWokenAndMayGiveUp) {
  const auto event = SharedEvent::Create();
  ASSERT_NE(event, nullptr);
  const uint64_t record = event->Begin();
  std::thread waiter([&] { event->Await(record, Never); });
  event->End(record);
  waiter.join();
  const uint64_t never = event->Begin();
  std::atomic<bool> enough{false};
  std::thread impatient([&] { event->Await(never, [&] { return enough.load(); }); });
  enough = true;
  impatient.join();
  EXPECT_FALSE(event->Over(never));
}

TEST(SharedEventTest, TwoProcessesRecordAndWait) {
  const auto event = SharedEvent::Create();
  ASSERT_NE(event, nullptr);
  SharedHandle handle;
  ASSERT_EQ(event->Describe(0, &handle), CUDA_SUCCESS);
  constexpr int kRounds = 200;
  Child child(handle, [](SharedEvent& theirs, int in, int out) {
    for (int i = 0; i < kRounds; ++i) {
      if (!HearOn(in)) return false;
      theirs.Await(theirs.last(), Never);
      if (!theirs.Over(theirs.last())) return false;
      const uint64_t record = theirs.Begin();
      SayOn(out);
      theirs.End(record);
    }
    SharedHandle again;
    return theirs.Describe(0, &again) == CUDA_ERROR_INVALID_HANDLE;  // It is not theirs to give out.
  });
  for (int i = 0; i < kRounds; ++i) {
    const uint64_t record = event->Begin();
    child.Say();
    event->End(record);
    ASSERT_TRUE(child.Hear());
    EXPECT_GT(event->last(), record);
    event->Await(event->last(), Never);
  }
  EXPECT_EQ(child.Wait(), 0);
}

TEST(SharedEventTest, TheRecordsOfADeadProcessAreOver) {
  const auto event = SharedEvent::Create();
  ASSERT_NE(event, nullptr);
  SharedHandle handle;
  ASSERT_EQ(event->Describe(0, &handle), CUDA_SUCCESS);
  Child child(handle, [](SharedEvent& theirs, int in, int out) {
    (void)theirs.Begin();
    SayOn(out);
    return HearOn(in);
  });
  ASSERT_TRUE(child.Hear());
  const uint64_t record = event->last();
  EXPECT_FALSE(event->Over(record));
  std::thread waiter([&] { event->Await(record, Never); });
  child.Kill();
  waiter.join();
  EXPECT_TRUE(event->Over(record));
}

TEST(SharedEventTest, HandlesThatAreNoneAreRefused) {
  const auto event = SharedEvent::Create();
  ASSERT_NE(event, nullptr);
  SharedHandle good;
  ASSERT_EQ(event->Describe(0, &good), CUDA_SUCCESS);
  std::shared_ptr<SharedEvent> opened;
  EXPECT_EQ(SharedEvent::Open(good, &opened), CUDA_ERROR_INVALID_CONTEXT) << "this process's own";
  const auto refused = [&](const std::function<void(SharedHandle*)>& spoil) {
    SharedHandle bad = good;
    bad.process = ::getppid();  // Somebody else.
    spoil(&bad);
    return SharedEvent::Open(bad, &opened) == CUDA_ERROR_INVALID_HANDLE;
  };
  EXPECT_TRUE(refused([](SharedHandle*) {})) << "that process has no such file";
  EXPECT_TRUE(refused([](SharedHandle* bad) { bad->magic = 0; }));
  EXPECT_TRUE(refused([](SharedHandle* bad) { bad->process = -1; }));
  EXPECT_TRUE(refused([](SharedHandle* bad) { bad->descriptor = -1; }));
  EXPECT_TRUE(refused([](SharedHandle* bad) { bad->kind = SharedHandle::Kind::kMemory; }));
  EXPECT_TRUE(refused([](SharedHandle* bad) { std::memset(static_cast<void*>(bad), 0x5a, sizeof(*bad)); }));
}

TEST(SharedEventTest, AProcessThatOthersCannotLookIntoSharesNothing) {
  const auto event = SharedEvent::Create();
  ASSERT_NE(event, nullptr);
  SharedHandle handle;
  ASSERT_TRUE(SharedFile::Possible());
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);  // As after a change of the user.
  EXPECT_FALSE(SharedFile::Possible());
  EXPECT_EQ(event->Describe(0, &handle), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
  EXPECT_EQ(event->Describe(0, &handle), CUDA_SUCCESS);
  ASSERT_EQ(::setenv("HAWSER_SOFT_SHARES", "off", 1), 0);  // As in a confined process.
  EXPECT_EQ(event->Describe(0, &handle), CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(::unsetenv("HAWSER_SOFT_SHARES"), 0);
  EXPECT_EQ(event->Describe(0, &handle), CUDA_SUCCESS);
}

}  // namespace
}  // namespace hawser::soft
