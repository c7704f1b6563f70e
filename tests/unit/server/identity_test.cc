// SPDX-License-Identifier: Apache-2.0
// Who a guest is, whether it is let in, and which connections belong together.
#include <gtest/gtest.h>

#include "server/admission.h"
#include "server/pairing.h"
#include "server/tenants.h"

namespace hawser::server {
namespace {

using Kind = PeerIdentity::Kind;

Config TwoTenants() {
  Config config;
  TenantConfig alice;
  alice.name = "alice";
  alice.uids = {1000};
  alice.cids = {42};
  alice.sockets = {"/run/vm.sock_9700"};
  alice.max_sessions = 3;
  TenantConfig bob;
  bob.name = "bob";
  bob.token = "bob's secret token";
  config.tenants = {alice, bob};
  return config;
}

PeerIdentity Peer(Kind kind) {
  PeerIdentity peer;
  peer.kind = kind;
  return peer;
}

std::string Who(const TenantTable& table, const PeerIdentity& peer, std::string_view token = "") {
  const auto tenant = table.Identify(peer, token);
  return tenant.ok() ? tenant.value().name : "refused";
}

TEST(TenantTable, KnowsUsersOfThisMachine) {
  const TenantTable table(TwoTenants());
  PeerIdentity peer = Peer(Kind::kUnix);
  peer.uid = 1000;
  EXPECT_EQ(Who(table, peer), "alice");
  EXPECT_EQ(table.Identify(peer, "").value().max_sessions, 3u);
  peer.uid = 1001;
  EXPECT_EQ(Who(table, peer), "uid-1001") << "the socket's mode let it in";
}

TEST(TenantTable, RefusesUnlistedUsersWhenToldTo) {
  Config config = TwoTenants();
  config.require_tenant = true;
  const TenantTable table(config);
  PeerIdentity peer = Peer(Kind::kUnix);
  peer.uid = 1001;
  EXPECT_EQ(Who(table, peer), "refused");
  EXPECT_EQ(Who(table, peer, "bob's secret token"), "bob");
}

TEST(TenantTable, KnowsVirtualMachines) {
  const TenantTable table(TwoTenants());
  PeerIdentity peer = Peer(Kind::kVsock);
  peer.cid = 42;
  EXPECT_EQ(Who(table, peer), "alice");
  peer.cid = 43;
  EXPECT_EQ(Who(table, peer), "refused");
  peer = Peer(Kind::kHybridVsock);
  peer.socket = "/run/vm.sock_9700";
  EXPECT_EQ(Who(table, peer), "alice");
  peer.socket = "/run/other.sock_9700";
  EXPECT_EQ(Who(table, peer), "vm-/run/other.sock_9700");
}

TEST(TenantTable, WantsTokensFromAfar) {
  const TenantTable table(TwoTenants());
  EXPECT_EQ(Who(table, Peer(Kind::kRemote)), "refused");
  EXPECT_EQ(Who(table, Peer(Kind::kRemote), "bob's secret token"), "bob");
  EXPECT_EQ(Who(table, Peer(Kind::kLoopback)), "loopback");
}

TEST(TenantTable, AWrongTokenIsRefusedWhereNoneWouldDo) {
  const TenantTable table(TwoTenants());
  PeerIdentity peer = Peer(Kind::kUnix);
  peer.uid = 1000;
  for (const char* token : {"x", "bob's secret toke", "bob's secret token ", "bob's secret tokeN"}) {
    EXPECT_EQ(Who(table, peer, token), "refused") << token;
  }
  EXPECT_EQ(table.Identify(peer, "x").status().code(), wire::Code::kRefused);
}

TEST(TenantTable, TokensCanBeRequiredAndTrustCanBeGiven) {
  Config config = TwoTenants();
  config.require_token = true;
  EXPECT_EQ(Who(TenantTable(config), Peer(Kind::kLoopback)), "refused");
  config.require_token = false;
  config.allow_unauthenticated_remote = true;
  EXPECT_EQ(Who(TenantTable(config), Peer(Kind::kRemote)), "unauthenticated");
}

TEST(EqualInConstantTime, ComparesAllOfIt) {
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abd", "abc"));
  EXPECT_FALSE(EqualInConstantTime("ab", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abcabc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("", "abc"));
}

TEST(Admission, CountsSessionsInAllAndOfEachTenant) {
  Admission admission(3);
  const Tenant a{"a", 2, {}}, b{"b", 5, {}};
  EXPECT_TRUE(admission.Enter(a).ok());
  EXPECT_TRUE(admission.Enter(a).ok());
  const wire::Status third = admission.Enter(a);
  EXPECT_EQ(third.code(), wire::Code::kRefused);
  EXPECT_NE(third.text().find("tenant 'a' has its 2"), std::string::npos);
  EXPECT_TRUE(admission.Enter(b).ok());
  EXPECT_NE(admission.Enter(b).text().find("the server has its 3"), std::string::npos);
  admission.Leave("a");
  EXPECT_TRUE(admission.Enter(b).ok());
  EXPECT_EQ(admission.sessions(), 3u);
}

Greeting Half(Greeting::Channel channel, uint8_t nonce, bool shm = false) {
  Greeting greeting;
  greeting.channel = channel;
  greeting.nonce.fill(std::byte{nonce});
  greeting.shm = shm;
  return greeting;
}
constexpr auto kCommand = Greeting::Channel::kCommand;
constexpr auto kBulk = Greeting::Channel::kBulk;

TEST(PairingTable, JoinsTwoHalvesInEitherOrder) {
  PairingTable pairing;
  EXPECT_FALSE(pairing.Add(1, "a", Half(kCommand, 7)).value());
  auto pair = pairing.Add(2, "a", Half(kBulk, 7)).value();
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->command, 1u);
  EXPECT_EQ(pair->bulk, 2u);
  EXPECT_FALSE(pairing.Add(3, "a", Half(kBulk, 8)).value());
  pair = pairing.Add(4, "a", Half(kCommand, 8)).value();
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->command, 4u);
  EXPECT_EQ(pair->bulk, 3u);
  EXPECT_EQ(pairing.waiting(), 0u);
}

TEST(PairingTable, SharedMemoryNeedsOneConnection) {
  PairingTable pairing;
  const auto pair = pairing.Add(1, "a", Half(kCommand, 7, true)).value();
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->bulk, 0u);
}

TEST(PairingTable, NeverJoinsTwoTenants) {
  PairingTable pairing;
  EXPECT_FALSE(pairing.Add(1, "a", Half(kCommand, 7)).value());
  EXPECT_FALSE(pairing.Add(2, "b", Half(kBulk, 7)).value());
  EXPECT_EQ(pairing.waiting(), 2u);
}

TEST(PairingTable, RefusesASecondHalfOfTheSameKind) {
  PairingTable pairing;
  EXPECT_FALSE(pairing.Add(1, "a", Half(kCommand, 7)).value());
  EXPECT_FALSE(pairing.Add(2, "a", Half(kCommand, 7)).ok());
  const auto pair = pairing.Add(3, "a", Half(kBulk, 7)).value();
  ASSERT_TRUE(pair) << "the first one is not harmed";
  EXPECT_EQ(pair->command, 1u);
}

TEST(PairingTable, ForgetsWhoLeft) {
  PairingTable pairing;
  EXPECT_FALSE(pairing.Add(1, "a", Half(kCommand, 7)).value());
  pairing.Remove(1);
  pairing.Remove(1);
  EXPECT_FALSE(pairing.Add(2, "a", Half(kBulk, 7)).value());
  EXPECT_EQ(pairing.waiting(), 1u);
}

}  // namespace
}  // namespace hawser::server
