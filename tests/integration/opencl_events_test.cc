// SPDX-License-Identifier: Apache-2.0
// Events: waits, user events, callbacks, profiling, failures, and launches' argument checks.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clEnqueueTask
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
kernel void add(global uint* data, uint value) { data[get_global_id(0)] += value; }
kernel void slow(global uint* data, uint rounds) {
  uint x = data[0];
  for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  data[0] = x;
}
kernel __attribute__((reqd_work_group_size(8, 1, 1))) void eight(global uint* data) { data[get_global_id(0)] = 8; }
kernel void offset(global uint* data) { data[get_global_id(0) - get_global_offset(0)] = (uint)get_global_id(0); }
)";

cl_int StatusOf(cl_event event) {
  cl_int status = CL_QUEUED;
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), CL_SUCCESS);
  return status;
}

/// Polls as programs do that never call clWaitForEvents.
bool PollUntilFinal(cl_event event) {
  for (int i = 0; i < 20000; ++i) {
    if (StatusOf(event) <= CL_COMPLETE) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class EventTest : public ::testing::Test {
 public:
  EventTest() : cl_(0, kSource) {}
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    buffer_ = cl_.Buffer(4096);
    const std::vector<cl_uint> zeros(1024);
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer_, CL_TRUE, 0, 4096, zeros.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    add_ = cl_.Kernel("add");
    slow_ = cl_.Kernel("slow");
    const cl_uint value = 5;
    const cl_uint rounds = 3000000;
    ASSERT_EQ(clSetKernelArg(add_, 0, sizeof(cl_mem), &buffer_), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(add_, 1, sizeof(value), &value), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(slow_, 0, sizeof(cl_mem), &buffer_), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(slow_, 1, sizeof(rounds), &rounds), CL_SUCCESS);
  }
  void TearDown() override {
    if (cl_.queue != nullptr) clFinish(cl_.queue);
    if (add_ != nullptr) clReleaseKernel(add_);
    if (slow_ != nullptr) clReleaseKernel(slow_);
    if (buffer_ != nullptr) clReleaseMemObject(buffer_);
  }
  cl_int Launch(cl_command_queue queue, cl_kernel kernel, size_t global, cl_uint count = 0,
                const cl_event* wait = nullptr, cl_event* event = nullptr) {
    return clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, count, wait, event);
  }
  cl_uint First() {
    cl_uint value = 0;
    EXPECT_EQ(clEnqueueReadBuffer(cl_.queue, buffer_, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr), CL_SUCCESS);
    return value;
  }

  ClSetup cl_;
  cl_mem buffer_ = nullptr;
  cl_kernel add_ = nullptr, slow_ = nullptr;
};

TEST_F(EventTest, InfoAndWait) {
  cl_event event = nullptr;
  ASSERT_EQ(Launch(cl_.queue, slow_, 1, 0, nullptr, &event), CL_SUCCESS);
  cl_command_queue queue = nullptr;
  cl_context context = nullptr;
  cl_command_type type = 0;
  cl_uint refs = 0;
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, nullptr), CL_SUCCESS);
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof(context), &context, nullptr), CL_SUCCESS);
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, nullptr), CL_SUCCESS);
  EXPECT_EQ(queue, cl_.queue);
  EXPECT_EQ(context, cl_.context);
  EXPECT_EQ(type, cl_command_type{CL_COMMAND_NDRANGE_KERNEL});
  EXPECT_GE(refs, 1u);
  EXPECT_EQ(clGetEventInfo(event, 0x7777, 0, nullptr, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clGetEventInfo(event, CL_EVENT_CONTEXT, 1, &context, nullptr), CL_INVALID_VALUE);
  ASSERT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
  EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  cl_ulong time = 0;
  EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(time), &time, nullptr),
            CL_PROFILING_INFO_NOT_AVAILABLE);
  clReleaseEvent(event);
  EXPECT_EQ(clWaitForEvents(0, nullptr), CL_INVALID_VALUE);
  cl_event none = nullptr;
  EXPECT_EQ(clWaitForEvents(1, &none), CL_INVALID_EVENT);
}

TEST_F(EventTest, PollingAloneSeesTheEnd) {
  cl_event event = nullptr;
  ASSERT_EQ(Launch(cl_.queue, slow_, 1, 0, nullptr, &event), CL_SUCCESS);
  EXPECT_TRUE(PollUntilFinal(event));
  EXPECT_EQ(StatusOf(event), CL_COMPLETE);
  clReleaseEvent(event);
}

TEST_F(EventTest, ReleasedEventsStillOrder) {
  cl_command_queue other = cl_.NewQueue(0);
  for (int i = 0; i < 200; ++i) {
    cl_event event = nullptr;
    ASSERT_EQ(Launch(i % 2 == 0 ? cl_.queue : other, add_, 1, 0, nullptr, &event), CL_SUCCESS);
    cl_event after = nullptr;
    ASSERT_EQ(Launch(i % 2 == 0 ? other : cl_.queue, add_, 1, 1, &event, &after), CL_SUCCESS);
    clReleaseEvent(event);  // While the other queue waits for it.
    ASSERT_EQ(clWaitForEvents(1, &after), CL_SUCCESS);
    clReleaseEvent(after);
  }
  EXPECT_EQ(First(), 200u * 2 * 5);
  clReleaseCommandQueue(other);
}

TEST_F(EventTest, UserEventsGateCommands) {
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl_.context, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(StatusOf(gate), CL_SUBMITTED);
  cl_event added = nullptr;
  ASSERT_EQ(Launch(cl_.queue, add_, 1, 1, &gate, &added), CL_SUCCESS);
  ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GT(StatusOf(added), CL_COMPLETE);
  EXPECT_EQ(clSetUserEventStatus(gate, CL_RUNNING), CL_INVALID_VALUE);
  EXPECT_EQ(clSetUserEventStatus(added, CL_COMPLETE), CL_INVALID_EVENT);
  std::thread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  });
  cl_event both[] = {gate, added};
  EXPECT_EQ(clWaitForEvents(2, both), CL_SUCCESS);
  setter.join();
  EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_INVALID_OPERATION);
  EXPECT_EQ(First(), 5u);
  clReleaseEvent(gate);
  clReleaseEvent(added);
}

TEST_F(EventTest, BlockingReadsWaitForUserEventsOfOtherThreads) {
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl_.context, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  std::jthread setter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  });
  ASSERT_EQ(Launch(cl_.queue, add_, 1), CL_SUCCESS);
  cl_uint value = 0;
  cl_event read = nullptr;
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer_, CL_TRUE, 0, 4, &value, 1, &gate, &read), CL_SUCCESS);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(StatusOf(gate), CL_COMPLETE);
  EXPECT_EQ(StatusOf(read), CL_COMPLETE);
  setter.join();
  clReleaseEvent(gate);
  clReleaseEvent(read);
}

TEST_F(EventTest, FailedUserEventsFailWhatWaits) {
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl_.context, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_event added = nullptr;
  ASSERT_EQ(Launch(cl_.queue, add_, 1, 1, &gate, &added), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, -77), CL_SUCCESS);
  EXPECT_EQ(StatusOf(gate), -77);
  EXPECT_EQ(clWaitForEvents(1, &gate), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(clWaitForEvents(1, &added), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_LT(StatusOf(added), 0);
  clReleaseEvent(added);
  clReleaseEvent(gate);
  EXPECT_EQ(First(), 0u);
}

struct Calls {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<cl_event, cl_int>> seen;
  bool Await(size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return seen.size() >= count; });
  }
};
void CL_CALLBACK Note(cl_event event, cl_int status, void* data) {
  auto* calls = static_cast<Calls*>(data);
  std::lock_guard lock(calls->mutex);
  calls->seen.emplace_back(event, status);
  calls->changed.notify_all();
}

TEST_F(EventTest, CallbacksRunWithoutAnybodyWaiting) {
  Calls calls;
  cl_event event = nullptr;
  ASSERT_EQ(Launch(cl_.queue, slow_, 1, 0, nullptr, &event), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &calls), CL_SUCCESS);
  ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
  ASSERT_TRUE(calls.Await(1));
  EXPECT_EQ(calls.seen[0].first, event);
  EXPECT_EQ(calls.seen[0].second, CL_COMPLETE);
  // Too late is at once.
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &calls), CL_SUCCESS);
  ASSERT_TRUE(calls.Await(2));
  EXPECT_EQ(calls.seen[1].second, CL_COMPLETE);
  EXPECT_EQ(clSetEventCallback(event, CL_COMPLETE, nullptr, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clSetEventCallback(event, CL_QUEUED, &Note, &calls), CL_INVALID_VALUE);
  clReleaseEvent(event);
}

TEST_F(EventTest, CallbacksOfEachStatusComeInOrder) {
  Calls calls;
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl_.context, &error);
  cl_event event = nullptr;
  ASSERT_EQ(Launch(cl_.queue, slow_, 1, 1, &gate, &event), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_COMPLETE, &Note, &calls), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_RUNNING, &Note, &calls), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(event, CL_SUBMITTED, &Note, &calls), CL_SUCCESS);
  ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_TRUE(calls.Await(3));
  EXPECT_EQ(calls.seen[0].second, CL_SUBMITTED);
  EXPECT_EQ(calls.seen[1].second, CL_RUNNING);
  EXPECT_EQ(calls.seen[2].second, CL_COMPLETE);
  clReleaseEvent(event);
  clReleaseEvent(gate);
}

TEST_F(EventTest, CallbacksSeeTheData) {
  const size_t size = 6 << 20;
  cl_mem large = cl_.Buffer(size);
  struct Expect {
    Calls calls;
    std::vector<unsigned char> back;
    unsigned char value = 0;
    std::atomic<bool> right{true};
  } expect;
  for (int i = 1; i <= 10; ++i) {
    expect.back.assign(size, 0);
    expect.value = static_cast<unsigned char>(i);
    cl_event read = nullptr;
    ASSERT_EQ(clEnqueueFillBuffer(cl_.queue, large, &expect.value, 1, 0, size, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, large, CL_FALSE, 0, size, expect.back.data(), 0, nullptr, &read),
              CL_SUCCESS);
    const auto check = +[](cl_event event, cl_int status, void* data) {
      auto* all = static_cast<Expect*>(data);
      for (const unsigned char byte : all->back) {
        if (byte != all->value) all->right = false;
      }
      Note(event, status, &all->calls);
    };
    ASSERT_EQ(clSetEventCallback(read, CL_COMPLETE, check, &expect), CL_SUCCESS);
    ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
    ASSERT_TRUE(expect.calls.Await(static_cast<size_t>(i)));
    EXPECT_TRUE(expect.right) << i;
    clReleaseEvent(read);
  }
  clReleaseMemObject(large);
}

TEST_F(EventTest, CallbacksMayCallTheApi) {
  struct Chain {
    Calls calls;
    EventTest* test;
  } chain{{}, this};
  cl_event first = nullptr;
  const auto next = +[](cl_event event, cl_int status, void* data) {
    auto* all = static_cast<Chain*>(data);
    EventTest* test = all->test;
    cl_event second = nullptr;
    EXPECT_EQ(test->Launch(test->cl_.queue, test->add_, 1, 0, nullptr, &second), CL_SUCCESS);
    EXPECT_EQ(clWaitForEvents(1, &second), CL_SUCCESS);
    clReleaseEvent(second);
    Note(event, status, &all->calls);
  };
  ASSERT_EQ(Launch(cl_.queue, add_, 1, 0, nullptr, &first), CL_SUCCESS);
  ASSERT_EQ(clSetEventCallback(first, CL_COMPLETE, next, &chain), CL_SUCCESS);
  clFlush(cl_.queue);
  ASSERT_TRUE(chain.calls.Await(1));
  EXPECT_EQ(First(), 10u);
  clReleaseEvent(first);
}

TEST_F(EventTest, Profiling) {
  cl_command_queue queue = cl_.NewQueue(CL_QUEUE_PROFILING_ENABLE);
  ASSERT_NE(queue, nullptr);
  cl_uint value = 1;
  cl_event events[4] = {};
  ASSERT_EQ(clEnqueueWriteBuffer(queue, buffer_, CL_TRUE, 0, 4, &value, 0, nullptr, &events[0]), CL_SUCCESS);
  ASSERT_EQ(Launch(queue, slow_, 1, 0, nullptr, &events[1]), CL_SUCCESS);
  ASSERT_EQ(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &events[2]), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(queue, buffer_, CL_TRUE, 0, 4, &value, 0, nullptr, &events[3]), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(4, events), CL_SUCCESS);
  for (cl_event event : events) {
    cl_ulong times[4] = {};
    for (cl_uint i = 0; i < 4; ++i) {
      ASSERT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, sizeof(cl_ulong), &times[i], nullptr),
                CL_SUCCESS);
    }
    EXPECT_LE(times[0], times[1]);
    EXPECT_LE(times[1], times[2]);
    EXPECT_LE(times[2], times[3]);
    EXPECT_NE(times[0], 0u);
    clReleaseEvent(event);
  }
  clReleaseCommandQueue(queue);
}

TEST_F(EventTest, MarkersAndBarriersOrderOutOfOrderQueues) {
  cl_command_queue queue = cl_.NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_NE(queue, nullptr);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(Launch(queue, add_, 1), CL_SUCCESS);
    ASSERT_EQ(clEnqueueBarrierWithWaitList(queue, 0, nullptr, nullptr), CL_SUCCESS);
  }
  cl_uint value = 0;
  ASSERT_EQ(clEnqueueReadBuffer(queue, buffer_, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, 250u);
  // Out of order: a read that waits for nothing passes a command that waits for the program.
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl_.context, &error);
  ASSERT_EQ(Launch(queue, add_, 1, 1, &gate), CL_SUCCESS);
  cl_mem other = cl_.Buffer(64);
  ASSERT_EQ(clEnqueueWriteBuffer(queue, other, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(queue, other, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr), CL_SUCCESS);
  void* mapped = clEnqueueMapBuffer(queue, other, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  ASSERT_EQ(clEnqueueUnmapMemObject(queue, other, mapped, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(queue), CL_SUCCESS);
  clReleaseEvent(gate);
  clReleaseMemObject(other);
  clReleaseCommandQueue(queue);
}

TEST_F(EventTest, LaunchErrors) {
  const size_t one = 1;
  const size_t many[3] = {16, 1, 1};
  const auto launch = [&](cl_kernel kernel, cl_uint dimensions, const size_t* global, const size_t* local) {
    return clEnqueueNDRangeKernel(cl_.queue, kernel, dimensions, nullptr, global, local, 0, nullptr, nullptr);
  };
  EXPECT_EQ(launch(nullptr, 1, &one, nullptr), CL_INVALID_KERNEL);
  EXPECT_EQ(launch(add_, 0, &one, nullptr), CL_INVALID_WORK_DIMENSION);
  EXPECT_EQ(launch(add_, 4, many, nullptr), CL_INVALID_WORK_DIMENSION);
  const size_t three = 3, huge = 1 << 20;
  EXPECT_EQ(launch(add_, 1, many, &three), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(launch(add_, 1, &huge, &huge), CL_INVALID_WORK_GROUP_SIZE);
  cl_kernel fresh = cl_.Kernel("add");
  EXPECT_EQ(launch(fresh, 1, &one, nullptr), CL_INVALID_KERNEL_ARGS);
  clReleaseKernel(fresh);
  cl_kernel eight = cl_.Kernel("eight");
  ASSERT_EQ(clSetKernelArg(eight, 0, sizeof(cl_mem), &buffer_), CL_SUCCESS);
  const size_t size8 = 8, size4 = 4;
  EXPECT_EQ(launch(eight, 1, many, &size4), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(launch(eight, 1, many, &size8), CL_SUCCESS);
  clReleaseKernel(eight);
  cl_kernel offset = cl_.Kernel("offset");
  ASSERT_EQ(clSetKernelArg(offset, 0, sizeof(cl_mem), &buffer_), CL_SUCCESS);
  const size_t start = 1000;
  ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, offset, 1, &start, many, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(First(), 1000u);
  clReleaseKernel(offset);
  EXPECT_EQ(clEnqueueTask(cl_.queue, add_, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(First(), 1005u);
  // Context of somebody else.
  ClSetup stranger(0, kSource);
  ASSERT_TRUE(stranger.ok());
  EXPECT_EQ(clEnqueueNDRangeKernel(stranger.queue, add_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
            CL_INVALID_CONTEXT);
  cl_event event = nullptr;
  ASSERT_EQ(clEnqueueMarkerWithWaitList(stranger.queue, 0, nullptr, &event), CL_SUCCESS);
  EXPECT_EQ(Launch(cl_.queue, add_, 1, 1, &event), CL_INVALID_CONTEXT);
  clReleaseEvent(event);
}

TEST_F(EventTest, ManyThreadsWaitForEachOther) {
  constexpr int kThreads = 6, kRounds = 100;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      cl_command_queue queue = cl_.NewQueue(0);
      cl_mem mine = cl_.Buffer(4096);
      for (cl_uint round = 0; round < kRounds; ++round) {
        const cl_uint value = round * 100 + static_cast<cl_uint>(t);
        cl_event filled = nullptr, read = nullptr;
        cl_uint back[16] = {};
        if (clEnqueueFillBuffer(queue, mine, &value, 4, 0, 64, 0, nullptr, &filled) != CL_SUCCESS ||
            clEnqueueReadBuffer(queue, mine, CL_FALSE, 0, 64, back, 1, &filled, &read) != CL_SUCCESS ||
            clWaitForEvents(1, &read) != CL_SUCCESS || back[0] != value || back[15] != value) {
          ++wrong;
        }
        clReleaseEvent(filled);
        clReleaseEvent(read);
      }
      clReleaseMemObject(mine);
      clReleaseCommandQueue(queue);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace hawser::test
