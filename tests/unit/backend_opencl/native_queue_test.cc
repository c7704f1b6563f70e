// SPDX-License-Identifier: Apache-2.0
// Queues that are measured and those that are not.
#include "server/backends/opencl/native_queue.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "server/worker/launch_gate.h"
#include "tests/unit/backend_opencl/session.h"

namespace {

/// Queues that were made and do not measure.
std::atomic<int> plain_queues{0};

}  // namespace

/// The backend's calls come here first.
extern "C" cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                               const cl_queue_properties* properties, cl_int* status) {
  using Call = decltype(&clCreateCommandQueueWithProperties);
  static const auto real = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "clCreateCommandQueueWithProperties"));
  bool measures = false;
  for (const cl_queue_properties* at = properties; at != nullptr && *at != 0; at += 2) {
    if (at[0] == CL_QUEUE_PROPERTIES) measures = (at[1] & CL_QUEUE_PROFILING_ENABLE) != 0;
  }
  if (!measures) ++plain_queues;
  return real(context, device, properties, status);
}

namespace hawser::server::ocl {
namespace {

/// The first device of the first platform.
class NativeQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cl_platform_id platform = nullptr;
    ASSERT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    ASSERT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &recipe_.device, nullptr), CL_SUCCESS);
    cl_int status = CL_SUCCESS;
    context_.Reset(clCreateContext(nullptr, 1, &recipe_.device, nullptr, nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
    recipe_.context = context_.get();
    recipe_.version = 30;
    buffer_.Reset(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, kBytes, nullptr, &status));
    ASSERT_EQ(status, CL_SUCCESS);
  }

  Handle<cl_event> Fill(const NativeQueue& queue, uint8_t value, cl_event wait = nullptr) {
    cl_event event = nullptr;
    EXPECT_EQ(clEnqueueFillBuffer(queue.get(), buffer_.get(), &value, 1, 0, kBytes, wait != nullptr ? 1 : 0,
                                  wait != nullptr ? &wait : nullptr, &event),
              CL_SUCCESS);
    return Handle<cl_event>(event);
  }
  /// Whether it says when it ended.
  static bool IsMeasured(const Handle<cl_event>& event) {
    const cl_event one = event.get();
    EXPECT_EQ(clWaitForEvents(1, &one), CL_SUCCESS);
    cl_ulong end = 0;
    return clGetEventProfilingInfo(one, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) == CL_SUCCESS && end != 0;
  }

  static constexpr size_t kBytes = 4096;
  QueueRecipe recipe_;
  Handle<cl_context> context_;
  Handle<cl_mem> buffer_;
};

TEST_F(NativeQueueTest, MeasuresOnlyWhereItShould) {
  NativeQueue queue;
  ASSERT_EQ(queue.Create(recipe_, /*measuring=*/true), CL_SUCCESS);
  Handle<cl_event> last = Fill(queue, 1);
  EXPECT_TRUE(IsMeasured(last));
  ASSERT_TRUE(queue.UsePlain(last.get()));
  EXPECT_TRUE(queue.is_plain());
  last = Fill(queue, 2);
  EXPECT_TRUE(IsMeasured(queue.MeasuredEnd(last.get())));
  EXPECT_FALSE(IsMeasured(last));
  ASSERT_TRUE(queue.UseMeasuring(last.get()));
  EXPECT_FALSE(queue.is_plain());
  EXPECT_TRUE(IsMeasured(Fill(queue, 3)));
}

TEST_F(NativeQueueTest, WhatIsBehindWaitsForWhatWasBefore) {
  NativeQueue queue;
  ASSERT_EQ(queue.Create(recipe_, /*measuring=*/true), CL_SUCCESS);
  cl_int status = CL_SUCCESS;
  const Handle<cl_event> start(clCreateUserEvent(context_.get(), &status));
  ASSERT_EQ(status, CL_SUCCESS);
  Handle<cl_event> first = Fill(queue, 1, start.get());
  ASSERT_TRUE(queue.UsePlain(first.get()));
  Handle<cl_event> second = Fill(queue, 2);
  ASSERT_TRUE(queue.UseMeasuring(second.get()));
  Handle<cl_event> third = Fill(queue, 3);
  ASSERT_EQ(clFlush(queue.get()), CL_SUCCESS);
  for (const Handle<cl_event>* event : {&first, &second, &third}) {
    cl_int execution = CL_COMPLETE;
    ASSERT_EQ(clGetEventInfo(event->get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution, nullptr),
              CL_SUCCESS);
    EXPECT_GT(execution, CL_COMPLETE);
  }
  ASSERT_EQ(clSetUserEventStatus(start.get(), CL_COMPLETE), CL_SUCCESS);
  std::vector<uint8_t> bytes(kBytes);
  ASSERT_EQ(clEnqueueReadBuffer(queue.get(), buffer_.get(), CL_TRUE, 0, kBytes, bytes.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(bytes, std::vector<uint8_t>(kBytes, 3));
}

TEST_F(NativeQueueTest, StaysAsTheGuestAskedForIt) {
  recipe_.properties = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE};
  NativeQueue measuring;
  ASSERT_EQ(measuring.Create(recipe_, /*measuring=*/true), CL_SUCCESS);
  EXPECT_FALSE(measuring.UsePlain(nullptr));
  recipe_.properties = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};
  NativeQueue out_of_order;
  ASSERT_EQ(out_of_order.Create(recipe_, /*measuring=*/true), CL_SUCCESS);
  EXPECT_FALSE(out_of_order.UsePlain(nullptr));
  recipe_.properties.clear();
  NativeQueue plain;
  ASSERT_EQ(plain.Create(recipe_, /*measuring=*/false), CL_SUCCESS);
  EXPECT_FALSE(plain.UsePlain(nullptr));
  EXPECT_FALSE(IsMeasured(Fill(plain, 1)));
}

/// Open for as long as the test says; else all may run at once. Lanes ask it while the test changes it.
class TestGate final : public LaunchGate {
 public:
  std::atomic<bool> open{true};
  std::atomic<int> entered{0};

  std::atomic<bool> busy{false};  ///< Who asks must wait, in a lane.

  bool BeginOpen() override { return open; }
  uint64_t OpenCapNs() const override { return 10'000'000; }
  uint64_t UnitNs() const override { return open ? 0 : kWhole; }
  uint32_t Tenants() const override { return open ? 1 : 2; }
  bool TryEnter(uint64_t) override {
    ++entered;
    return !busy;
  }
  bool Enter(uint64_t) override { return true; }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {}
};

// Launches that must run in their order, now measured, now not.
TEST(NativeQueueInASession, KeepsTheOrderOfLaunches) {
  TestGate gate;
  SessionOptions options;
  options.gate = &gate;
  Session session(options);
  const Id queue = session.Queue(0);
  const Id kernel = session.Kernel(
      session.Program("kernel void advance(global uint* a, uint value) { a[0] = a[0] * 2654435761u + value; }"),
      "advance");
  ASSERT_TRUE(kernel);
  const Id buffer = session.BufferOf(std::vector<uint32_t>(16, 0));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 6000; ++i) {
    // Long enough in a row not to be measured any more, and then somebody comes.
    gate.open = i % 2000 < 1900;
    ASSERT_EQ(session.SetValue(kernel, 1, i), CL_SUCCESS);
    ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
    expected = expected * 2654435761u + i;
    if (i % 97 == 96) {  // Not where the gate opens or shuts: launches are under way there.
      ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
    }
  }
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, buffer, 1).at(0), expected);
  EXPECT_GT(gate.entered, 0);
}

// What waited in a lane once does not make a queue measure for ever.
TEST(NativeQueueInASession, TinyLaunchesAreNotMeasuredOnceOthersHaveGone) {
  TestGate gate;
  gate.open = false;
  gate.busy = true;
  SessionOptions options;
  options.gate = &gate;
  Session session(options);
  const Id queue = session.Queue(0);
  const Id kernel = session.Kernel(session.Program("kernel void add(global uint* a) { a[0] += 1; }"), "add");
  ASSERT_TRUE(kernel);
  const Id buffer = session.BufferOf(std::vector<uint32_t>(16, 0));
  ASSERT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
  ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
  ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  ASSERT_GT(gate.entered, 1) << "a lane has asked too";
  const int before = plain_queues;
  gate.open = true;
  uint32_t launched = 1;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (plain_queues == before && std::chrono::steady_clock::now() < deadline) {
    for (int i = 0; i < 97; ++i, ++launched) ASSERT_EQ(session.Launch(queue, kernel, 1), CL_SUCCESS);
    ASSERT_EQ(session.Finish(queue), CL_SUCCESS);
  }
  EXPECT_EQ(plain_queues, before + 1) << "after " << launched << " launches";
  EXPECT_EQ(session.ReadAs<uint32_t>(queue, buffer, 1).at(0), launched);
}

}  // namespace
}  // namespace hawser::server::ocl
