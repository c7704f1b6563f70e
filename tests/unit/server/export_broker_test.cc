// SPDX-License-Identifier: Apache-2.0
// What sessions share: the table of tokens, and the questions of workers.
#include "server/export_broker.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

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
    const ExportReply reply = table_.Answer(session, request);
    EXPECT_EQ(reply.verdict, ExportVerdict::kOk);
    return reply.token;
  }
  ExportReply Find(uint64_t session, ExportKind kind, const ExportToken& token) {
    return table_.Answer(session, Request(ExportAction::kFind, kind, token));
  }

  ExportTable table_;
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
    EXPECT_EQ(table_.Answer(stranger, request).verdict, ExportVerdict::kUnknown);
  }
  EXPECT_EQ(Find(2, ExportKind::kEvent, token).verdict, ExportVerdict::kOk);
  (void)table_.Answer(1, Request(ExportAction::kWithdraw, ExportKind::kEvent, token));
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
  EXPECT_EQ(table_.Answer(1, Request(ExportAction::kPublish, ExportKind::kMemory)).verdict, ExportVerdict::kFull);
  (void)Publish(2, ExportKind::kMemory, 1);
  (void)table_.Answer(1, Request(ExportAction::kWithdraw, ExportKind::kMemory, first));
  (void)Publish(1, ExportKind::kMemory, 2);
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
    EXPECT_EQ(two.Find(ExportKind::kMemory, *token, &thing), ExportVerdict::kOk);
    EXPECT_EQ(thing, Thing(9));
    thing = {};
    EXPECT_EQ(stranger.Find(ExportKind::kMemory, *token, &thing), ExportVerdict::kUnknown);
    EXPECT_EQ(one.Find(ExportKind::kMemory, *token, &thing), ExportVerdict::kOwn);
    EXPECT_EQ(thing, ExportedThing());
    one.Withdraw(*token);
    EXPECT_EQ(two.Find(ExportKind::kMemory, *token, &thing), ExportVerdict::kUnknown);
  });
  EXPECT_EQ(broker_.table().tokens(), 0u);
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
  EXPECT_FALSE(client.Publish(ExportKind::kMemory, Thing(1)).has_value());
  EXPECT_EQ(client.Find(ExportKind::kMemory, {}, &thing), ExportVerdict::kUnknown);
  client.Withdraw({});
}

}  // namespace
}  // namespace hawser::server
