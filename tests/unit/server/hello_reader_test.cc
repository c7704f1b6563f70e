// SPDX-License-Identifier: Apache-2.0
#include "server/hello_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/unit/server/test_guest.h"

namespace hawser::server {
namespace {

using wire::Bytes;
using wire::Code;

/// Feeds the frame in pieces of `piece` bytes, as often as the reader wants more.
wire::Status Feed(HelloReader* reader, const std::vector<std::byte>& frame, size_t piece) {
  size_t at = 0;
  while (at < frame.size() && !reader->complete()) {
    const size_t size = std::min({piece, reader->wanted(), frame.size() - at});
    const wire::Status status = reader->Add(Bytes(frame).subspan(at, size));
    if (!status.ok()) return status;
    at += size;
  }
  return {};
}

TEST(HelloReader, ReadsAGreetingInPiecesOfAnySize) {
  HelloOptions options;
  options.channel = 1;
  options.nonce = 9;
  options.token = "secret";
  options.program = "clin\nfo";
  for (const size_t piece : {1u, 3u, 16u, 17u, 4096u}) {
    HelloReader reader;
    ASSERT_TRUE(Feed(&reader, HelloFrame(options), piece).ok());
    ASSERT_TRUE(reader.complete());
    EXPECT_EQ(reader.greeting().channel, Greeting::Channel::kBulk);
    EXPECT_EQ(reader.greeting().nonce[3], std::byte{9});
    EXPECT_EQ(reader.greeting().token, "secret");
    EXPECT_EQ(reader.greeting().program, "clin?fo") << "a name cannot forge lines of the log";
    EXPECT_EQ(reader.greeting().pid, 4242u);
    EXPECT_FALSE(reader.greeting().shm);
  }
}

TEST(HelloReader, NeverAsksForBytesBehindTheGreeting) {
  HelloReader reader;
  const auto frame = HelloFrame({});
  EXPECT_EQ(reader.wanted(), 16u);
  ASSERT_TRUE(reader.Add(Bytes(frame).first(16)).ok());
  EXPECT_EQ(reader.wanted(), frame.size() - 16);
}

TEST(HelloReader, NamesBothVersionsAndBothDescriptions) {
  HelloOptions options;
  options.version = 77;
  options.description = 0xabcdef;
  HelloReader reader;
  const wire::Status status = Feed(&reader, HelloFrame(options), 4096);
  EXPECT_EQ(status.code(), Code::kRefused);
  char ours[32];
  std::snprintf(ours, sizeof(ours), "0x%016llx", static_cast<unsigned long long>(session::kDescriptionHash));
  for (const std::string& part : {std::string("version 77"), std::string("0x0000000000abcdef"), std::string(ours),
                                  "version " + std::to_string(session::kProtocolVersion)}) {
    EXPECT_NE(status.text().find(part), std::string::npos) << part << " in " << status.text();
  }
}

TEST(HelloReader, RefusesAnotherDescriptionOfTheSameVersion) {
  HelloOptions options;
  options.description += 1;
  HelloReader reader;
  EXPECT_EQ(Feed(&reader, HelloFrame(options), 4096).code(), Code::kRefused);
}

TEST(HelloReader, UnderstandsFutureGreetingsFarEnoughToRefuseThem) {
  // Another version may say more or less behind the part that never changes.
  std::vector<std::byte> frame(16 + 16);
  wire::FrameHeader header;
  header.size = 16;
  header.opcode = kHelloOpcode;
  wire::Writer writer(frame.data(), frame.size());
  writer.Put(header);
  writer.Put(kMagic);
  writer.Put(uint32_t{99});
  writer.Put(uint64_t{5});
  HelloReader reader;
  EXPECT_EQ(Feed(&reader, frame, 4096).code(), Code::kRefused);
}

TEST(HelloReader, DropsWhatIsNoGreeting) {
  const auto code_of = [](std::vector<std::byte> frame) {
    HelloReader reader;
    return Feed(&reader, frame, 4096).code();
  };
  std::vector<std::byte> http(64);
  std::memcpy(http.data(), "GET / HTTP/1.1\r\nHost: example\r\n\r\n", 34);
  EXPECT_EQ(code_of(http), Code::kProtocol);
  HelloOptions options;
  options.magic = 1;
  EXPECT_EQ(code_of(HelloFrame(options)), Code::kProtocol);
  auto frame = HelloFrame({});
  const uint32_t huge = 1u << 30;
  std::memcpy(frame.data(), &huge, sizeof(huge));
  EXPECT_EQ(code_of(frame), Code::kProtocol) << "a claim above 4 KiB is not even read";
  frame = HelloFrame({});
  const uint32_t longer = static_cast<uint32_t>(frame.size() - 16 + 1);
  std::memcpy(frame.data(), &longer, sizeof(longer));
  frame.push_back(std::byte{0});
  EXPECT_EQ(code_of(frame), Code::kProtocol) << "bytes left over";
  options = {};
  options.channel = 2;
  EXPECT_EQ(code_of(HelloFrame(options)), Code::kProtocol);
  options = {};
  options.transport = wire::Transport::kShm;
  options.channel = 1;
  EXPECT_EQ(code_of(HelloFrame(options)), Code::kProtocol);
}

}  // namespace
}  // namespace hawser::server
