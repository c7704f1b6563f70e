// SPDX-License-Identifier: Apache-2.0
// What an operator sees of a session: counts, memory, devices, kernels on the timeline.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

constexpr std::string_view kSource = R"(
kernel void add(global int* a, int value) { a[get_global_id(0)] += value; }
)";

/// Callbacks of the driver may come after the finish.
std::vector<TraceRingEvent> WaitForEvents(TraceReader& reader, const TraceRing& ring, size_t count) {
  std::vector<TraceRingEvent> events;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (events.size() < count && std::chrono::steady_clock::now() < deadline) {
    reader.Drain(ring, [&](TraceRingEvent&& event) { events.push_back(std::move(event)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return events;
}

class KernelTraceTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(KernelTraceTest, RecordsKernelsWhileSomebodyListens) {
  Session session;
  SessionStatsPage& stats = session.stats();
  TraceReader reader;
  const Id queue = session.Queue(GetParam());
  const Id kernel = session.Kernel(session.Program(kSource), "add");
  const Id buffer = session.BufferOf(std::vector<int>(64, 0));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.SetValue(kernel, 1, 1), CL_SUCCESS);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(session.Launch(queue, kernel, 64), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_EQ(stats.kernels.Read(), 5u);

  stats.trace.store(TraceRing::Bit(TraceRingKind::kKernel));
  const uint64_t before = TraceRing::Now();
  for (int i = 0; i < 7; ++i) ASSERT_EQ(session.Launch(queue, kernel, 64), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  const auto events = WaitForEvents(reader, stats.ring, 7);
  const uint64_t after = TraceRing::Now();
  ASSERT_EQ(events.size(), 7u) << "and none of before";
  for (const TraceRingEvent& event : events) {
    EXPECT_EQ(event.kind, TraceRingKind::kKernel);
    EXPECT_EQ(event.name, "add");
    EXPECT_EQ(event.track, queue.index());
    EXPECT_GE(event.end_ns, event.begin_ns);
    EXPECT_GE(event.end_ns, before);
    EXPECT_LE(event.end_ns, after);
  }
  stats.trace.store(0);
  ASSERT_EQ(session.Launch(queue, kernel, 64), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_EQ(stats.kernels.Read(), 13u);
}

INSTANTIATE_TEST_SUITE_P(Queues, KernelTraceTest, ::testing::Values(0, CL_QUEUE_PROFILING_ENABLE),
                         [](const auto& test) { return test.param == 0 ? "Plain" : "Measuring"; });

TEST(SessionFacts, MemoryAndDevicesAreShown) {
  Session session;
  SessionStatsPage& stats = session.stats();
  ASSERT_FALSE(stats.Devices().empty());
  EXPECT_FALSE(stats.Devices()[0].name.empty());
  EXPECT_GT(stats.Devices()[0].memory, 0u);
  const uint64_t before = stats.device_memory.load();
  const Id buffer = session.Buffer(4096);
  EXPECT_EQ(stats.device_memory.load(), before + 4096);
  (void)buffer;
}

TEST(SessionFacts, TheLimitMayChangeAtAnyTime) {
  Session session;
  ASSERT_TRUE(session.Buffer(1 << 20));
  session.stats().device_memory_limit.store(1 << 20);
  EXPECT_GE(session.stats().device_memory.load(), 1u << 20);
  EXPECT_FALSE(session.Buffer(1)) << "what it has it keeps, more it does not get";
  session.stats().device_memory_limit.store(0);
  EXPECT_TRUE(session.Buffer(1));
}

}  // namespace
}  // namespace hawser::server::ocl
