// SPDX-License-Identifier: Apache-2.0
// Writes of what reads before them have yet to put into the program's memory.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace {

using hawser::test::ClSetup;

/// With that many bytes: some that travel within a command, many that do not.
class LateWrites : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    size_ = GetParam();
    host_.assign(size_, 1);
    from_ = cl_.Buffer(size_);
    to_ = cl_.Buffer(size_);
    other_ = cl_.NewQueue(0);
    ASSERT_NE(other_, nullptr);
    Fill(from_, 7);
    Fill(to_, 0);
    cl_int error = CL_SUCCESS;
    gate_ = clCreateUserEvent(cl_.context, &error);
    ASSERT_EQ(error, CL_SUCCESS);
  }
  void TearDown() override {
    if (gate_ != nullptr) clReleaseEvent(gate_);
    if (other_ != nullptr) clReleaseCommandQueue(other_);
    for (const cl_mem each : {from_, to_}) {
      if (each != nullptr) clReleaseMemObject(each);
    }
  }
  void Fill(cl_mem buffer, cl_uchar value) {
    ASSERT_EQ(clEnqueueFillBuffer(cl_.queue, buffer, &value, 1, 0, size_, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  }
  /// Of the first buffer, when the gate is open.
  void Read(cl_command_queue queue, cl_event* event = nullptr) {
    ASSERT_EQ(clEnqueueReadBuffer(queue, from_, CL_FALSE, 0, size_, host_.data(), 1, &gate_, event), CL_SUCCESS);
  }
  void Open() { ASSERT_EQ(clSetUserEventStatus(gate_, CL_COMPLETE), CL_SUCCESS); }
  void Expect(cl_mem buffer, cl_uchar value, cl_command_queue queue) {
    std::vector<cl_uchar> found(size_);
    ASSERT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size_, found.data(), 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(found, std::vector<cl_uchar>(size_, value));
  }

  ClSetup cl_;
  size_t size_ = 0;
  std::vector<cl_uchar> host_;
  cl_mem from_ = nullptr, to_ = nullptr;
  cl_command_queue other_ = nullptr;
  cl_event gate_ = nullptr;
};

TEST_P(LateWrites, BehindARead) {
  Read(cl_.queue);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, to_, CL_FALSE, 0, size_, host_.data(), 0, nullptr, nullptr), CL_SUCCESS);
  Open();
  Expect(to_, 7, cl_.queue);
  EXPECT_EQ(host_, std::vector<cl_uchar>(size_, 7));
}

TEST_P(LateWrites, BehindAReadThatIsUnderWay) {
  Open();
  for (cl_uchar round = 1; round <= 20; ++round) {
    ASSERT_EQ(clEnqueueFillBuffer(cl_.queue, from_, &round, 1, 0, size_, 0, nullptr, nullptr), CL_SUCCESS);
    Read(cl_.queue);
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, to_, CL_FALSE, 0, size_, host_.data(), 0, nullptr, nullptr), CL_SUCCESS);
    Expect(to_, round, cl_.queue);
  }
}

TEST_P(LateWrites, ReadsIntoTheSameMemoryLandInTheirOrder) {
  // One travels within a reply, the other does not, in both orders.
  const size_t little = std::min<size_t>(size_, 1000);
  const cl_uchar other = 9;
  ASSERT_EQ(clEnqueueFillBuffer(cl_.queue, to_, &other, 1, 0, size_, 0, nullptr, nullptr), CL_SUCCESS);
  Read(cl_.queue);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, to_, CL_FALSE, 0, little, host_.data(), 0, nullptr, nullptr), CL_SUCCESS);
  Open();
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  std::vector<cl_uchar> expected(size_, 7);
  std::fill_n(expected.begin(), little, other);
  EXPECT_EQ(host_, expected);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, to_, CL_FALSE, 0, little, host_.data(), 0, nullptr, nullptr), CL_SUCCESS);
  Read(cl_.queue);
  // The reply is looked at when somebody waits; what came beside it has long been there.
  ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  EXPECT_EQ(host_, std::vector<cl_uchar>(size_, 7));
}

TEST_P(LateWrites, BehindAReadInAnotherQueue) {
  cl_event read = nullptr;
  Read(other_, &read);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, to_, CL_FALSE, 0, size_, host_.data(), 1, &read, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFlush(other_), CL_SUCCESS);
  Open();
  Expect(to_, 7, cl_.queue);
  clReleaseEvent(read);
}

TEST_P(LateWrites, ThoseOfOtherMemoryDoNotWait) {
  const std::vector<cl_uchar> mine(size_, 5);
  cl_event written = nullptr;
  Read(other_);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, to_, CL_FALSE, 0, size_, mine.data(), 0, nullptr, &written), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, &written), CL_SUCCESS);
  Expect(to_, 5, cl_.queue);
  Open();
  ASSERT_EQ(clFinish(other_), CL_SUCCESS);
  clReleaseEvent(written);
}

TEST_P(LateWrites, OthersDoNotWaitForThem) {
  const std::vector<cl_uchar> mine(size_, 5);
  const cl_mem third = cl_.Buffer(size_);
  Read(cl_.queue);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, to_, CL_FALSE, 0, size_, host_.data(), 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueWriteBuffer(other_, third, CL_FALSE, 0, size_, mine.data(), 0, nullptr, nullptr), CL_SUCCESS);
  Expect(third, 5, other_);
  Open();
  Expect(to_, 7, cl_.queue);
  clReleaseMemObject(third);
}

TEST_P(LateWrites, ThatBlock) {
  Open();
  Read(cl_.queue);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, to_, CL_TRUE, 0, size_, host_.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(host_, std::vector<cl_uchar>(size_, 7));
  Expect(to_, 7, cl_.queue);
}

TEST_P(LateWrites, OfRows) {
  const std::array<size_t, 3> origin = {0, 0, 0}, region = {size_ / 8, 4, 1};  // The left half of each of four.
  Read(cl_.queue);
  ASSERT_EQ(clEnqueueWriteBufferRect(cl_.queue, to_, CL_FALSE, origin.data(), origin.data(), region.data(), size_ / 4,
                                     0, size_ / 4, 0, host_.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  Open();
  std::vector<cl_uchar> found(size_), wanted(size_);
  for (size_t i = 0; i < size_; ++i) wanted[i] = i % (size_ / 4) < size_ / 8 ? 7 : 0;
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, to_, CL_TRUE, 0, size_, found.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(found, wanted);
}

TEST_P(LateWrites, OfAMappingThatIsReadInto) {
  cl_int error = CL_SUCCESS;
  const cl_mem between = cl_.Buffer(size_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
  void* const mapping =
      clEnqueueMapBuffer(cl_.queue, between, CL_TRUE, CL_MAP_WRITE, 0, size_, 0, nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, from_, CL_FALSE, 0, size_, mapping, 1, &gate_, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueUnmapMemObject(cl_.queue, between, mapping, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyBuffer(cl_.queue, between, to_, 0, 0, size_, 0, nullptr, nullptr), CL_SUCCESS);
  clReleaseMemObject(between);
  Open();
  Expect(to_, 7, cl_.queue);
}

TEST_P(LateWrites, OfAMappingThatNobodyWaitedFor) {
  cl_int error = CL_SUCCESS;
  void* const mapping =
      clEnqueueMapBuffer(cl_.queue, from_, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, size_, 1, &gate_, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  ASSERT_EQ(clEnqueueUnmapMemObject(cl_.queue, from_, mapping, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyBuffer(cl_.queue, from_, to_, 0, 0, size_, 0, nullptr, nullptr), CL_SUCCESS);
  // What the command uses lives as long as it needs it.
  clReleaseMemObject(from_);
  from_ = nullptr;
  Open();
  Expect(to_, 7, cl_.queue);
}

INSTANTIATE_TEST_SUITE_P(Bytes, LateWrites, testing::Values(size_t{64}, size_t{4} << 20),
                         [](const auto& tested) { return std::to_string(tested.param); });

}  // namespace
