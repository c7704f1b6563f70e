// SPDX-License-Identifier: Apache-2.0
// A whole session in one process: real channels, a backend without a device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "server/worker/guest_session.h"
#include "tests/unit/server/fake_backend.h"
#include "tests/unit/server/test_guest.h"

namespace hawser::server {
namespace {

using opencl::Opcode;
using wire::Fd;
using wire::Id;
using wire::Transport;

constexpr uint8_t kContext = static_cast<uint8_t>(opencl::Handle::kContext);
constexpr uint8_t kQueue = static_cast<uint8_t>(opencl::Handle::kQueue);
constexpr uint8_t kMem = static_cast<uint8_t>(opencl::Handle::kMem);
constexpr uint8_t kEvent = static_cast<uint8_t>(opencl::Handle::kEvent);
constexpr uint8_t kDevice = static_cast<uint8_t>(opencl::Handle::kDevice);

class GuestSessionTest : public ::testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe2(log_, O_CLOEXEC | O_NONBLOCK), 0);
    session_log_ = std::make_unique<SessionLog>(log_[1]);
    backend_.state().wants_heap = true;
    backend_.state().heap_size = 1u << 20;
    settings_.transport = GetParam();
    settings_.session = 77;
  }
  void TearDown() override {
    if (guest_) guest_->Leave();
    if (executor_.joinable()) executor_.join();
    guest_.reset();
    session_.reset();
    ::close(log_[0]);
    ::close(log_[1]);
  }

  void Start() {
    auto [guest_command, server_command] = ConnectedPair(GetParam());
    Fd guest_bulk, server_bulk;
    if (GetParam() != Transport::kShm) std::tie(guest_bulk, server_bulk) = ConnectedPair(GetParam());
    auto session = GuestSession::Start(settings_, std::move(server_command), std::move(server_bulk), &backend_,
                                       session_log_.get());
    ASSERT_TRUE(session.ok()) << session.status().text();
    session_ = std::move(*session);
    executor_ = std::thread([this] {
      end_ = session_->Run();
      session_->Shutdown();
    });
    auto welcome = ReadWelcome(guest_command.get());
    ASSERT_TRUE(welcome.ok()) << welcome.status().text();
    guest_ =
        std::make_unique<TestGuest>(GetParam(), std::move(guest_command), std::move(guest_bulk), std::move(*welcome));
  }
  std::string Log() {
    char text[65536];
    const ssize_t got = ::read(log_[0], text, sizeof(text));
    return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
  }
  Executor::End End() {
    executor_.join();
    return end_;
  }
  static std::vector<std::byte> Data(size_t size) {
    std::vector<std::byte> data(size);
    for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 13 + (i >> 8));
    return data;
  }
  opencl::CreateContext BadContext() {
    opencl::CreateContext message;  // The backend refuses a context without devices.
    message.context = Id(kContext, 1, 5);
    return message;
  }
  opencl::CreateContext GoodContext() {
    opencl::CreateContext message = BadContext();
    message.devices = wire::ArrayView<Id>(&device_, 1);
    return message;
  }

  int log_[2];
  std::unique_ptr<SessionLog> session_log_;
  FakeBackend backend_;
  WorkerSettings settings_;
  std::unique_ptr<GuestSession> session_;
  std::unique_ptr<TestGuest> guest_;
  std::thread executor_;
  Executor::End end_ = Executor::End::kGuestLeft;
  const Id device_{kDevice, 1, 1};
};

TEST_P(GuestSessionTest, Welcomes) {
  settings_.inline_limit = 12345;
  Start();
  const WelcomeText& welcome = guest_->welcome();
  EXPECT_TRUE(welcome.accepted);
  EXPECT_EQ(welcome.session, 77u);
  EXPECT_EQ(welcome.inline_limit, 12345u);
  EXPECT_GT(welcome.bulk_chunk, 0u);
  EXPECT_LE(welcome.bulk_chunk, wire::kMaxBulkChunk);
  EXPECT_EQ(welcome.heap_size, GetParam() == Transport::kShm ? 1u << 20 : 0u);
}

class SharedMemoryTest : public GuestSessionTest {};

TEST_P(SharedMemoryTest, SharesItsHeap) {
  settings_.device_memory = 100'000;
  Start();
  EXPECT_EQ(guest_->welcome().heap_size, 98'304u) << "whole pages within the limit";
  ASSERT_EQ(guest_->welcome().fds.size(), 2u);
  const size_t size = guest_->welcome().heap_size;
  void* mine = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, guest_->welcome().fds[1].get(), 0);
  ASSERT_NE(mine, MAP_FAILED);
  std::memcpy(mine, "hello", 5);
  EXPECT_EQ(std::memcmp(backend_.state().services.heap.base, "hello", 5), 0);
  ::munmap(mine, size);
}

TEST_P(GuestSessionTest, NoHeapWhenTheSettingsSayNo) {
  settings_.share_memory = false;
  Start();
  EXPECT_EQ(guest_->welcome().heap_size, 0u);
}

TEST_P(GuestSessionTest, AnswersACall) {
  Start();
  const uint64_t seq = guest_->Send(Opcode::kGetInventory, opencl::Nothing{});
  const auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.seq, seq);
  EXPECT_EQ(frame->opcode(), Opcode::kGetInventory);
}

TEST_P(GuestSessionTest, RunsCommandsInOrder) {
  Start();
  for (int i = 0; i < 2000; ++i) guest_->Send(Opcode::kCreateContext, GoodContext());
  guest_->Send(Opcode::kGetInventory, opencl::Nothing{});
  ASSERT_TRUE(guest_->Next());
  std::lock_guard lock(backend_.state().mutex);
  ASSERT_EQ(backend_.state().calls.size(), 2001u);
  EXPECT_EQ(backend_.state().calls.back(), "GetInventory");
}

TEST_P(GuestSessionTest, TellsOfAFailedCommand) {
  Start();
  const uint64_t seq = guest_->Send(Opcode::kCreateContext, BadContext());
  const auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.seq, 0u);
  ASSERT_EQ(frame->opcode(), Opcode::kCommandFailed);
  const auto failed = frame->As<opencl::CommandFailed>();
  EXPECT_EQ(failed.seq, seq);
  EXPECT_EQ(failed.status, -30);
  EXPECT_EQ(failed.opcode, static_cast<uint32_t>(Opcode::kCreateContext));
  EXPECT_EQ(failed.object.raw(), Id(kContext, 1, 5).raw());
  EXPECT_EQ(failed.text, "a context without devices");
}

TEST_P(GuestSessionTest, StrictCommandsAreAnsweredGoodOrBad) {
  Start();
  const uint64_t good = guest_->Send(Opcode::kCreateContext, GoodContext(), wire::kWantStatus);
  auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.seq, good);
  EXPECT_EQ(frame->As<opencl::Status>().status, 0);
  const uint64_t bad = guest_->Send(Opcode::kCreateContext, BadContext(), wire::kWantStatus);
  frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.seq, bad);
  EXPECT_EQ(frame->As<opencl::Status>().status, -30);
  // A call that has an answer of its own is answered once.
  guest_->Send(Opcode::kGetInventory, opencl::Nothing{}, wire::kWantStatus);
  const uint64_t next = guest_->Send(Opcode::kGetInventory, opencl::Nothing{});
  ASSERT_TRUE(guest_->Next());
  frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.seq, next);
}

TEST_P(GuestSessionTest, AValueThatIsNotLegalIsRefusedInTheRightPlace) {
  Start();
  opencl::GetSupportedImageFormats formats;
  formats.context = Id(kContext, 1, 1);
  formats.image_type = 1;  // Not among the legal ones.
  const uint64_t seq = guest_->Send(Opcode::kGetSupportedImageFormats, formats);
  const auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.seq, seq) << "whoever waits for the answer gets one";
  const auto reply = frame->As<opencl::ImageFormats>();
  EXPECT_EQ(reply.status, -30);
  EXPECT_TRUE(reply.orders.empty());
}

TEST_P(GuestSessionTest, MovesBulkDataBothWays) {
#if defined(__SANITIZE_THREAD__)
  if (GetParam() == Transport::kShm) {
    GTEST_SKIP() << "guest and worker of this test are one process with two views of the rings; ThreadSanitizer knows "
                    "memory by its address and does not see that what one view publishes the other acquires";
  }
#endif
  Start();
  const auto data = Data(3'000'000);
  opencl::WriteBuffer write;
  write.queue = Id(kQueue, 1, 1);
  write.buffer = Id(kMem, 1, 1);
  write.size = data.size();
  write.transfer = 1;
  write.event = Id(kEvent, 1, 9);
  guest_->Send(Opcode::kEnqueueWriteBuffer, write);
  ASSERT_TRUE(guest_->SendBulk(1, data).ok());
  const auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->opcode(), Opcode::kEventStatus);
  EXPECT_EQ(frame->As<opencl::EventStatus>().status, 0);
  opencl::ReadBuffer read;
  read.queue = write.queue;
  read.buffer = write.buffer;
  read.size = data.size();
  read.transfer = 2;
  guest_->Send(Opcode::kEnqueueReadBuffer, read);
  int32_t status = 0;
  const auto back = guest_->ReceiveBulk(2, &status);
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, data);
}

TEST_P(GuestSessionTest, WaitsForInitialContents) {
  Start();
  const auto data = Data(100'000);
  opencl::CreateBuffer create;
  create.buffer = Id(kMem, 1, 3);
  create.context = Id(kContext, 1, 1);
  create.size = data.size();
  create.transfer = 1;
  guest_->Send(Opcode::kCreateBuffer, create);
  ASSERT_TRUE(guest_->SendBulk(1, data).ok());
  opencl::ReadBuffer read;
  read.queue = Id(kQueue, 1, 1);
  read.buffer = create.buffer;
  read.size = data.size();
  guest_->Send(Opcode::kEnqueueReadBuffer, read);
  const auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  const auto reply = frame->As<opencl::ReadReply>();
  ASSERT_EQ(reply.data.size(), data.size());
  EXPECT_EQ(std::memcmp(reply.data.data(), data.data(), data.size()), 0);
}

TEST_P(GuestSessionTest, AbortsAReadOfNothing) {
  Start();
  opencl::ReadBuffer read;
  read.queue = Id(kQueue, 1, 1);
  read.buffer = Id(kMem, 1, 99);
  read.size = 10;
  read.transfer = 5;
  guest_->Send(Opcode::kEnqueueReadBuffer, read);
  int32_t status = 0;
  EXPECT_FALSE(guest_->ReceiveBulk(5, &status));
  EXPECT_EQ(status, -38);
}

TEST_P(GuestSessionTest, EndsQuietlyWhenTheGuestLeaves) {
  Start();
  guest_->Send(Opcode::kGetInventory, opencl::Nothing{});
  ASSERT_TRUE(guest_->Next());
  guest_->Leave();
  EXPECT_EQ(End(), Executor::End::kGuestLeft);
  EXPECT_EQ(Log(), "");
}

TEST_P(GuestSessionTest, AGuestThatLeavesInTheMiddleOfACommandIsNoError) {
  Start();
  wire::FrameHeader header;
  header.size = 1000;
  header.opcode = static_cast<uint16_t>(Opcode::kGetInventory);
  header.seq = 1;
  ASSERT_TRUE(guest_->command().WriteAll(wire::AsBytes(&header, sizeof(header))).ok());
  guest_->Leave();
  EXPECT_EQ(End(), Executor::End::kGuestLeft);
}

// ---------------------------------------------------------------------------------------------
// What no guest of ours does

class HostileGuestTest : public GuestSessionTest {
 protected:
  /// Sends these bytes; the session must end with a word to the guest and a line in the log.
  void ExpectLoss(wire::Bytes bytes, const std::string& word) {
    ASSERT_TRUE(guest_->command().WriteAll(bytes).ok());
    const auto frames = guest_->DrainToEnd();
    ASSERT_FALSE(frames.empty());
    ASSERT_EQ(frames.back().opcode(), Opcode::kSessionLost);
    EXPECT_NE(frames.back().As<opencl::SessionLost>().reason.find(word), std::string_view::npos)
        << frames.back().As<opencl::SessionLost>().reason;
    EXPECT_EQ(End(), Executor::End::kLost);
    const std::string log = Log();
    EXPECT_NE(log.find("error: "), std::string::npos);
    EXPECT_NE(log.find(word), std::string::npos) << log;
  }
  std::vector<std::byte> Frame(uint16_t opcode, uint64_t seq, size_t size, uint16_t flags = 0, uint8_t fill = 0) {
    wire::FrameHeader header;
    header.size = static_cast<uint32_t>(size);
    header.opcode = opcode;
    header.flags = flags;
    header.seq = seq;
    std::vector<std::byte> frame(sizeof(header) + size, std::byte{fill});
    std::memcpy(frame.data(), &header, sizeof(header));
    return frame;
  }
};

TEST_P(HostileGuestTest, AGapInTheNumbers) {
  Start();
  ExpectLoss(Frame(static_cast<uint16_t>(Opcode::kGetInventory), 2, 0), "was due");
}

TEST_P(HostileGuestTest, AnUnknownCommand) {
  Start();
  ExpectLoss(Frame(0x7777, 1, 0), "malformed");
}

TEST_P(HostileGuestTest, ATruncatedCommand) {
  Start();
  ExpectLoss(Frame(static_cast<uint16_t>(Opcode::kCreateBuffer), 1, 7), "clCreateBuffer");
}

TEST_P(HostileGuestTest, Garbage) {
  Start();
  ExpectLoss(Frame(static_cast<uint16_t>(Opcode::kBuildProgram), 1, 5000, 0, 0xff), "clBuildProgram");
}

TEST_P(HostileGuestTest, UnknownFlags) {
  Start();
  ExpectLoss(Frame(static_cast<uint16_t>(Opcode::kGetInventory), 1, 0, 0x40), "flags");
}

TEST_P(HostileGuestTest, AHugeClaim) {
  Start();
  std::vector<std::byte> frame = Frame(static_cast<uint16_t>(Opcode::kGetInventory), 1, 0);
  const uint32_t claim = UINT32_MAX;
  std::memcpy(frame.data(), &claim, sizeof(claim));
  ExpectLoss(frame, "4294967295");
}

TEST_P(HostileGuestTest, AnIdOfAnotherType) {
  Start();
  opencl::Finish finish;
  finish.queue = Id(kMem, 1, 1);
  std::vector<std::byte> frame = Frame(static_cast<uint16_t>(Opcode::kFinish), 1, finish.SizeOf());
  wire::Writer writer(frame.data() + sizeof(wire::FrameHeader), finish.SizeOf());
  finish.Encode(writer);
  ASSERT_TRUE(guest_->command().WriteAll(frame).ok());
  // Refused or answered with an error, never handed to the backend.
  const auto next = guest_->Next();
  ASSERT_TRUE(next);
  std::lock_guard lock(backend_.state().mutex);
  EXPECT_TRUE(backend_.state().calls.empty());
}

TEST_P(HostileGuestTest, BrokenBulkData) {
  Start();
  opencl::WriteBuffer write;
  write.queue = Id(kQueue, 1, 1);
  write.buffer = Id(kMem, 1, 1);
  write.size = 100;
  write.transfer = 1;
  guest_->Send(Opcode::kEnqueueWriteBuffer, write);
  const wire::BulkHeader header{1, 50, 100, 0, 0};
  ASSERT_TRUE(guest_->bulk().WriteAll(wire::AsBytes(&header, sizeof(header))).ok());
  const auto frames = guest_->DrainToEnd();
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().opcode(), Opcode::kSessionLost);
  EXPECT_EQ(End(), Executor::End::kLost);
  EXPECT_NE(Log().find("bulk stream"), std::string::npos);
}

TEST_P(HostileGuestTest, AGuestThatReadsNothing) {
  Start();
  opencl::Flush flood;
  flood.queue = Id(kQueue, 1, static_cast<uint32_t>(Prank::kFlood));
  guest_->Send(Opcode::kFlush, flood);
  EXPECT_EQ(End(), Executor::End::kLost);
  EXPECT_NE(Log().find("does not read"), std::string::npos);
}

TEST_P(HostileGuestTest, ReuseOfATransferIsAnErrorOfThatCommand) {
  Start();
  opencl::WriteBuffer write;
  write.queue = Id(kQueue, 1, 1);
  write.buffer = Id(kMem, 1, 1);
  write.size = 100;
  write.transfer = 1;
  guest_->Send(Opcode::kEnqueueWriteBuffer, write);
  guest_->Send(Opcode::kEnqueueWriteBuffer, write);
  const auto frame = guest_->Next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->opcode(), Opcode::kCommandFailed);
}

constexpr auto kAll = [](const auto& test) { return std::string(wire::TransportName(test.param)); };
INSTANTIATE_TEST_SUITE_P(Transports, GuestSessionTest,
                         ::testing::Values(Transport::kShm, Transport::kUnix, Transport::kTcp), kAll);
INSTANTIATE_TEST_SUITE_P(Transports, SharedMemoryTest, ::testing::Values(Transport::kShm), kAll);
INSTANTIATE_TEST_SUITE_P(Transports, HostileGuestTest,
                         ::testing::Values(Transport::kShm, Transport::kUnix, Transport::kTcp), kAll);

}  // namespace
}  // namespace hawser::server
