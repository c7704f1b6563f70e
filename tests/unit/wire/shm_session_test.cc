// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "wire/futex.h"
#include "wire/shm.h"
#include "wire/shm_layout.h"

namespace hawser::wire {
namespace {

using Side = ShmSession::Side;

ShmLayout SmallLayout() { return {4096, 8192, 16384, 32768}; }

/// A memfd that holds `header` and claims nothing else.
Fd Forge(uint64_t magic, const ShmLayout& layout, size_t size, unsigned seals) {
  Fd fd(::memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::pwrite(fd.get(), &magic, sizeof(magic), 0), ssize_t{sizeof(magic)});
  EXPECT_EQ(::pwrite(fd.get(), &layout, sizeof(layout), sizeof(magic)), ssize_t{sizeof(layout)});
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(ShmSession, TheMemoryIsSealedInSize) {
  auto session = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(session.ok()) << session.status().text();
  const int fd = (*session)->memfd();
  EXPECT_NE(::ftruncate(fd, 4096), 0);
  EXPECT_NE(::ftruncate(fd, 1 << 24), 0);
  EXPECT_NE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0) << "nobody may add seals";
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(ShmSession, FourRingsDoNotTouchEachOther) {
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  auto guest = ShmSession::Open(Fd(::dup((*server)->memfd())));
  ASSERT_TRUE(guest.ok()) << guest.status().text();
  auto guest_command = (*guest)->CommandChannel(Side::kGuest, -1);
  auto guest_bulk = (*guest)->BulkChannel(Side::kGuest, -1);
  auto server_command = (*server)->CommandChannel(Side::kServer, -1);
  auto server_bulk = (*server)->BulkChannel(Side::kServer, -1);
  struct Way {
    Channel* from;
    Channel* to;
    size_t capacity;
    char fill;
  };
  const Way ways[] = {{guest_command.get(), server_command.get(), 4096, 'a'},
                      {server_command.get(), guest_command.get(), 8192, 'b'},
                      {guest_bulk.get(), server_bulk.get(), 16384, 'c'},
                      {server_bulk.get(), guest_bulk.get(), 32768, 'd'}};
  for (const Way& way : ways) {
    Result<size_t> taken = way.from->TryWrite(AsBytes(std::string(100'000, way.fill)));
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(*taken, way.capacity);
  }
  for (const Way& way : ways) {
    std::string seen(way.capacity, '\0');
    ASSERT_TRUE(way.to->ReadAll(std::as_writable_bytes(std::span(seen))).ok());
    EXPECT_EQ(seen, std::string(way.capacity, way.fill));
  }
}

TEST(ShmSession, ChannelsOutliveTheSessionObject) {
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  auto guest = ShmSession::Open(Fd(::dup((*server)->memfd())));
  ASSERT_TRUE(guest.ok());
  auto from = (*guest)->CommandChannel(Side::kGuest, -1);
  auto to = (*server)->CommandChannel(Side::kServer, -1);
  server->reset();
  guest->reset();
  ASSERT_TRUE(from->WriteAll(AsBytes("still here")).ok());
  std::string seen(10, '\0');
  ASSERT_TRUE(to->ReadAll(std::as_writable_bytes(std::span(seen))).ok());
  EXPECT_EQ(seen, "still here");
}

TEST(ShmSession, EndingOneChannelLeavesTheOther) {
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  auto guest = ShmSession::Open(Fd(::dup((*server)->memfd())));
  ASSERT_TRUE(guest.ok());
  auto command = (*guest)->CommandChannel(Side::kGuest, -1);
  auto bulk = (*guest)->BulkChannel(Side::kGuest, -1);
  auto server_bulk = (*server)->BulkChannel(Side::kServer, -1);
  command->Shutdown();
  EXPECT_EQ(command->TryWrite(AsBytes("x")).status().code(), Code::kClosed);
  ASSERT_TRUE(bulk->WriteAll(AsBytes("x")).ok());
  std::byte one[1];
  EXPECT_TRUE(server_bulk->ReadAll(one).ok());
}

TEST(ShmSession, RefusesRingsThatCannotBe) {
  for (const uint32_t size : {0u, 1u, 2048u, 4097u, 6144u, 0x80000000u, 0xffffffffu}) {
    ShmLayout layout = SmallLayout();
    layout.bulk_up = size;
    EXPECT_EQ(ShmSession::Create(layout).status().code(), Code::kInvalid) << size;
    EXPECT_FALSE(ShmSession::Open(Forge(kShmMagic, layout, 1 << 20, F_SEAL_SHRINK)).ok()) << size;
  }
}

TEST(ShmSession, AGuestRefusesMemoryThatIsNotWhatItSays) {
  const ShmLayout layout = SmallLayout();
  const size_t size = ShmSize(layout);
  EXPECT_TRUE(ShmSession::Open(Forge(kShmMagic, layout, size, F_SEAL_SHRINK)).ok());
  EXPECT_EQ(ShmSession::Open(Forge(kShmMagic, layout, size, 0)).status().code(), Code::kProtocol);
  EXPECT_EQ(ShmSession::Open(Forge(kShmMagic + 1, layout, size, F_SEAL_SHRINK)).status().code(), Code::kProtocol);
  EXPECT_EQ(ShmSession::Open(Forge(kShmMagic, layout, size - 1, F_SEAL_SHRINK)).status().code(), Code::kProtocol);
  EXPECT_EQ(ShmSession::Open(Forge(kShmMagic, layout, size + 4096, F_SEAL_SHRINK)).status().code(), Code::kProtocol);
  EXPECT_FALSE(ShmSession::Open(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC))).ok());
  EXPECT_FALSE(ShmSession::Open(Fd()).ok());
}

TEST(ShmSession, APeerThatScribblesIsAProtocolErrorOnBothWays) {
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  auto channel = (*server)->CommandChannel(Side::kServer, -1);
  void* memory = ::mmap(nullptr, kShmDataOffset, PROT_READ | PROT_WRITE, MAP_SHARED, (*server)->memfd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* header = static_cast<ShmHeader*>(memory);
  header->layout.command_up = 0xffffffff;  // Too late to matter.
  header->command.up.tail = 5000;
  header->command.down.head = 1;
  std::byte buffer[16] = {};
  EXPECT_TRUE(channel->WaitReadable({}, std::nullopt).ok());
  EXPECT_EQ(channel->TryRead(buffer).status().code(), Code::kProtocol);
  ASSERT_TRUE(channel->WaitWritable(std::nullopt).ok());
  EXPECT_EQ(channel->TryWrite(buffer).status().code(), Code::kProtocol);
  ::munmap(memory, kShmDataOffset);
}

TEST(ShmSession, APeerThatTakesBackTheEndOrTheParkedFlagDelaysNobody) {
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  auto channel = (*server)->CommandChannel(Side::kServer, -1);
  void* memory = ::mmap(nullptr, kShmDataOffset, PROT_READ | PROT_WRITE, MAP_SHARED, (*server)->memfd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* header = static_cast<ShmHeader*>(memory);
  std::atomic<bool> stop{false};
  std::thread hostile([&] {
    while (!stop) {
      header->command.ended = 0;
      header->command.up.consumer_parked = 0;
      std::this_thread::yield();
      header->command.up.consumer_parked = 1;
    }
  });
  EXPECT_EQ(channel->WaitReadable({}, std::chrono::milliseconds(20)).code(), Code::kTimeout);
  std::thread ender([&] { channel->Shutdown(); });
  EXPECT_TRUE(channel->WaitReadable({}, std::nullopt).ok());
  std::byte buffer[1];
  EXPECT_EQ(channel->TryRead(buffer).status().code(), Code::kClosed);
  ender.join();
  stop = true;
  hostile.join();
  ::munmap(memory, kShmDataOffset);
}

/// How many mappings of ring memory this process has.
int RingMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:hawser-rings") != std::string::npos) ++count;
  }
  return count;
}

TEST(ShmSession, TheGuestsMappingIsNotInherited) {
  ASSERT_EQ(RingMappings(), 0);
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  ASSERT_EQ(RingMappings(), 1);
  auto guest = ShmSession::Open(Fd(::dup((*server)->memfd())));
  ASSERT_TRUE(guest.ok());
  auto channel = (*guest)->CommandChannel(Side::kGuest, -1);
  ASSERT_EQ(RingMappings(), 2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int inherited = RingMappings();
    // Neither may touch memory that is not there, nor unmap what came to lie at its place.
    channel.reset();
    guest->reset();
    ::_exit(inherited);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1) << "only the server's mapping is inherited";
  EXPECT_TRUE(channel->TryWrite(AsBytes("x")).ok()) << "the child's clean-up must not end the parent's channel";
}

TEST(ShmSession, ShutdownWakesSleepersAtOnce) {
  auto server = ShmSession::Create(SmallLayout());
  ASSERT_TRUE(server.ok());
  auto channel = (*server)->CommandChannel(Side::kServer, -1);
  void* memory = ::mmap(nullptr, kShmDataOffset, PROT_READ | PROT_WRITE, MAP_SHARED, (*server)->memfd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  ChannelControl& control = static_cast<ShmHeader*>(memory)->command;
  // Sleepers without the channel's time slices: only a wake-up gets them out before the limit.
  constexpr std::chrono::seconds kLimit{30};
  std::atomic<int> asleep{0};
  std::atomic<int> late{0};
  std::vector<std::thread> sleepers;
  for (std::atomic<uint32_t>* word : {&control.up.consumer_parked, &control.up.producer_parked,
                                      &control.down.consumer_parked, &control.down.producer_parked}) {
    sleepers.emplace_back([&, word] {
      const auto start = std::chrono::steady_clock::now();
      *word = 1;
      ++asleep;
      while (*word == 1) FutexWait(*word, 1, kLimit);
      if (std::chrono::steady_clock::now() - start >= kLimit) ++late;
    });
  }
  while (asleep != 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // Let them fall asleep; the test holds either way.
  channel->Shutdown();
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(late, 0);
  ::munmap(memory, kShmDataOffset);
}

TEST(ShmSession, NothingIsLostBetweenTheLastWriteAndTheEnd) {
  for (int round = 0; round < 1000; ++round) {
    auto server = ShmSession::Create(SmallLayout());
    ASSERT_TRUE(server.ok());
    auto guest = ShmSession::Open(Fd(::dup((*server)->memfd())));
    ASSERT_TRUE(guest.ok());
    auto from = (*guest)->CommandChannel(Side::kGuest, -1);
    auto to = (*server)->CommandChannel(Side::kServer, -1);
    std::atomic<bool> reading{false};
    std::thread writer([&] {
      while (!reading) std::this_thread::yield();
      (void)from->WriteAll(AsBytes("last words"));
      from.reset();
    });
    size_t seen = 0;
    for (;;) {
      std::byte buffer[64];
      Result<size_t> got = to->TryRead(buffer);
      if (!got.ok()) break;
      seen += *got;
      if (!reading.exchange(true) || round % 2 == 0) std::this_thread::yield();
    }
    writer.join();
    ASSERT_EQ(seen, 10u) << "round " << round;
  }
}

TEST(Heap, IsSparseSealedAndCloseOnExec) {
  Result<Fd> heap = CreateHeap(size_t{8} << 30, "hawser-heap");
  ASSERT_TRUE(heap.ok()) << heap.status().text();
  struct stat info {};
  ASSERT_EQ(::fstat(heap->get(), &info), 0);
  EXPECT_EQ(static_cast<size_t>(info.st_size), size_t{8} << 30);
  EXPECT_EQ(info.st_blocks, 0);
  EXPECT_EQ(::fcntl(heap->get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(::fcntl(heap->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Heap, RefusesASizeThatIsNotWholePages) {
  EXPECT_EQ(CreateHeap(0, "h").status().code(), Code::kInvalid);
  EXPECT_EQ(CreateHeap(4095, "h").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::wire
