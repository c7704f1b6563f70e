// SPDX-License-Identifier: Apache-2.0
#include "server/session_stats.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "server/tenant_ledger.h"

namespace hawser::server {

struct TraceRingTestAccess {
  static std::atomic<uint64_t>& next(TraceRing& ring) { return ring.next_; }
  static std::atomic<uint64_t>& mark(TraceRing& ring, uint64_t number) {
    return ring.slots_[number % TraceRing::kSlots].mark;
  }
  static std::atomic<uint64_t>& kind(TraceRing& ring, uint64_t number) {
    return ring.slots_[number % TraceRing::kSlots].kind_track;
  }
};

namespace {

using wire::Fd;

std::unique_ptr<TraceRing> MakeRing() { return std::make_unique<TraceRing>(); }

std::vector<TraceRingEvent> Drain(TraceReader& reader, const TraceRing& ring, uint64_t* lost = nullptr) {
  std::vector<TraceRingEvent> events;
  const uint64_t missed = reader.Drain(ring, [&](TraceRingEvent&& event) { events.push_back(std::move(event)); });
  if (lost != nullptr) *lost = missed;
  return events;
}

TEST(SessionStatsTest, BothSidesSeeTheSameNumbers) {
  auto ours = SessionStats::Create();
  ASSERT_TRUE(ours.ok()) << ours.status().text();
  auto theirs = SessionStats::Attach(ours->fd());
  ASSERT_TRUE(theirs.ok()) << theirs.status().text();
  ASSERT_NE(ours->page(), theirs->page());
  theirs->page()->commands.Add(3);
  theirs->page()->command_bytes.Add(100);
  theirs->page()->bulk_up_bytes.Add(23);
  theirs->page()->reply_bytes.Add(7);
  theirs->page()->copied_in.Add(11);
  theirs->page()->copied_out.Add(13);
  theirs->page()->device_memory.fetch_add(4096);
  ours->page()->trace.store(TraceRing::Bit(TraceRingKind::kKernel));
  EXPECT_EQ(ours->page()->commands.Read(), 3u);
  EXPECT_EQ(ours->page()->bytes_up(), 123u);
  EXPECT_EQ(ours->page()->bytes_down(), 7u);
  EXPECT_EQ(ours->page()->copied_in.Read(), 11u);
  EXPECT_EQ(ours->page()->copied_out.Read(), 13u);
  EXPECT_EQ(ours->page()->device_memory.load(), 4096u);
  EXPECT_TRUE(TraceRing::Wants(theirs->page()->trace, TraceRingKind::kKernel));
  EXPECT_FALSE(TraceRing::Wants(theirs->page()->trace, TraceRingKind::kCommand));
}

TEST(DeviceFindingsTest, AnswersAreKeptAndHandedOn) {
  DeviceFindings first, second;
  EXPECT_FALSE(first.Find(0).has_value());
  first.Add(0, true);
  first.Add(0x1230, false);
  first.Add(0x1230, true);  // Too late.
  EXPECT_EQ(first.Find(0), std::optional(true));
  EXPECT_EQ(first.Find(0x1230), std::optional(false));
  EXPECT_EQ(first.Find(0x1233), std::optional(false));
  EXPECT_FALSE(first.Find(0x1234).has_value());
  second.Add(0x8880, true);
  second.Take(first);
  second.Take(first);
  EXPECT_EQ(second.Find(0x1230), std::optional(false));
  EXPECT_EQ(second.Find(0x8880), std::optional(true));
  for (uint64_t key = 1; key <= 20; ++key) second.Add(key << 20, true);
  EXPECT_EQ(second.Find(uint64_t{5} << 20), std::optional(true));
  EXPECT_FALSE(second.Find(uint64_t{6} << 20).has_value());  // Full.
}

TEST(DeviceFindingsTest, TheNextWorkerOfATenantSeesThem) {
  auto ours = SessionStats::Create();
  ASSERT_TRUE(ours.ok()) << ours.status().text();
  auto theirs = SessionStats::Attach(ours->fd());
  ASSERT_TRUE(theirs.ok()) << theirs.status().text();
  theirs->page()->findings.Add(0x1230, true);
  TenantLedger ledger;
  ledger.Findings("a").Take(ours->page()->findings);
  EXPECT_EQ(ledger.Findings("a").Find(0x1230), std::optional(true));
  EXPECT_FALSE(ledger.Findings("b").Find(0x1230).has_value());
}

TEST(SessionStatsTest, TheWorkerCannotCutThePageOff) {
  auto stats = SessionStats::Create();
  ASSERT_TRUE(stats.ok());
  EXPECT_NE(::ftruncate(stats->fd(), 0), 0);
  EXPECT_NE(::ftruncate(stats->fd(), 1 << 20), 0);
  EXPECT_NE(::fcntl(stats->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(stats->page()->commands.Read(), 0u);
}

TEST(SessionStatsTest, RefusesWhatIsNoSuchPage) {
  EXPECT_FALSE(SessionStats::Attach(-1).ok());
  const Fd other(::memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(other.get(), 4096), 0);
  EXPECT_NE(SessionStats::Attach(other.get()).status().text().find("of one build"), std::string::npos);
  ASSERT_EQ(::ftruncate(other.get(), sizeof(SessionStatsPage)), 0);
  EXPECT_NE(SessionStats::Attach(other.get()).status().text().find("another version"), std::string::npos);
}

TEST(SessionStatsTest, DevicesAreBoundedAndPrintable) {
  auto stats = SessionStats::Create();
  ASSERT_TRUE(stats.ok());
  SessionStatsPage* page = stats->page();
  page->AddDevice("a device", 1u << 30);
  page->AddDevice(std::string(500, 'x'), 2);
  ASSERT_EQ(page->Devices().size(), 2u);
  EXPECT_EQ(page->Devices()[0].name, "a device");
  EXPECT_EQ(page->Devices()[0].memory, 1u << 30);
  EXPECT_EQ(page->Devices()[1].name.size(), SessionStatsPage::kDeviceName - 1);
  for (int i = 0; i < 20; ++i) page->AddDevice("more", 0);
  EXPECT_EQ(page->Devices().size(), SessionStatsPage::kMaxDevices);
  // What a worker that was taken over might write.
  page->device_count.store(UINT32_MAX);
  for (char& c : page->devices[0].name) c = '\x1b';
  ASSERT_EQ(page->Devices().size(), SessionStatsPage::kMaxDevices);
  EXPECT_EQ(page->Devices()[0].name, std::string(SessionStatsPage::kDeviceName, '?'));
}

TEST(TraceRingTest, GivesEventsInOrderAndOnce) {
  auto ring = MakeRing();
  TraceReader reader;
  reader.SkipTo(*ring);
  EXPECT_TRUE(Drain(reader, *ring).empty());
  ring->Record(TraceRingKind::kKernel, 7, 100, 250, "saxpy");
  ring->Record(TraceRingKind::kCommand, 0, 300, 300, "");
  uint64_t lost = 1;
  const auto events = Drain(reader, *ring, &lost);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(events[0].kind, TraceRingKind::kKernel);
  EXPECT_EQ(events[0].track, 7u);
  EXPECT_EQ(events[0].begin_ns, 100u);
  EXPECT_EQ(events[0].end_ns, 250u);
  EXPECT_EQ(events[0].name, "saxpy");
  EXPECT_EQ(events[1].name, "");
  EXPECT_TRUE(Drain(reader, *ring).empty());
}

TEST(TraceRingTest, CutsAndCleansNames) {
  auto ring = MakeRing();
  TraceReader reader;
  ring->Record(TraceRingKind::kCopy, 0, 0, 0, std::string(1000, 'n'));
  ring->Record(TraceRingKind::kCopy, 0, 0, 0, "a\nb\x7f");
  const auto events = Drain(reader, *ring);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, std::string(TraceRing::kNameBytes, 'n'));
  EXPECT_EQ(events[1].name, "a?b?");
}

TEST(TraceRingTest, CountsWhatWasWrittenOver) {
  auto ring = MakeRing();
  TraceReader reader;
  const uint64_t written = TraceRing::kSlots + 10;
  for (uint64_t i = 0; i < written; ++i) ring->Record(TraceRingKind::kKernel, 0, i, i, "k");
  uint64_t lost = 0;
  const auto events = Drain(reader, *ring, &lost);
  EXPECT_EQ(lost, 10u);
  ASSERT_EQ(events.size(), TraceRing::kSlots);
  EXPECT_EQ(events.front().begin_ns, 10u);
  EXPECT_EQ(events.back().begin_ns, written - 1);
}

TEST(TraceRingTest, DoesNotBelieveAHostileRing) {
  using Access = TraceRingTestAccess;
  auto ring = MakeRing();
  TraceReader reader;
  uint64_t lost = 0;
  for (const uint64_t next : {UINT64_MAX, uint64_t{5}, UINT64_MAX / 2, uint64_t{0}, uint64_t{1} << 40}) {
    Access::next(*ring).store(next);
    EXPECT_LE(Drain(reader, *ring, &lost).size(), TraceRing::kSlots);
    EXPECT_LE(lost, (uint64_t{1} << 32) + TraceRing::kSlots);
  }
  // A kind that does not exist, an end before its begin, a mark of another round.
  auto fresh = MakeRing();
  TraceReader second;
  fresh->Record(TraceRingKind::kKernel, 0, 10, 5, "k");
  fresh->Record(TraceRingKind::kKernel, 0, 1, 2, "k");
  Access::kind(*fresh, 1).store(uint64_t{99} << 32);
  fresh->Record(TraceRingKind::kKernel, 0, 3, 4, "k");
  Access::mark(*fresh, 2).store(777);
  const auto events = Drain(second, *fresh, &lost);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].begin_ns, 10u);
  EXPECT_EQ(events[0].end_ns, 10u);
  EXPECT_EQ(lost, 2u);
}

TEST(TraceRingTest, ManyThreadsWriteAndNothingIsTorn) {
  constexpr int kThreads = 4, kEvents = 20000;
  auto ring = MakeRing();
  std::vector<std::thread> writers;
  std::atomic<int> running{kThreads};
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEvents; ++i) {
        // All parts of an event say the same.
        ring->Record(TraceRingKind::kKernel, thread, i, i + thread, std::to_string(thread) + ":" + std::to_string(i));
        // So that the reader has a chance; without it the test would still hold.
        if (i % 512 == 0) std::this_thread::yield();
      }
      --running;
    });
  }
  TraceReader reader;
  uint64_t taken = 0, lost = 0, wrong = 0;
  std::map<uint32_t, uint64_t> last;
  for (bool more = true; more;) {
    more = running.load() > 0;
    lost += reader.Drain(*ring, [&](TraceRingEvent&& event) {
      ++taken;
      if (event.end_ns != event.begin_ns + event.track ||
          event.name != std::to_string(event.track) + ":" + std::to_string(event.begin_ns)) {
        ++wrong;
      }
      if (last.count(event.track) != 0 && event.begin_ns <= last[event.track]) ++wrong;
      last[event.track] = event.begin_ns;
    });
  }
  for (std::thread& writer : writers) writer.join();
  lost += reader.Drain(*ring, [&](TraceRingEvent&&) { ++taken; });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(taken + lost, uint64_t{kThreads} * kEvents);
}

}  // namespace
}  // namespace hawser::server
