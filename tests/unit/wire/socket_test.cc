// SPDX-License-Identifier: Apache-2.0
// Connecting, listening and descriptors over unix sockets.
#include "wire/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/wire/channel_pair.h"

namespace hawser::wire {
namespace {

using std::chrono::milliseconds;

Endpoint Parse(const std::string& uri) {
  Result<Endpoint> endpoint = Endpoint::Parse(uri);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status().text();
  return *endpoint;
}

std::array<Fd, 2> UnixPair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {Fd(fds[0]), Fd(fds[1])};
}

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(open), end(open)));
}

TEST(Listen, CreatesAPrivateSocketFile) {
  const TempDir dir;
  const std::string path = dir.path() + "/s";
  Result<Fd> listener = Listen(Parse("unix:" + path), 4);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_NE(::fcntl(listener->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(listener->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(Accept(listener->get()).status().code(), Code::kTimeout);
}

TEST(Listen, ReplacesAStaleSocketButNotALiveOneNorAFile) {
  const TempDir dir;
  const std::string path = dir.path() + "/s";
  Result<Fd> first = Listen(Parse("unix:" + path), 4);
  ASSERT_TRUE(first.ok());
  Result<Fd> second = Listen(Parse("unix:" + path), 4);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().text().find("already listens"), std::string::npos) << second.status().text();
  EXPECT_TRUE(Connect(Parse("unix:" + path), SocketUse::kCommand, milliseconds(5000)).ok()) << "the live one works on";
  first->Reset();
  EXPECT_TRUE(Listen(Parse("unix:" + path), 4).ok());

  const std::string file = dir.path() + "/file";
  std::ofstream(file) << "precious";
  EXPECT_EQ(Listen(Parse("unix:" + file), 4).status().code(), Code::kInvalid);
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(Listen, TheHybridVsockFormIsAUnixSocketNamedAfterThePort) {
  const TempDir dir;
  const std::string path = dir.path() + "/vm.sock";
  Result<Fd> listener = Listen(Parse("vsock:" + path + ":5000"), 4);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  EXPECT_TRUE(std::filesystem::is_socket(path + "_5000"));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(Connect(Parse("unix:" + path + "_5000"), SocketUse::kCommand, milliseconds(5000)).ok());
  const Status wrong = Connect(Parse("vsock:" + path + ":5000"), SocketUse::kCommand, milliseconds(5000)).status();
  EXPECT_EQ(wrong.code(), Code::kInvalid);
  EXPECT_NE(wrong.text().find("vsock:2:5000"), std::string::npos) << wrong.text();
}

TEST(Listen, PicksAFreeTcpPortAndNamesIt) {
  Result<Fd> listener = Listen(Parse("tcp:127.0.0.1:0"), 4);
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  Result<Endpoint> bound = BoundEndpoint(Parse("tcp:127.0.0.1:0"), listener->get());
  ASSERT_TRUE(bound.ok());
  EXPECT_NE(bound->port, 0u);
  Result<Fd> client = Connect(*bound, SocketUse::kBulk, milliseconds(5000));
  ASSERT_TRUE(client.ok()) << client.status().text();
  EXPECT_EQ(::fcntl(client->get(), F_GETFL) & O_NONBLOCK, 0) << "a connected stream blocks until a channel takes it";
  EXPECT_NE(::fcntl(client->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Connect, SaysWhoDidNotAnswer) {
  const TempDir dir;
  const Status missing =
      Connect(Parse("unix:" + dir.path() + "/none"), SocketUse::kCommand, milliseconds(500)).status();
  EXPECT_EQ(missing.code(), Code::kSystem);
  EXPECT_NE(missing.text().find("/none"), std::string::npos) << missing.text();

  Result<Fd> listener = Listen(Parse("tcp:127.0.0.1:0"), 1);
  ASSERT_TRUE(listener.ok());
  const Endpoint gone = *BoundEndpoint(Parse("tcp:127.0.0.1:0"), listener->get());
  listener->Reset();
  const Status refused = Connect(gone, SocketUse::kCommand, milliseconds(5000)).status();
  EXPECT_EQ(refused.code(), Code::kSystem);
  EXPECT_NE(refused.text().find("refused"), std::string::npos) << refused.text();
}

TEST(Connect, GivesUpOnAListenerWhoseQueueIsFull) {
  const TempDir dir;
  const Endpoint endpoint = Parse("unix:" + dir.path() + "/s");
  Result<Fd> listener = Listen(endpoint, 0);
  ASSERT_TRUE(listener.ok());
  std::vector<Fd> waiting;
  Status status;
  for (int i = 0; i < 10 && status.ok(); ++i) {
    Result<Fd> fd = Connect(endpoint, SocketUse::kCommand, milliseconds(50));
    status = fd.status();
    if (fd.ok()) waiting.push_back(std::move(*fd));
  }
  EXPECT_EQ(status.code(), Code::kTimeout) << status.text();
}

TEST(Descriptors, TravelWithTheirBytes) {
  const auto [a, b] = UnixPair();
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  const Fd read_end(pipe_fds[0]);
  const Fd write_end(pipe_fds[1]);
  const int sent[] = {write_end.get(), read_end.get()};
  ASSERT_TRUE(SendWithFds(a.get(), AsBytes("hello"), sent).ok());
  std::string text(32, '\0');
  std::vector<Fd> fds;
  Result<size_t> got = ReceiveWithFds(b.get(), std::as_writable_bytes(std::span(text)), &fds, 2);
  ASSERT_TRUE(got.ok()) << got.status().text();
  EXPECT_EQ(text.substr(0, *got), "hello");
  ASSERT_EQ(fds.size(), 2u);
  EXPECT_NE(::fcntl(fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(fds[0].get(), "x", 1), 1);
  char c = 0;
  ASSERT_EQ(::read(read_end.get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
}

TEST(Descriptors, AMessageMayCarryNone) {
  const auto [a, b] = UnixPair();
  ASSERT_TRUE(SendWithFds(a.get(), AsBytes("plain"), {}).ok());
  std::byte buffer[8];
  std::vector<Fd> fds;
  Result<size_t> got = ReceiveWithFds(b.get(), buffer, &fds, 0);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, 5u);
  EXPECT_TRUE(fds.empty());
}

TEST(Descriptors, LimitsHoldOnBothSides) {
  const auto [a, b] = UnixPair();
  const std::vector<int> nine(9, a.get());
  EXPECT_EQ(SendWithFds(a.get(), AsBytes("x"), nine).code(), Code::kInvalid);
  EXPECT_EQ(SendWithFds(a.get(), {}, {}).code(), Code::kInvalid);

  const size_t before = OpenDescriptors();
  const std::vector<int> eight(8, a.get());
  ASSERT_TRUE(SendWithFds(a.get(), AsBytes("x"), eight).ok());
  std::byte buffer[8];
  std::vector<Fd> fds;
  EXPECT_EQ(ReceiveWithFds(b.get(), buffer, &fds, 7).status().code(), Code::kProtocol);
  EXPECT_TRUE(fds.empty());
  EXPECT_EQ(OpenDescriptors(), before) << "descriptors nobody asked for are closed";

  ASSERT_TRUE(SendWithFds(a.get(), AsBytes("x"), eight).ok());
  EXPECT_TRUE(ReceiveWithFds(b.get(), buffer, &fds, 8).ok());
  EXPECT_EQ(fds.size(), 8u);
}

TEST(Descriptors, AFloodIsRefusedWithoutALeak) {
  const auto [a, b] = UnixPair();
  const size_t before = OpenDescriptors();
  // More than any honest peer sends, written with the system call that a hostile one would use.
  constexpr size_t kFlood = 200;
  std::vector<int> flood(kFlood, a.get());
  std::vector<char> control(CMSG_SPACE(kFlood * sizeof(int)));
  char byte = 'x';
  iovec vector{&byte, 1};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(kFlood * sizeof(int));
  std::copy(flood.begin(), flood.end(), reinterpret_cast<int*>(CMSG_DATA(head)));
  ASSERT_EQ(::sendmsg(a.get(), &message, 0), 1);
  std::byte buffer[8];
  std::vector<Fd> fds;
  EXPECT_EQ(ReceiveWithFds(b.get(), buffer, &fds, 8).status().code(), Code::kProtocol);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(Descriptors, ClosedAndSilentPeersAreToldApart) {
  auto [a, b] = UnixPair();
  std::byte buffer[8];
  std::vector<Fd> fds;
  const timeval soon{0, 20'000};
  ASSERT_EQ(::setsockopt(b.get(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
  EXPECT_EQ(ReceiveWithFds(b.get(), buffer, &fds, 1).status().code(), Code::kTimeout);
  a.Reset();
  EXPECT_EQ(ReceiveWithFds(b.get(), buffer, &fds, 1).status().code(), Code::kClosed);
  EXPECT_EQ(SendWithFds(b.get(), AsBytes("x"), {}).code(), Code::kClosed);
}

TEST(Descriptors, ALongMessageCarriesThemOnce) {
  const auto [a, b] = UnixPair();
  ASSERT_EQ(::fcntl(a.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string text(3u << 20, 'l');
  const int fd = a.get();
  Status sent;
  std::thread sender([&] { sent = SendWithFds(a.get(), AsBytes(text), {&fd, 1}); });
  size_t seen = 0;
  std::vector<std::byte> buffer(100'000);
  std::vector<Fd> fds;
  while (seen < text.size()) {
    Result<size_t> got = ReceiveWithFds(b.get(), buffer, &fds, 1);
    if (!got.ok()) break;
    seen += *got;
  }
  sender.join();
  EXPECT_TRUE(sent.ok()) << sent.text();
  EXPECT_EQ(seen, text.size());
  EXPECT_EQ(fds.size(), 1u);
}

TEST(Fd, OwnsExactlyOneDescriptor) {
  const size_t before = OpenDescriptors();
  {
    Fd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Fd b(std::move(a));
    EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move): what a move leaves is the point.
    EXPECT_TRUE(b.valid());
    Fd c;
    c = std::move(b);
    const int raw = c.Release();
    EXPECT_FALSE(c.valid());
    c.Reset(raw);
    Fd& same = c;
    c = std::move(same);
    EXPECT_TRUE(c.valid());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace hawser::wire
