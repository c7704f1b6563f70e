// SPDX-License-Identifier: Apache-2.0
// A server with several devices, and workers that are parts of the test.
#include "server/grants/device_schedulers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/server/scheduled_worker.h"

namespace hawser::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<DeviceSchedulers> Start(const SchedulerSettings& settings = {}) {
  wire::Result<std::unique_ptr<DeviceSchedulers>> started = DeviceSchedulers::Start(settings);
  if (!started.ok()) ADD_FAILURE() << started.status().text();
  return std::move(*started);
}

bool HasNews(const DeviceSchedulers& schedulers) {
  pollfd poll{schedulers.notices_fd(), POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

// The point of it all: whoever has one device, and keeps it, has it and no other.
TEST(DeviceSchedulersTest, WhoeverUsesAnotherDeviceDoesNotWait) {
  auto schedulers = Start({.max_unit_ms = 0});
  ScheduledWorker first(*schedulers, 1, "a"), second(*schedulers, 2, "b");
  LaunchGate& here = first.Of("cpu:0");
  LaunchGate& there = second.Of("cpu:1");
  EXPECT_EQ(schedulers->devices(), 2u);
  ASSERT_TRUE(here.Enter(100));  // And does not leave.
  ASSERT_TRUE(there.Enter(100));
  there.Leave(100, 100);
  // Alone there, and nobody is asked to drain.
  EXPECT_TRUE(there.BeginOpen());
  there.EndOpen();
  EXPECT_EQ(there.Tenants(), 1u);
  here.Leave(100, 100);
  EXPECT_TRUE(here.BeginOpen());
  here.EndOpen();
  schedulers->SessionEnded(1);
  schedulers->SessionEnded(2);
}

TEST(DeviceSchedulersTest, OneDeviceIsSharedAsEver) {
  auto schedulers = Start({.alone_after_ms = 0});
  ScheduledWorker first(*schedulers, 1, "a"), second(*schedulers, 2, "b"), third(*schedulers, 3, "c");
  LaunchGate& a = first.Of("cpu:0");
  LaunchGate& b = second.Of("cpu:0");
  LaunchGate& c = third.Of("cpu:1");
  std::atomic<bool> drained{false}, elsewhere{false};
  a.SetDrain([&] { drained = true; });
  c.SetDrain([&] { elsewhere = true; });
  for (LaunchGate* gate : {&a, &c}) {
    ASSERT_TRUE(gate->Enter(100));
    gate->Leave(100, 100);
    ASSERT_TRUE(gate->BeginOpen());
    gate->EndOpen();
  }
  ASSERT_TRUE(b.Enter(100));
  EXPECT_TRUE(drained);
  EXPECT_FALSE(a.BeginOpen());
  // Two share the one device, a third is alone on the other.
  EXPECT_TRUE(c.BeginOpen());
  c.EndOpen();
  EXPECT_FALSE(elsewhere);
  EXPECT_EQ(c.Tenants(), 1u);
  b.Leave(100, 100);
  a.SetDrain(nullptr);
  c.SetDrain(nullptr);
  for (const uint64_t session : {1, 2, 3}) schedulers->SessionEnded(session);
}

TEST(DeviceSchedulersTest, OneWorkerMayUseBoth) {
  auto schedulers = Start({.max_unit_ms = 0});
  ScheduledWorker both(*schedulers, 1, "a"), other(*schedulers, 2, "b");
  LaunchGate& here = both.Of("cpu:0");
  LaunchGate& there = both.Of("cpu:1");
  EXPECT_NE(&here, &there);
  EXPECT_EQ(&here, &both.Of("cpu:0"));
  LaunchGate& others = other.Of("cpu:1");
  ASSERT_TRUE(here.Enter(100));
  ASSERT_TRUE(there.Enter(100));
  // What it keeps here is no reason why others wait there.
  there.Leave(100, 50);
  ASSERT_TRUE(others.Enter(100));
  others.Leave(100, 100);
  const auto uses = schedulers->SessionUse(1);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].device, "cpu:0");
  EXPECT_EQ(uses[0].inflight_ns, 100u);
  EXPECT_EQ(uses[1].device, "cpu:1");
  EXPECT_EQ(uses[1].used_ns, 50u);
  here.Leave(100, 100);
  schedulers->SessionEnded(1);
  schedulers->SessionEnded(2);
}

// The clock of one device does not run for who keeps another, and its event says which device and which session.
TEST(DeviceSchedulersTest, ARunawayIsOneOfItsDevice) {
  auto schedulers = Start({.max_unit_ms = 20});
  ScheduledWorker wild(*schedulers, 1, "a"), apart(*schedulers, 2, "a"), waiting(*schedulers, 3, "b");
  LaunchGate& busy = apart.Of("cpu:0");
  ASSERT_TRUE(busy.Enter(100));  // Nobody waits for this.
  LaunchGate& endless = wild.Of("cpu:1");
  LaunchGate& gate = waiting.Of("cpu:1");
  ASSERT_TRUE(endless.Enter(100));
  std::thread waits([&] {
    EXPECT_TRUE(gate.Enter(100));
    gate.Leave(100, 100);
  });
  std::vector<SchedulerNotice> runaways;
  while (runaways.empty()) {
    pollfd poll{schedulers->notices_fd(), POLLIN, 0};
    ::poll(&poll, 1, -1);
    for (SchedulerNotice& notice : schedulers->TakeNotices()) {
      if (notice.kind == SchedulerNotice::Kind::kRunaway) runaways.push_back(std::move(notice));
    }
  }
  ASSERT_EQ(runaways.size(), 1u);
  EXPECT_THAT(runaways[0].sessions, ElementsAre(1));
  EXPECT_THAT(runaways[0].text, HasSubstr("device cpu:1"));
  schedulers->SessionEnded(1);
  waits.join();
  busy.Leave(100, 100);
  schedulers->SessionEnded(2);
  schedulers->SessionEnded(3);
}

TEST(DeviceSchedulersTest, WeightsHoldOnEachDevice) {
  auto schedulers = Start();
  schedulers->SetShare("a", {.weight = 100});
  schedulers->SetShare("b", {.weight = 100});
  std::vector<std::unique_ptr<ScheduledWorker>> workers;
  uint64_t session = 0;
  // The heavier one has come to one of the devices before it was made heavier, and comes to the other after.
  for (const char* tenant : {"a", "b"}) {
    workers.push_back(std::make_unique<ScheduledWorker>(*schedulers, ++session, tenant));
    (void)workers.back()->Of("cpu:0");
  }
  schedulers->SetShare("b", {.weight = 300});
  for (const std::string device : {"cpu:0", "cpu:1"}) {
    LaunchGate& a = workers[0]->Of(device);
    LaunchGate& b = workers[1]->Of(device);
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> had[2] = {0, 0};
    constexpr uint64_t kUnit = 500'000;
    // Both always have work.
    const auto run = [&](LaunchGate& gate, int index) {
      while (!stop) {
        if (!gate.Enter(kUnit)) return;
        gate.Announce(kUnit);
        const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kUnit);
        while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
        had[index] += kUnit;
        if (had[0] + had[1] >= 400 * kUnit) stop = true;
        gate.Leave(kUnit, kUnit);
      }
      if (gate.Enter(kUnit)) gate.Leave(kUnit, kUnit);  // As announced.
    };
    std::thread one([&] { run(a, 0); }), two([&] { run(b, 1); });
    one.join();
    two.join();
    EXPECT_GT(had[1], had[0]) << device;
  }
  for (uint64_t each = 1; each <= session; ++each) schedulers->SessionEnded(each);
}

TEST(DeviceSchedulersTest, GrantsSayTheirDevice) {
  auto schedulers = Start();
  schedulers->RecordGrants(true);
  ScheduledWorker worker(*schedulers, 7, "a");
  for (const char* device : {"cpu:0", "cpu:1"}) {
    LaunchGate& gate = worker.Of(device);  // The second comes into being while grants are recorded.
    ASSERT_TRUE(gate.Enter(100));
    gate.Leave(100, 100);
  }
  schedulers->SessionEnded(7);
  std::map<std::string, uint64_t> seen;
  for (const SessionGrant& grant : schedulers->TakeGrants().grants) seen[grant.device] = grant.session;
  EXPECT_EQ(seen, (std::map<std::string, uint64_t>{{"cpu:0", 7}, {"cpu:1", 7}}));
}

TEST(DeviceSchedulersTest, ThePolicyIsOneForAll) {
  auto schedulers = Start();
  ScheduledWorker worker(*schedulers, 1, "a");
  (void)worker.Of("cpu:0");
  (void)worker.Of("cpu:1");
  ASSERT_TRUE(schedulers->SetPolicy("rr").ok());
  EXPECT_EQ(schedulers->SetPolicy("nonsense").code(), wire::Code::kInvalid);
  EXPECT_EQ(schedulers->Policy(), "rr");
  (void)worker.Of("cpu:2");
  const auto before = schedulers->EjectedPolicies().count;
  EXPECT_EQ(before, 0u);
  schedulers->SessionEnded(1);
}

// It decides first on one device, and is bad there; the other has not asked it anything yet.
TEST(DeviceSchedulersTest, APolicyThatWasEjectedOnOneDeviceIsOnNone) {
  auto schedulers = Start({.policy = HAWSER_BAD_POLICY_DIRECTORY "/bad_error.so", .isolated = false});
  ScheduledWorker worker(*schedulers, 1, "a"), other(*schedulers, 2, "b"), third(*schedulers, 3, "c");
  LaunchGate& first = worker.Of("cpu:0");
  LaunchGate& second = other.Of("cpu:1");
  LaunchGate& rival = third.Of("cpu:1");
  const auto take_turns = [](LaunchGate& gate) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(gate.Enter(500'000));
      std::this_thread::yield();
      gate.Leave(500'000, 500'000);
    }
  };
  std::thread turns([&] { take_turns(rival); });
  take_turns(second);
  turns.join();
  std::string told;
  while (schedulers->EjectedPolicies().count == 0 || told.find("fair takes over") == std::string::npos) {
    for (const SchedulerNotice& notice : schedulers->TakeNotices()) told += notice.text + "\n";
  }
  EXPECT_EQ(schedulers->Policy(), "fair");  // Of the first device.
  ASSERT_TRUE(first.Enter(100));
  first.Leave(100, 100);
  EXPECT_EQ(schedulers->EjectedPolicies().count, 1u);
  for (const uint64_t session : {1, 2, 3}) schedulers->SessionEnded(session);
}

// What a worker may say without being believed more than it should, and what it may cost.
TEST(DeviceSchedulersTest, AWorkerThatAsksForAnythingCostsABoundedAmount) {
  auto schedulers = Start();
  GrantDescriptors theirs = std::move(*schedulers->Prepare(1));
  wire::Result<GrantShare> share = GrantShare::Attach(theirs.page.get());
  ASSERT_TRUE(share.ok());
  schedulers->SessionStarted(1, "a");
  EventBell ask(wire::Fd(::dup(theirs.ask.get())));
  for (size_t i = 0; i < kMostDevices; ++i) {
    GrantSlot& slot = share->slot(i);
    std::fill(std::begin(slot.key), std::end(slot.key), static_cast<char>('\x80' + i));  // And no end.
    slot.key[0] = static_cast<char>('a' + i);
    slot.asked = 1;
  }
  for (int i = 0; i < 1000; ++i) {
    ask.Ring();
    (void)schedulers->TakeNotices();
  }
  EXPECT_EQ(schedulers->devices(), kMostDevices);
  ASSERT_EQ(schedulers->SessionUse(1).size(), kMostDevices);
  EXPECT_EQ(schedulers->SessionUse(1)[0].device, "a" + std::string(kLongestDeviceKey - 1, '_'));
  // It is not listened to any more.
  ask.Ring();
  EXPECT_FALSE(HasNews(*schedulers));
  // Who comes then shares with somebody, and waits as if there were one device; it is the same one for all of them.
  ScheduledWorker late(*schedulers, 2, "b"), later(*schedulers, 3, "c");
  LaunchGate& one = late.Of("pci:0000:01:00");
  LaunchGate& two = later.Of("pci:0000:01:00");
  EXPECT_EQ(schedulers->devices(), kMostDevices);
  ASSERT_TRUE(one.Enter(100));
  EXPECT_FALSE(two.TryEnter(100));
  one.Leave(100, 100);
  ASSERT_TRUE(two.Enter(100));
  two.Leave(100, 100);
  // When it is gone there is room for others.
  schedulers->SessionEnded(1);
  schedulers->SessionEnded(2);
  schedulers->SessionEnded(3);
  ScheduledWorker next(*schedulers, 4, "d"), after(*schedulers, 5, "e");
  LaunchGate& left = next.Of("pci:0000:01:00");
  LaunchGate& right = after.Of("pci:0000:02:00");
  EXPECT_EQ(schedulers->devices(), kMostDevices);
  ASSERT_TRUE(left.Enter(100));
  ASSERT_TRUE(right.Enter(100));
  left.Leave(100, 100);
  right.Leave(100, 100);
  schedulers->SessionEnded(4);
  schedulers->SessionEnded(5);
}

// A worker that is quick may ask before hawserd has said whose it is.
TEST(DeviceSchedulersTest, AskingEarlyIsNotLost) {
  auto schedulers = Start();
  GrantDescriptors theirs = std::move(*schedulers->Prepare(1));
  wire::Result<GrantShare> share = GrantShare::Attach(theirs.page.get());
  ASSERT_TRUE(share.ok());
  GrantGates gates(std::move(*share), std::move(theirs.bell), std::move(theirs.ask));
  LaunchGate& gate = gates.Of("cpu");
  EXPECT_FALSE(gate.BeginOpen());
  EXPECT_TRUE(HasNews(*schedulers));
  (void)schedulers->TakeNotices();
  EXPECT_TRUE(schedulers->SessionUse(1).empty());
  schedulers->SessionStarted(1, "a");
  ASSERT_TRUE(gate.Enter(100));
  gate.Leave(100, 100);
  schedulers->SessionEnded(1);
}

// One worker beyond the bound of its own.
TEST(DeviceSchedulersTest, AWorkerWithVeryManyDevicesSharesGates) {
  auto schedulers = Start();
  ScheduledWorker worker(*schedulers, 1, "a");
  std::vector<LaunchGate*> gates;
  for (size_t i = 0; i < kMostDevices + 4; ++i) gates.push_back(&worker.Of("cpu:" + std::to_string(i)));
  std::sort(gates.begin(), gates.end());
  gates.erase(std::unique(gates.begin(), gates.end()), gates.end());
  EXPECT_EQ(gates.size(), kMostDevices);
  schedulers->SessionEnded(1);
}

TEST(DeviceKeyTest, NamesWhatIsTheSame) {
  EXPECT_EQ(PciDeviceKey(0, 0x65, 0), "pci:0000:65:00");
  EXPECT_EQ(NvidiaDeviceKey(1), "nvidia:1");
  EXPECT_EQ(OpenClDeviceKey(0, 2), "opencl:0:2");
  ::unsetenv("HAWSER_CPU_DEVICES_APART");
  EXPECT_EQ(CpuDeviceKey(0), CpuDeviceKey(1));
  ::setenv("HAWSER_CPU_DEVICES_APART", "1", 1);
  EXPECT_EQ(CpuDeviceKey(1), "cpu:1");
  ::unsetenv("HAWSER_CPU_DEVICES_APART");
  EXPECT_EQ(CleanDeviceKey(""), "_");
  EXPECT_EQ(CleanDeviceKey("PCI 1\n"), "____1_");
}

}  // namespace
}  // namespace hawser::server
