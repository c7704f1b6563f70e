// SPDX-License-Identifier: Apache-2.0
// What sessions share: the table of tokens, and the questions of workers.
#include "server/export_broker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "server/export_packet.h"
#include "server/worker/export_client.h"

namespace hawser::server {
namespace {

ExportedThing Thing(uint8_t mark) {
  ExportedThing thing;
  thing.handle.fill(std::byte{mark});
  thing.size = 1000u + mark;
  thing.driver = 77;
  return thing;
}

/// Files in memory, sealed, as chunks may be.
std::vector<wire::Fd> SomeFiles(size_t count) {
  std::vector<wire::Fd> files;
  for (size_t i = 0; i < count; ++i) {
    files.emplace_back(::memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::fcntl(files.back().get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  }
  return files;
}

ino_t InodeOf(const wire::Fd& file) {
  struct stat found {};
  EXPECT_EQ(::fstat(file.get(), &found), 0);
  return found.st_ino;
}

ExportRequest Request(ExportAction action, ExportKind kind, const ExportToken& token = {}) {
  ExportRequest request;
  request.action = action;
  request.kind = kind;
  request.token = token;
  return request;
}

class ExportTableTest : public testing::Test {
 protected:
  void SetUp() override {
    table_.Begin(1, "alice");
    table_.Begin(2, "alice");
    table_.Begin(3, "bob");
  }
  ExportToken Publish(uint64_t session, ExportKind kind, uint8_t mark) {
    ExportRequest request = Request(ExportAction::kPublish, kind);
    request.thing = Thing(mark);
    const ExportReply reply = Answer(session, request);
    EXPECT_EQ(reply.verdict, ExportVerdict::kOk);
    return reply.token;
  }
  ExportReply Find(uint64_t session, ExportKind kind, const ExportToken& token) {
    return Answer(session, Request(ExportAction::kFind, kind, token));
  }

  ExportReply Answer(uint64_t session, const ExportRequest& request, std::vector<wire::Fd> files = {}) {
    found_ = {};
    return table_.Answer(session, request, std::move(files), &found_);
  }
  ExportReply PublishFiles(uint64_t session, std::vector<wire::Fd> files, ExportKind kind = ExportKind::kMemory) {
    ExportRequest request = Request(ExportAction::kPublish, kind);
    request.thing.descriptors = static_cast<uint32_t>(files.size());
    return Answer(session, request, std::move(files));
  }

  static constexpr size_t kAllFiles = 3 * kMaxExportedDescriptors;
  ExportTable table_{kAllFiles};
  std::span<const wire::Fd> found_;
};

TEST_F(ExportTableTest, ATokenIsGoodWithinItsTenantOnly) {
  const ExportToken token = Publish(1, ExportKind::kMemory, 5);
  const ExportReply found = Find(2, ExportKind::kMemory, token);
  EXPECT_EQ(found.verdict, ExportVerdict::kOk);
  EXPECT_EQ(found.thing, Thing(5));
  const ExportReply stolen = Find(3, ExportKind::kMemory, token);
  EXPECT_EQ(stolen.verdict, ExportVerdict::kUnknown);
  EXPECT_EQ(stolen.thing, ExportedThing()) << "nothing of it is told";
  EXPECT_EQ(Find(1, ExportKind::kMemory, token).verdict, ExportVerdict::kOwn);
  EXPECT_EQ(Find(2, ExportKind::kEvent, token).verdict, ExportVerdict::kUnknown);
  EXPECT_EQ(Find(4, ExportKind::kMemory, token).verdict, ExportVerdict::kUnknown) << "no such session";
}

TEST_F(ExportTableTest, TokensDifferAndAreNotNothing) {
  const ExportToken one = Publish(1, ExportKind::kMemory, 5), other = Publish(1, ExportKind::kMemory, 5);
  EXPECT_NE(one, other);
  EXPECT_NE(one, ExportToken());
  ExportToken guessed = one;
  guessed[63] ^= std::byte{1};
  EXPECT_EQ(Find(2, ExportKind::kMemory, guessed).verdict, ExportVerdict::kUnknown);
}

TEST_F(ExportTableTest, OnlyWhoPublishedItWithdrawsIt) {
  const ExportToken token = Publish(1, ExportKind::kEvent, 5);
  for (const uint64_t stranger : {2, 3}) {
    const ExportRequest request = Request(ExportAction::kWithdraw, ExportKind::kEvent, token);
    EXPECT_EQ(Answer(stranger, request).verdict, ExportVerdict::kUnknown);
  }
  EXPECT_EQ(Find(2, ExportKind::kEvent, token).verdict, ExportVerdict::kOk);
  (void)Answer(1, Request(ExportAction::kWithdraw, ExportKind::kEvent, token));
  EXPECT_EQ(Find(2, ExportKind::kEvent, token).verdict, ExportVerdict::kUnknown);
  EXPECT_EQ(table_.tokens(), 0u);
}

TEST_F(ExportTableTest, TokensEndWithTheirSession) {
  const ExportToken mine = Publish(1, ExportKind::kMemory, 5), yours = Publish(2, ExportKind::kMemory, 6);
  table_.End(1);
  EXPECT_EQ(Find(2, ExportKind::kMemory, mine).verdict, ExportVerdict::kUnknown);
  EXPECT_EQ(Find(2, ExportKind::kMemory, yours).verdict, ExportVerdict::kOwn);
  EXPECT_EQ(table_.tokens(), 1u);
}

TEST_F(ExportTableTest, ASessionHasOnlySoMany) {
  const ExportToken first = Publish(1, ExportKind::kMemory, 0);
  for (size_t i = 1; i < ExportTable::kMaxTokens; ++i) (void)Publish(1, ExportKind::kMemory, 1);
  EXPECT_EQ(Answer(1, Request(ExportAction::kPublish, ExportKind::kMemory)).verdict, ExportVerdict::kFull);
  (void)Publish(2, ExportKind::kMemory, 1);
  (void)Answer(1, Request(ExportAction::kWithdraw, ExportKind::kMemory, first));
  (void)Publish(1, ExportKind::kMemory, 2);
}

TEST_F(ExportTableTest, DescriptorsGoToWhoMayHaveTheMemoryAndEndWithIt) {
  std::vector<wire::Fd> files = SomeFiles(3);
  const ino_t second = InodeOf(files[1]);
  const ExportReply published = PublishFiles(1, std::move(files));
  ASSERT_EQ(published.verdict, ExportVerdict::kOk);
  EXPECT_EQ(table_.files(), 3u);
  EXPECT_EQ(Find(2, ExportKind::kMemory, published.token).thing.descriptors, 3u);
  ASSERT_EQ(found_.size(), 3u);
  EXPECT_EQ(InodeOf(found_[1]), second);
  for (const uint64_t other : {1, 3, 4}) {
    (void)Find(other, ExportKind::kMemory, published.token);
    EXPECT_TRUE(found_.empty()) << other;
  }
  (void)Answer(1, Request(ExportAction::kWithdraw, ExportKind::kMemory, published.token));
  EXPECT_EQ(table_.files(), 0u);
  (void)PublishFiles(1, SomeFiles(2));
  (void)PublishFiles(2, SomeFiles(5));
  table_.End(1);
  EXPECT_EQ(table_.files(), 5u);
}

TEST_F(ExportTableTest, WhatIsNotWhatItShouldBeIsNotKept) {
  ExportRequest request = Request(ExportAction::kPublish, ExportKind::kMemory);
  request.thing.descriptors = 2;
  for (const size_t came : {0, 1, 3}) EXPECT_EQ(Answer(1, request, SomeFiles(came)).verdict, ExportVerdict::kFull);
  EXPECT_EQ(PublishFiles(1, SomeFiles(1), ExportKind::kEvent).verdict, ExportVerdict::kFull);
  EXPECT_EQ(PublishFiles(1, SomeFiles(kMaxExportedDescriptors + 1)).verdict, ExportVerdict::kFull);
  // With a question that has none.
  EXPECT_EQ(Answer(2, Request(ExportAction::kFind, ExportKind::kMemory), SomeFiles(4)).verdict,
            ExportVerdict::kUnknown);
  EXPECT_EQ(table_.files(), 0u);
  EXPECT_EQ(table_.tokens(), 0u);
}

TEST_F(ExportTableTest, WhoSendsWhatIsNoChunkIsAnsweredNoMore) {
  int ends[2], pipe[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const wire::Fd here(ends[0]), there(ends[1]), writer(pipe[1]);
  ExportRequest request = Request(ExportAction::kPublish, ExportKind::kMemory);
  request.thing.descriptors = 2;
  std::vector<wire::Fd> strange = SomeFiles(1);
  strange.emplace_back(pipe[0]);
  ASSERT_TRUE(SendExportPacket(there.get(), std::as_bytes(std::span(&request, 1)), strange, 0));
  strange.clear();
  EXPECT_EQ(table_.Serve(1, here.get()), ExportTable::Served::kBroken);
  EXPECT_EQ(table_.tokens(), 0u);
  pollfd wait{writer.get(), 0, 0};
  EXPECT_EQ(::poll(&wait, 1, -1), 1) << "it is closed here too, soon";
  EXPECT_NE(wait.revents & POLLERR, 0);
}

TEST_F(ExportTableTest, OnlySoManyDescriptorsAreKept) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(PublishFiles(1, SomeFiles(kMaxExportedDescriptors)).verdict, ExportVerdict::kOk);
  }
  EXPECT_EQ(PublishFiles(2, SomeFiles(kMaxExportedDescriptors - 1)).verdict, ExportVerdict::kOk);
  EXPECT_EQ(PublishFiles(3, SomeFiles(2)).verdict, ExportVerdict::kFull) << "all together";
  EXPECT_EQ(PublishFiles(3, SomeFiles(1)).verdict, ExportVerdict::kOk);
  (void)Publish(3, ExportKind::kMemory, 1);
  table_.End(1);
  EXPECT_EQ(PublishFiles(3, SomeFiles(2)).verdict, ExportVerdict::kOk);
}

TEST_F(ExportTableTest, WhoTakesNoAnswersGetsNoMoreDescriptors) {
  const ExportReply published = PublishFiles(1, SomeFiles(4));
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const wire::Fd here(ends[0]), there(ends[1]);
  const ExportRequest request = Request(ExportAction::kFind, ExportKind::kMemory, published.token);
  const auto ask = [&] { return SendExportPacket(there.get(), std::as_bytes(std::span(&request, 1)), {}, 0); };
  EXPECT_EQ(table_.Serve(2, here.get()), ExportTable::Served::kNone);
  ExportReply reply;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(ask());
    ASSERT_EQ(table_.Serve(2, here.get()), ExportTable::Served::kOne);
    std::vector<wire::Fd> files;
    ASSERT_EQ(ReceiveExportPacket(there.get(), std::as_writable_bytes(std::span(&reply, 1)), &files, 0),
              PacketGot::kPacket);
    EXPECT_EQ(reply.verdict, ExportVerdict::kOk);
    EXPECT_EQ(files.size(), 4u);
  }
  ASSERT_TRUE(ask() && ask());
  EXPECT_EQ(table_.Serve(2, here.get()), ExportTable::Served::kOne);
  EXPECT_EQ(table_.Serve(2, here.get()), ExportTable::Served::kBroken);
}

/// The event loop on a thread of its own, while the test is the workers.
class ExportBrokerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop_.Open().ok()); }
  wire::Fd Begin(uint64_t session, const std::string& tenant) {
    wire::Result<wire::Fd> fd = broker_.Begin(session, tenant);
    EXPECT_TRUE(fd.ok());
    return std::move(*fd);
  }
  void WhileItRuns(const std::function<void()>& work) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const wire::Fd here(ends[0]), there(ends[1]);
    auto watch = loop_.Watch(there.get(), EPOLLIN, [this](uint32_t) { loop_.Stop(); });
    ASSERT_TRUE(watch.ok());
    std::thread worker([&] {
      work();
      (void)!::send(here.get(), "x", 1, 0);
    });
    loop_.Run();
    worker.join();
    loop_.Unwatch(*watch);
  }

  EventLoop loop_;
  ExportBroker broker_{&loop_};
};

TEST_F(ExportBrokerTest, WorkersFindWhatOthersPublish) {
  ExportClient one(Begin(1, "alice")), two(Begin(2, "alice")), stranger(Begin(3, "bob"));
  WhileItRuns([&] {
    const std::optional<ExportToken> token = one.Publish(ExportKind::kMemory, Thing(9));
    ASSERT_TRUE(token.has_value());
    ExportedThing thing;
    std::vector<wire::Fd> files;
    EXPECT_EQ(two.Find(ExportKind::kMemory, *token, &thing, &files), ExportVerdict::kOk);
    EXPECT_EQ(thing, Thing(9));
    thing = {};
    EXPECT_EQ(stranger.Find(ExportKind::kMemory, *token, &thing, &files), ExportVerdict::kUnknown);
    EXPECT_EQ(one.Find(ExportKind::kMemory, *token, &thing, &files), ExportVerdict::kOwn);
    EXPECT_EQ(thing, ExportedThing());
    one.Withdraw(*token);
    EXPECT_EQ(two.Find(ExportKind::kMemory, *token, &thing, &files), ExportVerdict::kUnknown);
  });
  EXPECT_EQ(broker_.table().tokens(), 0u);
}

TEST_F(ExportBrokerTest, DescriptorsTravelWithTheirMemory) {
  ExportClient one(Begin(1, "alice")), two(Begin(2, "alice"));
  WhileItRuns([&] {
    std::vector<wire::Fd> files = SomeFiles(kMaxExportedDescriptors);
    ExportedThing thing = Thing(9);
    thing.descriptors = static_cast<uint32_t>(files.size());
    const std::optional<ExportToken> token = one.Publish(ExportKind::kMemory, thing, files);
    ASSERT_TRUE(token.has_value());
    const ino_t last = InodeOf(files.back());
    files.clear();
    for (int round = 0; round < 3; ++round) {
      std::vector<wire::Fd> found;
      ASSERT_EQ(two.Find(ExportKind::kMemory, *token, &thing, &found), ExportVerdict::kOk);
      ASSERT_EQ(found.size(), kMaxExportedDescriptors);
      EXPECT_EQ(InodeOf(found.back()), last);
      EXPECT_NE(::fcntl(found.back().get(), F_GETFD) & FD_CLOEXEC, 0);
    }
    // An honest worker asks for nothing that would end it.
    std::vector<wire::Fd> strange;
    strange.emplace_back(::open("/", O_RDONLY | O_CLOEXEC));
    EXPECT_FALSE(one.Publish(ExportKind::kMemory, thing, strange).has_value());
    // Fewer than it says: that is no reason to hear no more from it.
    EXPECT_FALSE(one.Publish(ExportKind::kMemory, thing, SomeFiles(1)).has_value());
    EXPECT_TRUE(one.Publish(ExportKind::kMemory, Thing(1)).has_value());
  });
  EXPECT_EQ(broker_.table().files(), kMaxExportedDescriptors);
  broker_.End(1);
  EXPECT_EQ(broker_.table().files(), 0u);
}

TEST_F(ExportBrokerTest, AWorkerThatBreaksTheRulesIsAnsweredNoMoreAndOthersAre) {
  ExportClient good(Begin(1, "alice"));
  const wire::Fd bad = Begin(2, "alice");
  WhileItRuns([&] {
    ASSERT_EQ(::send(bad.get(), "nonsense", 8, 0), 8);
    char byte = 0;
    EXPECT_EQ(::recv(bad.get(), &byte, 1, 0), 0) << "hawserd hangs up";
    EXPECT_TRUE(good.Publish(ExportKind::kEvent, Thing(1)).has_value());
  });
  EXPECT_EQ(broker_.table().tokens(), 1u);
  broker_.End(1);
  broker_.End(2);
  EXPECT_EQ(broker_.table().tokens(), 0u);
  EXPECT_EQ(loop_.watches(), 0u);
}

TEST_F(ExportBrokerTest, AClientOfASessionThatHasEndedKnowsNothing) {
  ExportClient client(Begin(1, "alice"));
  broker_.End(1);
  ExportedThing thing;
  std::vector<wire::Fd> files;
  EXPECT_FALSE(client.Publish(ExportKind::kMemory, Thing(1)).has_value());
  EXPECT_EQ(client.Find(ExportKind::kMemory, {}, &thing, &files), ExportVerdict::kUnknown);
  client.Withdraw({});
}

}  // namespace
}  // namespace hawser::server
