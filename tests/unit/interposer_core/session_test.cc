// SPDX-License-Identifier: Apache-2.0
// Commands, answers, waiting and the end of a session, over each transport.
#include "interposer/core/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::guest {
namespace {

using opencl::Opcode;
using wire::FrameHeader;

opencl::Flush FlushOf(uint64_t raw) {
  opencl::Flush message;
  message.queue = wire::Id(raw);
  return message;
}
opencl::Finish FinishOf(uint64_t raw) {
  opencl::Finish message;
  message.queue = wire::Id(raw);
  return message;
}
opencl::Status StatusOf(int32_t value) {
  opencl::Status status;
  status.status = value;
  return status;
}
uint64_t QueueOf(wire::Bytes payload) {
  wire::Reader reader(payload);
  return reader.Get<uint64_t>();
}

/// Sessions are never destroyed, and may speak to their sinks as long as they live.
template <typename T>
T& Immortal() {
  static auto* all = new std::vector<T*>();
  all->push_back(new T());
  return *all->back();
}

class SessionTest : public testing::TestWithParam<wire::Transport> {};

TEST_P(SessionTest, CallReturnsTheReply) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  EXPECT_EQ(peer->hello.version, opencl::kProtocolVersion);
  EXPECT_EQ(peer->hello.program, "test");
  peer->Serve([&](const FrameHeader& header, wire::Bytes payload) {
    peer->Reply(header, StatusOf(static_cast<int32_t>(QueueOf(payload)) + 1));
  });
  for (int32_t i = 0; i < 100; ++i) {
    opencl::Status status;
    ASSERT_EQ(session->CallInto(Opcode::kFinish, FinishOf(static_cast<uint64_t>(i)), &status), 0);
    ASSERT_EQ(status.status, i + 1);
  }
  EXPECT_EQ(session->stats().commands, 100u);
  EXPECT_EQ(session->stats().waits, 100u);
  EXPECT_EQ(session->stats().bytes_up, 100u * (16 + 8));
  EXPECT_EQ(session->stats().bytes_down, 100u * (16 + 4));
}

TEST_P(SessionTest, CommandsOfManyThreadsAreOneStreamWithoutGaps) {
  constexpr uint64_t kThreads = 8, kEach = 5000;
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([s = session, t] {
      for (uint64_t i = 0; i < kEach; ++i) ASSERT_EQ(s->Send(FlushOf(t << 32 | i)), 0);
    });
  }
  std::vector<uint64_t> next(kThreads, 0);
  for (uint64_t seq = 1; seq <= kThreads * kEach; ++seq) {
    FrameHeader header;
    std::vector<std::byte> payload;
    ASSERT_TRUE(peer->Next(&header, &payload));
    ASSERT_EQ(header.seq, seq);
    ASSERT_EQ(header.flags, 0);
    const uint64_t raw = QueueOf(payload);
    ASSERT_EQ(raw & 0xffffffff, next[raw >> 32]++);
  }
  for (std::thread& thread : threads) thread.join();
}

// Nobody flushes: the last command arrives all the same.
TEST_P(SessionTest, WhatNobodyFlushesArrives) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  for (uint64_t i = 1; i < 20; ++i) {
    ASSERT_EQ(session->Send(FlushOf(i)), 0);
    FrameHeader header;
    std::vector<std::byte> payload;
    ASSERT_TRUE(peer->Next(&header, &payload));
    EXPECT_EQ(QueueOf(payload), i);
    std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
  }
}

TEST_P(SessionTest, LargeCommandsAndAFullChannelKeepTheOrder) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  constexpr uint64_t kCount = 60;
  std::vector<std::byte> source(300'000, std::byte{42});
  std::thread sender([&, s = session] {
    for (uint64_t i = 0; i < kCount; ++i) {
      opencl::CreateProgramWithSource message;
      message.program = wire::Id(i);
      message.source = wire::Bytes(source).first(source.size() - i);
      ASSERT_EQ(s->Send(message), 0);
      ASSERT_EQ(s->Send(FlushOf(i)), 0);
    }
    s->Flush();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // Let the channel fill up.
  for (uint64_t i = 0; i < kCount; ++i) {
    FrameHeader header;
    std::vector<std::byte> payload;
    ASSERT_TRUE(peer->Next(&header, &payload));
    ASSERT_EQ(header.seq, 2 * i + 1);
    ASSERT_EQ(payload.size(), 8 + 8 + 4 + source.size() - i);
    ASSERT_TRUE(peer->Next(&header, &payload));
    ASSERT_EQ(QueueOf(payload), i);
  }
  sender.join();
}

TEST_P(SessionTest, StrictModeReturnsTheStatusOfEachCommand) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect(/*strict=*/true);
  EXPECT_TRUE(session->strict());
  peer->Serve([&](const FrameHeader& header, wire::Bytes payload) {
    if ((header.flags & wire::kWantStatus) == 0) return;
    peer->Reply(header, StatusOf(-static_cast<int32_t>(QueueOf(payload))));
  });
  EXPECT_EQ(session->Send(FlushOf(0)), 0);
  EXPECT_EQ(session->Send(FlushOf(30)), -30);
  EXPECT_EQ(session->Send(FlushOf(36)), -36);
  // Answered on the bulk channel: there is no status to wait for.
  opencl::ReadBuffer read;
  read.transfer = session->NewTransfer();
  EXPECT_EQ(session->Send(read), 0);
}

// The server needs the data before it can tell: the verdict is SendBulk's.
TEST_P(SessionTest, StrictModeWaitsForTheVerdictBehindTheData) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect(/*strict=*/true);
  std::vector<std::byte> got;
  uint64_t transfer = 0;
  peer->Serve([&](const FrameHeader& header, wire::Bytes) {
    got = peer->ReceiveBulk(&transfer);
    peer->Reply(header, StatusOf(-61));
  });
  const std::vector<std::byte> data(100'000, std::byte{7});
  opencl::CreateBuffer message;
  message.size = data.size();
  message.transfer = session->NewTransfer();
  EXPECT_EQ(session->Send(message), 0);
  EXPECT_EQ(session->SendBulk(message.transfer, data), -61);
  peer->Stop();
  EXPECT_EQ(got, data);
  EXPECT_EQ(transfer, message.transfer);
}

TEST_P(SessionTest, AnswersReachManyWaitersInAnyOrder) {
  constexpr int kThreads = 16, kCalls = 300;
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  std::vector<std::pair<FrameHeader, uint64_t>> kept;
  peer->Serve([&](const FrameHeader& header, wire::Bytes payload) {
    const bool company = header.opcode == static_cast<uint16_t>(Opcode::kFlush);
    if (!company) kept.emplace_back(header, QueueOf(payload));
    if (!company && kept.size() < 5) return;
    for (; !kept.empty(); kept.pop_back())
      peer->Reply(kept.back().first, StatusOf(static_cast<int32_t>(kept.back().second)));
  });
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, finished{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t, s = session] {
      for (int i = 0; i < kCalls; ++i) {
        const auto value = static_cast<uint64_t>(t) << 16 | static_cast<uint64_t>(i);
        opencl::Status status;
        if (s->CallInto(Opcode::kFinish, FinishOf(value), &status) != 0 ||
            status.status != static_cast<int32_t>(value)) {
          ++wrong;
        }
      }
      ++finished;
    });
  }
  while (finished.load() < kThreads) {
    // Makes the server answer the last few, which have no company.
    ASSERT_EQ(session->Send(FlushOf(0)), 0);
    session->Flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& thread : threads) thread.join();
  peer->Stop();
  EXPECT_EQ(wrong.load(), 0);
}

// What A sent before it woke B is ahead of what B sends, and no answer is ever missed.
TEST_P(SessionTest, OneThreadSendsAnotherWaitsTenThousandTimes) {
  constexpr uint64_t kRounds = 10'000;
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  uint64_t last = 0;
  peer->Serve([&](const FrameHeader& header, wire::Bytes payload) {
    if (header.opcode == static_cast<uint16_t>(Opcode::kFlush)) {
      last = QueueOf(payload);
    } else {
      peer->Reply(header, StatusOf(last == QueueOf(payload) ? static_cast<int32_t>(last) : -1));
    }
  });
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t sent = 0, answered = 0;
  std::thread waiting([&, s = session] {
    for (uint64_t i = 1; i <= kRounds; ++i) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return sent == i; });
      }
      opencl::Status status;
      EXPECT_EQ(s->CallInto(Opcode::kFinish, FinishOf(i), &status), 0);
      EXPECT_EQ(status.status, static_cast<int32_t>(i));
      std::lock_guard lock(mutex);
      answered = i;
      changed.notify_all();
    }
  });
  for (uint64_t i = 1; i <= kRounds; ++i) {
    ASSERT_EQ(session->Send(FlushOf(i)), 0);
    std::unique_lock lock(mutex);
    sent = i;
    changed.notify_all();
    changed.wait(lock, [&] { return answered == i; });
  }
  waiting.join();
  peer->Stop();
}

// A leader that is parked on the channel sees a condition that another thread fulfils.
TEST_P(SessionTest, WakeReachesAParkedThread) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> flag{false};
    std::vector<std::thread> waiting;
    for (int i = 0; i < 3; ++i) {
      waiting.emplace_back([&, s = session] { EXPECT_EQ(s->WaitUntil([&] { return flag.load(); }), 0); });
    }
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    flag = true;
    session->Wake();
    for (std::thread& thread : waiting) thread.join();
  }
}

struct CountingReply final : ReplySink {
  void OnReply(wire::Bytes) override { ++replies; }
  void OnLost() override { ++lost; }
  std::atomic<int> replies{0}, lost{0};
};
struct CountingNotices final : NoticeSink {
  void OnNotice(uint16_t opcode, wire::Bytes) override {
    last = opcode;
    ++notices;
  }
  void OnLost(const std::string& why) override {
    reason = why;
    ++lost;
  }
  std::atomic<int> notices{0}, lost{0};
  std::atomic<uint16_t> last{0};
  std::string reason;
};

TEST_P(SessionTest, LossReachesEverybodyOnce) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  auto& notices = Immortal<CountingNotices>();
  session->SetNoticeSink(&notices);
  auto& unwaited = Immortal<CountingReply>();
  ASSERT_EQ(session->SendForReply(Opcode::kFinish, FinishOf(1), &unwaited), 0);
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, s = session] {
      opencl::Status status;
      if (s->CallInto(Opcode::kFinish, FinishOf(2), &status) == Session::lost_code()) ++lost;
      // Every sink knows by now.
      EXPECT_EQ(unwaited.lost, 1);
      EXPECT_EQ(notices.lost, 1);
    });
  }
  FrameHeader header;
  std::vector<std::byte> payload;
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(peer->Next(&header, &payload));
  peer->Stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 8);
  EXPECT_TRUE(session->lost());
  EXPECT_EQ(unwaited.replies, 0);
  EXPECT_FALSE(notices.reason.empty());
  // From now on everything says so at once.
  EXPECT_EQ(session->Send(FlushOf(1)), Session::lost_code());
  EXPECT_EQ(session->SendForReply(Opcode::kFinish, FinishOf(1), &unwaited), Session::lost_code());
  EXPECT_EQ(session->WaitUntil([] { return false; }), Session::lost_code());
  EXPECT_EQ(session->WaitBulkUntil([] { return false; }), Session::lost_code());
  EXPECT_EQ(session->SendBulk(1, payload), Session::lost_code());
  session->Flush();
  session->Poll();
  session->Wake();
  EXPECT_EQ(unwaited.lost, 1);
  EXPECT_EQ(notices.lost, 1);
}

// Nobody waits: a listener hears of the loss on a thread of the session.
TEST_P(SessionTest, LossIsToldWithoutAWaiter) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  auto& notices = Immortal<CountingNotices>();
  session->SetNoticeSink(&notices);
  session->AddListener();
  peer->Stop();
  while (notices.lost == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A sender finds out: it returns at once, and the sinks are told elsewhere.
TEST_P(SessionTest, LossFoundBySendingIsTold) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  auto& notices = Immortal<CountingNotices>();
  session->SetNoticeSink(&notices);
  peer->Stop();
  while (session->Send(FlushOf(1)) == 0) session->Flush();
  while (notices.lost == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(notices.lost, 1);
}

TEST_P(SessionTest, TheServersReasonIsKept) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  auto& notices = Immortal<CountingNotices>();
  session->SetNoticeSink(&notices);
  opencl::SessionLost notice;
  notice.reason = "the worker was stopped";
  peer->Notify(notice);
  EXPECT_EQ(session->WaitUntil([] { return false; }), Session::lost_code());
  EXPECT_EQ(notices.reason, "the worker was stopped");
  EXPECT_EQ(notices.notices, 0);
}

TEST_P(SessionTest, NoticesGoToTheSinkAndStrayAnswersNowhere) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  auto& notices = Immortal<CountingNotices>();
  session->SetNoticeSink(&notices);
  peer->Send(static_cast<uint16_t>(Opcode::kFinish), 12345, StatusOf(0));
  opencl::Released released;
  released.object = wire::Id(5);
  peer->Notify(released);
  EXPECT_EQ(session->WaitUntil([&] { return notices.notices.load() == 1; }), 0);
  EXPECT_EQ(notices.last, static_cast<uint16_t>(Opcode::kReleased));
  EXPECT_FALSE(session->lost());
}

TEST_P(SessionTest, AFrameThatCannotBeEndsTheSession) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  const FrameHeader header{wire::kMaxFramePayload + 1, 1, 0, 1};
  ASSERT_TRUE(peer->command->WriteAll(wire::AsBytes(&header, sizeof(header))).ok());
  EXPECT_EQ(session->WaitUntil([] { return false; }), Session::lost_code());
  EXPECT_TRUE(session->lost());
}

TEST_P(SessionTest, AnAnswerThatCannotBeReadEndsTheSession) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  peer->Serve([&](const FrameHeader& header, wire::Bytes) {
    const std::byte two[2] = {};
    peer->SendRaw(header.opcode, header.seq, two);
  });
  opencl::Status status;
  EXPECT_EQ(session->CallInto(Opcode::kFinish, FinishOf(1), &status), Session::lost_code());
  EXPECT_TRUE(session->lost());
}

TEST_P(SessionTest, CallbacksMayCallTheServerAndRunInOrder) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  peer->Serve([&](const FrameHeader& header, wire::Bytes payload) {
    if (header.opcode == static_cast<uint16_t>(Opcode::kFlush)) {
      opencl::EventStatus notice;
      notice.event = wire::Id(QueueOf(payload));
      peer->Notify(notice);
    } else {
      peer->Reply(header, StatusOf(static_cast<int32_t>(QueueOf(payload))));
    }
  });
  /// Notices arrive while nobody waits; each posts a callback that makes a call.
  struct Sink final : NoticeSink {
    void OnNotice(uint16_t, wire::Bytes payload) override {
      wire::Reader reader(payload);
      session->PostCallback([this, value = reader.Get<uint64_t>()] {
        opencl::Status status;
        if (session->CallInto(Opcode::kFinish, FinishOf(value), &status) != 0) ++wrong;
        if (static_cast<uint64_t>(status.status) != value || value != next) ++wrong;
        ++next;
      });
    }
    void OnLost(const std::string&) override {}
    Session* session = nullptr;
    std::atomic<uint64_t> next{0};
    std::atomic<int> wrong{0};
  };
  auto& sink = Immortal<Sink>();
  sink.session = session;
  session->SetNoticeSink(&sink);
  session->AddListener();
  for (uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(session->Send(FlushOf(i)), 0);
    if (i % 50 == 0) {  // This thread waits too, now and then.
      opencl::Status status;
      ASSERT_EQ(session->CallInto(Opcode::kFinish, FinishOf(9), &status), 0);
    }
  }
  while (sink.next < 500) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(sink.wrong, 0);
  session->RemoveListener();
  opencl::Status status;
  EXPECT_EQ(session->CallInto(Opcode::kFinish, FinishOf(9), &status), 0);
  peer->Stop();
}

// A program that sends and never waits: its notices are received all the same, so that the server can let go of them.
TEST_P(SessionTest, NoticesAreDrainedWhileNobodyWaits) {
  FakeServer server(GetParam());
  auto [session, peer] = server.Connect();
  auto& notices = Immortal<CountingNotices>();
  session->SetNoticeSink(&notices);
  peer->Serve([&](const FrameHeader&, wire::Bytes) { peer->Notify(opencl::EventStatus()); });
  for (uint64_t i = 0; notices.notices < 10'000; ++i) ASSERT_EQ(session->Send(FlushOf(i)), 0);
  peer->Stop();
}

std::string Name(const testing::TestParamInfo<wire::Transport>& info) {
  return std::string(wire::TransportName(info.param));
}
INSTANTIATE_TEST_SUITE_P(Transports, SessionTest,
                         testing::Values(wire::Transport::kShm, wire::Transport::kUnix, wire::Transport::kTcp), Name);

}  // namespace
}  // namespace hawser::guest
