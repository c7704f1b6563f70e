// SPDX-License-Identifier: Apache-2.0
// The order guarantee: what thread A enqueued before it woke thread B is ahead of what B enqueues. A field's leader
// misses the launch in 64 of 64 rounds; here 10,000 rounds must see every one. HAWSER_TEST_ROUNDS: another count, for
// an emulated machine.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

const int kRounds = [] {
  const char* text = std::getenv("HAWSER_TEST_ROUNDS");
  return text != nullptr ? std::atoi(text) : 10000;
}();
constexpr const char* kSource = R"(
kernel void store(global int* out, int value) { out[0] = value; }
)";

/// Two threads take turns.
class Turns {
 public:
  void WaitFor(int turn) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == turn; });
  }
  void Give(int turn) {
    {
      std::lock_guard lock(mutex_);
      turn_ = turn;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
};

enum class Reading { kBlocking, kEvent };

void EnqueueHereReadThere(cl_command_queue_properties properties, Reading reading) {
  ClSetup cl(properties, kSource);
  ASSERT_TRUE(cl.ok());
  ASSERT_GT(kRounds, 0);
  cl_kernel kernel = cl.Kernel("store");
  cl_mem buffer = cl.Buffer(sizeof(cl_int));
  ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  Turns turns;
  int missed = 0;
  cl_int error = CL_SUCCESS;

  std::thread reader([&] {
    for (int round = 1; round <= kRounds; ++round) {
      turns.WaitFor(2 * round - 1);
      cl_int seen = -1;
      cl_int status = CL_SUCCESS;
      if (reading == Reading::kBlocking) {
        status = clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, nullptr, nullptr);
      } else {
        cl_event event = nullptr;
        status = clEnqueueReadBuffer(cl.queue, buffer, CL_FALSE, 0, sizeof(seen), &seen, 0, nullptr, &event);
        if (status == CL_SUCCESS) status = clWaitForEvents(1, &event);
        if (event != nullptr) clReleaseEvent(event);
      }
      if (status != CL_SUCCESS) error = status;
      if (seen != round) ++missed;
      turns.Give(2 * round);
    }
  });
  const size_t one = 1;
  for (int round = 1; round <= kRounds; ++round) {
    const cl_int value = round;
    cl_int status = clSetKernelArg(kernel, 1, sizeof(value), &value);
    if (status == CL_SUCCESS) {
      status = clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
    }
    if (status != CL_SUCCESS) error = status;
    turns.Give(2 * round - 1);
    turns.WaitFor(2 * round);
  }
  reader.join();
  EXPECT_EQ(missed, 0) << "of " << kRounds;
  EXPECT_EQ(error, CL_SUCCESS);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
}

TEST(OrderTest, BlockingReadSeesTheOtherThreadsLaunch) { EnqueueHereReadThere(0, Reading::kBlocking); }

// Profiling queues never use the heap's short cut: the read crosses the wire.
TEST(OrderTest, ReadOverTheWireSeesTheOtherThreadsLaunch) {
  EnqueueHereReadThere(CL_QUEUE_PROFILING_ENABLE, Reading::kBlocking);
}

TEST(OrderTest, WaitedReadSeesTheOtherThreadsLaunch) { EnqueueHereReadThere(0, Reading::kEvent); }

// Many threads on one queue: the sum of all increments arrives, nothing is lost and nothing runs twice.
TEST(OrderTest, ManyThreadsOnOneQueueLoseNothing) {
  ClSetup cl(0, "kernel void add(global int* out, int value) { out[0] += value; }");
  ASSERT_TRUE(cl.ok());
  constexpr int kThreads = 8, kEach = 500;
  cl_int zero = 0;
  cl_mem buffer = cl.Buffer(sizeof(cl_int), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &zero);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      cl_kernel kernel = clCreateKernel(cl.program, "add", nullptr);
      const cl_int value = t + 1;
      const size_t one = 1;
      clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
      clSetKernelArg(kernel, 1, sizeof(value), &value);
      for (int i = 0; i < kEach; ++i) {
        if (clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr) != CL_SUCCESS) {
          ++failures;
        }
        if (i % 50 == 0 && clFinish(cl.queue) != CL_SUCCESS) ++failures;
      }
      clReleaseKernel(kernel);
    });
  }
  for (std::thread& thread : threads) thread.join();
  cl_int sum = 0;
  ASSERT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(sum), &sum, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(sum, kEach * kThreads * (kThreads + 1) / 2);
  EXPECT_EQ(failures, 0);
  clReleaseMemObject(buffer);
}

}  // namespace
}  // namespace hawser::test
