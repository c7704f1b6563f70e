// SPDX-License-Identifier: Apache-2.0
// Writes that "block" have been done when the call returns, for all that programs can see: in other queues, in what
// their events say. How long the call really waits is the guest's affair. Those to shared virtual memory:
// opencl_svm_test.cc.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
kernel void slow(global uint* data, uint rounds) {
  uint x = data[0];
  for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  data[0] = x;
}
kernel void copy(global const uint* from, global uint* to, uint at) { to[0] = from[at]; }
kernel void fetch(read_only image2d_t from, global uint* to) { to[0] = read_imageui(from, (int2)(3, 3)).x; }
)";
constexpr size_t kSmall = 4096, kLarge = 1 << 20;
constexpr cl_uint kNew = 0x600dda7a;

enum class Reading { kBlocking, kEvent, kMap, kKernel };
struct Case {
  const char* name;
  size_t size;
  bool rectangle;
  Reading reading;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class BlockingWrites : public ::testing::Test {
 protected:
  BlockingWrites() : cl_(0, kSource) {}
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    slow_ = cl_.Kernel("slow");
    busy_ = cl_.Buffer(64);
    const cl_uint rounds = 60000000;
    ASSERT_EQ(clSetKernelArg(slow_, 0, sizeof(cl_mem), &busy_), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(slow_, 1, sizeof(rounds), &rounds), CL_SUCCESS);
    const std::vector<cl_uint> zeros(kLarge / 4);
    data_ = cl_.Buffer(kLarge);
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, data_, CL_TRUE, 0, kLarge, zeros.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  }
  void TearDown() override {
    if (cl_.queue != nullptr) clFinish(cl_.queue);
    if (slow_ != nullptr) clReleaseKernel(slow_);
    if (busy_ != nullptr) clReleaseMemObject(busy_);
    if (data_ != nullptr) clReleaseMemObject(data_);
  }
  /// Keeps the queue busy for some tenths of a second.
  void Delay(cl_command_queue queue) const {
    const size_t one = 1;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, slow_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  }
  void Write(cl_command_queue queue, size_t size, bool rectangle, cl_event* event = nullptr) const {
    const std::vector<cl_uint> values(size / 4, kNew);
    if (rectangle) {
      const size_t origin[3] = {0, 0, 0}, region[3] = {size / 16, 16, 1};
      ASSERT_EQ(clEnqueueWriteBufferRect(queue, data_, CL_TRUE, origin, origin, region, size / 16, 0, size / 16, 0,
                                         values.data(), 0, nullptr, event),
                CL_SUCCESS);
    } else {
      ASSERT_EQ(clEnqueueWriteBuffer(queue, data_, CL_TRUE, 0, size, values.data(), 0, nullptr, event), CL_SUCCESS);
    }
  }
  /// The word at `place`, through a command of `queue`.
  cl_uint Read(cl_command_queue queue, Reading reading, size_t place) {
    cl_uint value = 0;
    const size_t offset = place * 4, one = 1;
    cl_int error = CL_SUCCESS;
    if (reading == Reading::kBlocking) {
      error = clEnqueueReadBuffer(queue, data_, CL_TRUE, offset, 4, &value, 0, nullptr, nullptr);
    } else if (reading == Reading::kEvent) {
      cl_event event = nullptr;
      error = clEnqueueReadBuffer(queue, data_, CL_FALSE, offset, 4, &value, 0, nullptr, &event);
      EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
      clReleaseEvent(event);
    } else if (reading == Reading::kMap) {
      void* mapped = clEnqueueMapBuffer(queue, data_, CL_TRUE, CL_MAP_READ, offset, 4, 0, nullptr, nullptr, &error);
      if (error == CL_SUCCESS) value = *static_cast<cl_uint*>(mapped);
      if (error == CL_SUCCESS) error = clEnqueueUnmapMemObject(queue, data_, mapped, 0, nullptr, nullptr);
    } else {
      cl_kernel copy = cl_.Kernel("copy");
      cl_mem to = cl_.Buffer(4);
      const auto at = static_cast<cl_uint>(place);
      clSetKernelArg(copy, 0, sizeof(cl_mem), &data_);
      clSetKernelArg(copy, 1, sizeof(cl_mem), &to);
      clSetKernelArg(copy, 2, sizeof(at), &at);
      cl_event copied = nullptr;
      error = clEnqueueNDRangeKernel(queue, copy, 1, nullptr, &one, nullptr, 0, nullptr, &copied);
      EXPECT_EQ(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, 4, &value, 1, &copied, nullptr), CL_SUCCESS);
      clReleaseEvent(copied);
      clReleaseMemObject(to);
      clReleaseKernel(copy);
    }
    EXPECT_EQ(error, CL_SUCCESS);
    return value;
  }

  ClSetup cl_;
  cl_kernel slow_ = nullptr;
  cl_mem busy_ = nullptr, data_ = nullptr;
};

class WaysTest : public BlockingWrites, public ::testing::WithParamInterface<Case> {};

TEST_P(WaysTest, OtherQueuesSeeThem) {
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  Delay(cl_.queue);
  Write(cl_.queue, GetParam().size, GetParam().rectangle);
  EXPECT_EQ(Read(other, GetParam().reading, GetParam().size / 4 - 1), kNew);
  clReleaseCommandQueue(other);
}

TEST_P(WaysTest, OutOfOrderQueuesSeeThem) {
  cl_command_queue other = cl_.NewQueue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_NE(other, nullptr);
  Delay(cl_.queue);
  Write(cl_.queue, GetParam().size, GetParam().rectangle);
  EXPECT_EQ(Read(other, GetParam().reading, GetParam().size / 4 - 1), kNew);
  clReleaseCommandQueue(other);
}

INSTANTIATE_TEST_SUITE_P(Ways, WaysTest,
                         ::testing::Values(Case{"SmallRead", kSmall, false, Reading::kBlocking},
                                           Case{"SmallEvent", kSmall, false, Reading::kEvent},
                                           Case{"SmallMap", kSmall, false, Reading::kMap},
                                           Case{"SmallKernel", kSmall, false, Reading::kKernel},
                                           Case{"LargeRead", kLarge, false, Reading::kBlocking},
                                           Case{"LargeKernel", kLarge, false, Reading::kKernel},
                                           Case{"RectangleRead", kSmall, true, Reading::kBlocking},
                                           Case{"RectangleKernel", kSmall, true, Reading::kKernel}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_F(BlockingWrites, AQueueMadeLaterSeesThem) {
  Delay(cl_.queue);
  Write(cl_.queue, kSmall, false);
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(Read(other, Reading::kBlocking, 7), kNew);
  clReleaseCommandQueue(other);
}

TEST_F(BlockingWrites, TheyOutliveTheirQueue) {
  cl_command_queue writer = cl_.NewQueue(0);
  ASSERT_NE(writer, nullptr);
  clReleaseCommandQueue(cl_.queue);
  cl_.queue = nullptr;
  Delay(writer);
  Write(writer, kSmall, false);
  ASSERT_EQ(clReleaseCommandQueue(writer), CL_SUCCESS);
  cl_.queue = cl_.NewQueue(0);
  ASSERT_NE(cl_.queue, nullptr);
  EXPECT_EQ(Read(cl_.queue, Reading::kKernel, 7), kNew);
}

TEST_F(BlockingWrites, ManyQueuesSeeManyOfThem) {
  constexpr size_t kQueues = 20;  // More than a wait list usually has.
  std::vector<cl_command_queue> queues;
  for (size_t i = 0; i < kQueues; ++i) queues.push_back(cl_.NewQueue(0));
  for (size_t i = 0; i < kQueues; ++i) {
    if (i == 0) Delay(queues[i]);
    const auto value = static_cast<cl_uint>(i + 1);
    ASSERT_EQ(clEnqueueWriteBuffer(queues[i], data_, CL_TRUE, i * 4, 4, &value, 0, nullptr, nullptr), CL_SUCCESS);
  }
  for (size_t i = 0; i < kQueues; ++i) {
    EXPECT_EQ(Read(queues[kQueues - 1 - i], Reading::kKernel, i), static_cast<cl_uint>(i + 1)) << i;
  }
  for (cl_command_queue queue : queues) clReleaseCommandQueue(queue);
}

TEST_F(BlockingWrites, WhatIsBehindThemIsNotWaitedFor) {
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl_.context, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  Delay(cl_.queue);
  Write(cl_.queue, kSmall, false);
  const size_t one = 1;
  cl_event behind = nullptr;
  ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, slow_, 1, nullptr, &one, nullptr, 1, &gate, &behind), CL_SUCCESS);
  // Would wait for ever if it waited for the queue.
  EXPECT_EQ(Read(other, Reading::kBlocking, 7), kNew);
  EXPECT_EQ(Read(other, Reading::kKernel, 7), kNew);
  cl_int status = CL_COMPLETE;
  ASSERT_EQ(clGetEventInfo(behind, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), CL_SUCCESS);
  EXPECT_GT(status, CL_COMPLETE);
  ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  clReleaseEvent(behind);
  clReleaseEvent(gate);
  clReleaseCommandQueue(other);
}

TEST_F(BlockingWrites, TheirEventsAreComplete) {
  Delay(cl_.queue);
  cl_event event = nullptr;
  Write(cl_.queue, kSmall, false, &event);
  cl_int status = CL_QUEUED;
  ASSERT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), CL_SUCCESS);
  EXPECT_EQ(status, CL_COMPLETE);
  clReleaseEvent(event);
  cl_command_queue timed = cl_.NewQueue(CL_QUEUE_PROFILING_ENABLE);
  ASSERT_NE(timed, nullptr);
  Delay(timed);
  Write(timed, kSmall, false, &event);
  cl_ulong start = 0, end = 0;
  EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start, nullptr), CL_SUCCESS);
  EXPECT_EQ(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr), CL_SUCCESS);
  EXPECT_LE(start, end);
  clReleaseEvent(event);
  clReleaseCommandQueue(timed);
}

TEST_F(BlockingWrites, OfImagesToo) {
  cl_bool images = CL_FALSE;
  clGetDeviceInfo(cl_.device, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, nullptr);
  if (images == CL_FALSE) GTEST_SKIP() << "the device has no images";
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  const cl_image_format format = {CL_R, CL_UNSIGNED_INT32};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 16;
  cl_int error = CL_SUCCESS;
  std::vector<cl_uint> values(256);
  cl_mem image =
      clCreateImage(cl_.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &desc, values.data(), &error);
  ASSERT_EQ(error, CL_SUCCESS);
  Delay(cl_.queue);
  values.assign(256, kNew);
  const size_t origin[3] = {0, 0, 0}, region[3] = {16, 16, 1};
  ASSERT_EQ(clEnqueueWriteImage(cl_.queue, image, CL_TRUE, origin, region, 0, 0, values.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  cl_kernel fetch = cl_.Kernel("fetch");
  cl_mem to = cl_.Buffer(4);
  const size_t one = 1;
  ASSERT_EQ(clSetKernelArg(fetch, 0, sizeof(cl_mem), &image), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArg(fetch, 1, sizeof(cl_mem), &to), CL_SUCCESS);
  ASSERT_EQ(clEnqueueNDRangeKernel(other, fetch, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  cl_uint value = 0;
  ASSERT_EQ(clEnqueueReadBuffer(other, to, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(value, kNew);
  clFinish(cl_.queue);
  clReleaseKernel(fetch);
  clReleaseMemObject(to);
  clReleaseMemObject(image);
  clReleaseCommandQueue(other);
}

}  // namespace
}  // namespace hawser::test
