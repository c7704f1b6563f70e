// SPDX-License-Identifier: Apache-2.0
#include "wire/endpoint.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::wire {
namespace {

TEST(Endpoint, ParsesEveryForm) {
  auto shm = Endpoint::Parse("shm:/run/hawser.sock");
  ASSERT_TRUE(shm.ok());
  EXPECT_EQ(shm->transport, Transport::kShm);
  EXPECT_EQ(shm->path, "/run/hawser.sock");

  auto local = Endpoint::Parse("unix:/tmp/with:colon");
  ASSERT_TRUE(local.ok());
  EXPECT_EQ(local->transport, Transport::kUnix);
  EXPECT_EQ(local->path, "/tmp/with:colon");

  auto tcp = Endpoint::Parse("tcp:gpubox.example:9700");
  ASSERT_TRUE(tcp.ok());
  EXPECT_EQ(tcp->transport, Transport::kTcp);
  EXPECT_EQ(tcp->host, "gpubox.example");
  EXPECT_EQ(tcp->port, 9700u);

  auto v6 = Endpoint::Parse("tcp:[fe80::1%eth0]:0");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "fe80::1%eth0");
  EXPECT_EQ(v6->port, 0u);

  auto vsock = Endpoint::Parse("vsock:2:5000");
  ASSERT_TRUE(vsock.ok());
  EXPECT_EQ(vsock->transport, Transport::kVsock);
  EXPECT_EQ(vsock->cid, 2u);
  EXPECT_EQ(vsock->port, 5000u);
  EXPECT_FALSE(vsock->IsHybridVsock());

  auto any = Endpoint::Parse("vsock::5000");
  ASSERT_TRUE(any.ok());
  EXPECT_EQ(any->cid, UINT32_MAX);

  auto hybrid = Endpoint::Parse("vsock:/run/vm:1.sock:5000");
  ASSERT_TRUE(hybrid.ok());
  EXPECT_TRUE(hybrid->IsHybridVsock());
  EXPECT_EQ(hybrid->path, "/run/vm:1.sock");
  EXPECT_EQ(hybrid->port, 5000u);
}

TEST(Endpoint, PrintsWhatItParsed) {
  for (const char* uri : {"shm:/a", "unix:relative/path", "unix:/tmp/with:colon", "tcp:host:1", "tcp:[::1]:65535",
                          "vsock:2:5000", "vsock::4294967294", "vsock:/run/vm:7"}) {
    auto endpoint = Endpoint::Parse(uri);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status().text();
    EXPECT_EQ(endpoint->ToString(), uri);
  }
}

TEST(Endpoint, RefusesWhatIsWrongAndNamesIt) {
  const struct {
    std::string uri;
    const char* says;
  } cases[] = {
      {"", "empty"},
      {"gpubox", "names no transport"},
      {"gpubox:9700", "unknown transport 'gpubox'"},
      {"http://x", "unknown transport 'http'"},
      {"TCP:a:1", "unknown transport"},
      {"shm:", "path of the socket is missing"},
      {"unix:", "path of the socket is missing"},
      {"unix:" + std::string(108, 'x'), "allows 107"},
      {std::string("unix:/a\0b", 9), "zero byte"},
      {"tcp:", "tcp:host:port"},
      {"tcp:host", "tcp:host:port"},
      {"tcp:host:", "port must be a number"},
      {"tcp:host:65536", "port must be a number"},
      {"tcp:host:-1", "port must be a number"},
      {"tcp:host:+1", "port must be a number"},
      {"tcp:host: 1", "port must be a number"},
      {"tcp:host:0x10", "port must be a number"},
      {"tcp:host:99999999999999999999", "port must be a number"},
      {"tcp::9700", "host is missing"},
      {"tcp:::1:9700", "brackets"},
      {"tcp:[::1:9700", "not closed"},
      {"tcp:[::1]9700", "expected ':port'"},
      {"tcp:[::1]", "expected ':port'"},
      {"tcp:[]:1", "IPv6"},
      {"tcp:[host]:1", "IPv6"},
      {"tcp:a b:1", "character"},
      {"tcp:a/b:1", "character"},
      {"tcp:" + std::string(254, 'h') + ":1", "longer than 253"},
      {"vsock:", "vsock:cid:port"},
      {"vsock:2", "vsock:cid:port"},
      {"vsock:2:", "port must be a number"},
      {"vsock:2:4294967295", "port must be a number"},
      {"vsock:4294967295:1", "CID must be a number"},
      {"vsock:host:1", "CID must be a number"},
      {"vsock:relative/path:1", "CID must be a number"},
      {"vsock:/" + std::string(102, 'x') + ":5000", "allows 107"},
  };
  for (const auto& c : cases) {
    auto endpoint = Endpoint::Parse(c.uri);
    ASSERT_FALSE(endpoint.ok()) << c.uri;
    EXPECT_EQ(endpoint.status().code(), Code::kInvalid) << c.uri;
    EXPECT_NE(endpoint.status().text().find(c.says), std::string::npos) << endpoint.status().text();
  }
}

TEST(Endpoint, TheLongestPathsFit) {
  EXPECT_TRUE(Endpoint::Parse("unix:" + std::string(107, 'x')).ok());
  EXPECT_TRUE(Endpoint::Parse("vsock:/" + std::string(101, 'x') + ":5000").ok());
}

TEST(Endpoint, MessagesAreBoundedAndPrintable) {
  auto endpoint = Endpoint::Parse(std::string(100'000, '\x1b'));
  ASSERT_FALSE(endpoint.ok());
  EXPECT_LT(endpoint.status().text().size(), 600u);
  EXPECT_EQ(endpoint.status().text().find('\x1b'), std::string::npos);
}

TEST(Endpoint, TransportsHaveNames) {
  EXPECT_EQ(TransportName(Transport::kShm), "shm");
  EXPECT_EQ(TransportName(Transport::kUnix), "unix");
  EXPECT_EQ(TransportName(Transport::kTcp), "tcp");
  EXPECT_EQ(TransportName(Transport::kVsock), "vsock");
}

}  // namespace
}  // namespace hawser::wire
