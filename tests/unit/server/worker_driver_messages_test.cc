// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "server/worker/driver_messages.h"

namespace hawser::server {
namespace {

constexpr char kLine[] = "k.cu:7: void check(int): block: [1,0,0], thread: [31,2,0] Assertion `x > 0` failed.";

/// A descriptor in stderr's place, whose log is a file.
class Stand {
 public:
  int fd() const { return fd_.get(); }
  void Write(const std::string& text) const {
    ASSERT_EQ(::write(fd_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string Log() const {
    std::string text(1 << 20, '\0');
    const ssize_t got = ::pread(::fileno(file_), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }
  ~Stand() { (void)std::fclose(file_); }

 private:
  std::FILE* const file_ = std::tmpfile();
  wire::Fd fd_{::fcntl(::fileno(file_), F_DUPFD_CLOEXEC, 3)};
};

TEST(DriverMessages, KnowsAssertions) {
  EXPECT_TRUE(DriverMessages::IsAssertion(kLine));
  EXPECT_TRUE(DriverMessages::IsAssertion("a:1: f: block: [0,0,0], thread: [0,0,0] Assertion `` failed."));
  for (const char* other : {"", "hawser: software device: trap in kernel f, block (0,0,0)", "Assertion `x` failed.",
                            "a: block: [0,0,0], thread: [0,0,0] Assertion `x` failed",
                            "a: thread: [0,0,0], block: [0,0,0] Assertion `x` failed."}) {
    EXPECT_FALSE(DriverMessages::IsAssertion(other)) << other;
  }
}

TEST(DriverMessages, LeavesStderrAloneUntilEnabled) {
  const Stand stand;
  DriverMessages messages(stand.fd());
  stand.Write(std::string(kLine) + "\n");
  EXPECT_EQ(messages.Take(), "");
  EXPECT_EQ(stand.Log(), std::string(kLine) + "\n");
}

TEST(DriverMessages, KeepsAssertionsAndLogsAll) {
  const Stand stand;
  const std::string all = "first\n" + std::string(kLine) + "\nlast";
  {
    DriverMessages messages(stand.fd());
    ASSERT_TRUE(messages.Enable().ok());
    ASSERT_TRUE(messages.Enable().ok());
    stand.Write("first\n");
    stand.Write(std::string(kLine).substr(0, 20));
    EXPECT_EQ(messages.Take(), "");
    stand.Write(std::string(kLine).substr(20) + "\nlast");
    EXPECT_EQ(messages.Take(), std::string(kLine) + "\n");
    EXPECT_EQ(messages.Take(), "");
    EXPECT_EQ(stand.Log(), all) << "what was taken is in the log";
  }
  stand.Write("\nafter");
  EXPECT_EQ(stand.Log(), all + "\nafter");
}

TEST(DriverMessages, IsBounded) {
  const Stand stand;
  DriverMessages messages(stand.fd());
  ASSERT_TRUE(messages.Enable().ok());
  const std::string line = std::string(kLine) + "\n";
  size_t given = 0;
  for (int i = 0; i < 1000; ++i) {
    stand.Write(line);
    given += messages.Take().size();
  }
  EXPECT_LE(given, DriverMessages::kMostBytes);
  EXPECT_GT(given, DriverMessages::kMostBytes - line.size() - 1);
  stand.Write(std::string(10000, 'x') + line);
  EXPECT_EQ(messages.Take(), "");
  EXPECT_EQ(stand.Log().size(), 1001 * line.size() + 10000);
}

TEST(DriverMessages, RescuesWhatIsInThePipe) {
  const Stand stand;
  DriverMessages messages(stand.fd());
  ASSERT_TRUE(messages.Enable().ok());
  stand.Write("before\n");
  DriverMessages::Rescue();
  stand.Write("after\n");
  (void)messages.Take();  // Whoever of the two has read it has written it.
  EXPECT_NE(stand.Log().find("before\n"), std::string::npos);
  EXPECT_NE(stand.Log().find("after\n"), std::string::npos);
}

}  // namespace
}  // namespace hawser::server
