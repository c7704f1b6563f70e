// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/worker/kernel_output.h"

namespace hawser::server {
namespace {

/// Keeps the texts of output notices and the names of other frames, in order.
class RecordingReplies final : public Replies {
 public:
  void Flush() override {}
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }
  size_t largest() const {
    std::lock_guard lock(mutex_);
    return largest_;
  }

 protected:
  void SendEncoded(uint16_t opcode, uint64_t, size_t size, bool, EncodeFunction encode, const void* message) override {
    std::vector<std::byte> bytes(size);
    wire::Writer writer(bytes.data(), bytes.size());
    encode(message, writer);
    std::lock_guard lock(mutex_);
    if (opcode != static_cast<uint16_t>(opencl::Opcode::kKernelOutput)) {
      text_ += "<" + std::string(opencl::OpcodeName(opcode)) + ">";
      return;
    }
    opencl::KernelOutput notice;
    wire::Reader reader(bytes);
    ASSERT_TRUE(notice.Decode(reader));
    text_.append(reinterpret_cast<const char*>(notice.text.data()), notice.text.size());
    largest_ = std::max(largest_, notice.text.size());
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  size_t largest_ = 0;
};

/// Stands in for stdout.
struct StandIn {
  wire::Fd fd{::eventfd(0, EFD_CLOEXEC)};
  void Print(const std::string& text) const {
    size_t at = 0;
    while (at < text.size()) {
      const ssize_t put = ::write(fd.get(), text.data() + at, text.size() - at);
      ASSERT_GT(put, 0);
      at += static_cast<size_t>(put);
    }
  }
};

TEST(KernelOutput, OutputComesBeforeTheCompletionThatFollowsIt) {
  RecordingReplies replies;
  StandIn out;
  KernelOutput output(
      &replies, &OpenClDialect(), [] { return size_t{0}; }, out.fd.get());
  ASSERT_TRUE(output.Enable().ok());
  ASSERT_TRUE(output.Enable().ok());
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    out.Print(line);
    output.Drain();
    replies.Notify(opencl::EventStatus{}, true);
    expected += line + "<EventStatus>";
  }
  EXPECT_EQ(replies.text(), expected);
}

TEST(KernelOutput, CostsNothingAndDoesNothingBeforeItIsEnabled) {
  RecordingReplies replies;
  StandIn out;
  KernelOutput output(
      &replies, &OpenClDialect(), [] { return size_t{0}; }, out.fd.get());
  output.Drain();
  EXPECT_EQ(replies.text(), "");
}

TEST(KernelOutput, ForwardsWhileAKernelStillRuns) {
  RecordingReplies replies;
  StandIn out;
  KernelOutput output(
      &replies, &OpenClDialect(), [] { return size_t{0}; }, out.fd.get());
  ASSERT_TRUE(output.Enable().ok());
  const std::string much(1u << 20, 'k');
  out.Print(much);  // More than a pipe holds: needs the thread.
  output.Drain();
  EXPECT_EQ(replies.text(), much);
  EXPECT_LE(replies.largest(), 65536u);
}

TEST(KernelOutput, AGuestThatDoesNotReadMakesTheKernelWait) {
  RecordingReplies replies;
  StandIn out;
  std::atomic<size_t> backlog{size_t{1} << 30};
  KernelOutput output(
      &replies, &OpenClDialect(), [&] { return backlog.load(); }, out.fd.get());
  ASSERT_TRUE(output.Enable().ok());
  std::atomic<bool> printed{false};
  std::thread kernel([&] {
    out.Print(std::string(1u << 20, 'k'));
    printed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(printed);
  EXPECT_LT(replies.text().size(), size_t{1} << 20);
  backlog = 0;
  kernel.join();
  output.Drain();
  EXPECT_EQ(replies.text().size(), size_t{1} << 20);
}

}  // namespace
}  // namespace hawser::server
