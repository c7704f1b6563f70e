// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "server/worker/channel_replies.h"
#include "server/worker/executor.h"
#include "tests/unit/server/fake_backend.h"
#include "tests/unit/server/fake_channel.h"
#include "wire/frame.h"

namespace hawser::server {
namespace {

using opencl::Opcode;

class ExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe(log_ends_), 0);
    log_ = std::make_unique<SessionLog>(log_ends_[1]);
    executor_ = std::make_unique<Executor>(&channel_, &backend_, &replies_, log_.get(), wire::SpinPolicy{});
  }
  void TearDown() override {
    for (const int end : log_ends_) ::close(end);
  }
  /// A command that the backend takes without an answer.
  void FeedFlush(uint64_t seq) {
    const opencl::Flush message{wire::Id(static_cast<uint8_t>(opencl::Handle::kQueue), 1, 1)};
    std::vector<std::byte> payload(message.SizeOf());
    wire::Writer writer(payload.data(), payload.size());
    message.Encode(writer);
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(payload.size());
    header.opcode = static_cast<uint16_t>(Opcode::kFlush);
    header.seq = seq;
    channel_.Feed(wire::AsBytes(&header, sizeof(header)));
    channel_.Feed(payload);
  }

  int log_ends_[2] = {-1, -1};
  FakeChannel channel_;
  FakeBackend backend_;
  ChannelReplies replies_{&channel_, ChannelReplies::kDefaultMaxBacklog, [](const wire::Status&) {}};
  std::unique_ptr<SessionLog> log_;
  std::unique_ptr<Executor> executor_;
};

TEST_F(ExecutorTest, DoesWhatWasSentBeforeTheEnd) {
  FeedFlush(1);
  FeedFlush(2);
  channel_.FeedEnd();
  EXPECT_EQ(executor_->Run(), Executor::End::kGuestLeft);
  EXPECT_EQ(backend_.state().calls.size(), 2u);
}

TEST_F(ExecutorTest, DoesNothingForAGuestThatIsDead) {
  FeedFlush(1);
  FeedFlush(2);
  executor_->Abandon();
  EXPECT_EQ(executor_->Run(), Executor::End::kGuestLeft);
  EXPECT_EQ(backend_.state().calls.size(), 0u);
  EXPECT_TRUE(channel_.shut_down()) << "whoever waits on the channel must wake";
}

TEST_F(ExecutorTest, ALostSessionStaysLostWhenItsGuestDies) {
  executor_->Lose("for a test");
  executor_->Abandon();
  EXPECT_EQ(executor_->Run(), Executor::End::kLost);
}

}  // namespace
}  // namespace hawser::server
