// SPDX-License-Identifier: Apache-2.0
// Errors that only the server can know, told late: the server of this test gives each session 64 MiB (limited.toml), so
// that creating a larger buffer succeeds in the guest and fails there. See docs/differences.md, "When errors are told".
#include <cstdlib>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

constexpr size_t kTooMuch = 96u << 20;
constexpr const char* kSource =
    "kernel void store(global int* out, int value) { out[0] = value; }"
    "kernel void slow(global int* out, int rounds) {"
    "  uint x = 1;"
    "  for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u + (x >> 16);"
    "  out[0] = (int)(x | 1u);"
    "}";

bool Strict() {
  const char* value = std::getenv("HAWSER_STRICT");
  return value != nullptr && value[0] == '1';
}

bool IsMemoryError(cl_int error) {
  return error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY;
}

class LateErrorTest : public ::testing::Test {
 protected:
  LateErrorTest() : cl_(0, kSource) { EXPECT_TRUE(cl_.ok()); }

  /// A buffer that the server refuses; null when the call itself already said so.
  cl_mem Refused(cl_int* error) { return clCreateBuffer(cl_.context, CL_MEM_READ_WRITE, kTooMuch, nullptr, error); }

  /// Session, queue and kernel still work.
  void ExpectWorks() {
    cl_mem buffer = cl_.Buffer(sizeof(cl_int));
    cl_kernel kernel = cl_.Kernel("store");
    const cl_int value = 4711;
    const size_t one = 1;
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(value), &value), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    cl_int seen = 0;
    ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(seen, value);
    clReleaseKernel(kernel);
    clReleaseMemObject(buffer);
  }

  ClSetup cl_;
};

TEST_F(LateErrorTest, AnObjectThatTheServerRefusedReportsItAtItsUses) {
  cl_int error = CL_SUCCESS;
  cl_mem buffer = Refused(&error);
  if (buffer == nullptr) {
    EXPECT_TRUE(IsMemoryError(error)) << error;  // Known in the guest, or strict: even better.
    return ExpectWorks();
  }
  EXPECT_FALSE(Strict()) << "a strict call returns the server's own code";
  // A blocking call on the object: at the latest now.
  cl_int value = 0;
  error = clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr);
  EXPECT_TRUE(IsMemoryError(error)) << error;
  // And for ever.
  error = clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, nullptr, nullptr);
  EXPECT_TRUE(IsMemoryError(error)) << error;
  EXPECT_EQ(clReleaseMemObject(buffer), CL_SUCCESS);
  (void)clFinish(cl_.queue);  // May tell of the first command once more.
  ExpectWorks();
}

TEST_F(LateErrorTest, ACommandOnItEndsItsEventWithTheCode) {
  cl_int error = CL_SUCCESS;
  cl_mem buffer = Refused(&error);
  if (buffer == nullptr) {
    EXPECT_TRUE(IsMemoryError(error)) << error;
    return ExpectWorks();
  }
  const cl_int pattern = 7;
  cl_event event = nullptr;
  error = clEnqueueFillBuffer(cl_.queue, buffer, &pattern, sizeof(pattern), 0, 4096, 0, nullptr, &event);
  if (error == CL_SUCCESS) {
    EXPECT_EQ(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    cl_int status = CL_COMPLETE;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), CL_SUCCESS);
    EXPECT_TRUE(IsMemoryError(status)) << status;
    clReleaseEvent(event);
  } else {
    EXPECT_TRUE(IsMemoryError(error)) << error;
  }
  clReleaseMemObject(buffer);
  (void)clFinish(cl_.queue);
  ExpectWorks();
}

TEST_F(LateErrorTest, ACommandThatFailedSaysNothingOfThoseBeforeIt) {
  constexpr cl_int kRounds = 200'000'000;
  cl_int pattern = 0;
  cl_int error = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(cl_.context, CL_MEM_COPY_HOST_PTR, sizeof(pattern), &pattern, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  cl_kernel slow = cl_.Kernel("slow");
  ASSERT_EQ(clSetKernelArg(slow, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArg(slow, 1, sizeof(kRounds), &kRounds), CL_SUCCESS);
  // Nothing waits from here on until the failing command is sent, so that it is not refused here.
  cl_mem refused = Refused(&error);
  if (refused == nullptr) return ExpectWorks();
  const size_t one = 1;
  ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, slow, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  cl_event event = nullptr;
  error = clEnqueueFillBuffer(cl_.queue, refused, &pattern, sizeof(pattern), 0, 4096, 0, nullptr, &event);
  if (error == CL_SUCCESS) {
    EXPECT_EQ(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    clReleaseEvent(event);
  }
  (void)clFinish(cl_.queue);
  cl_int seen = 0;
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_NE(seen, 0) << "the kernel before the failure had not ended";
  clReleaseKernel(slow);
  clReleaseMemObject(buffer);
  clReleaseMemObject(refused);
}

TEST_F(LateErrorTest, ACommandWithoutEventIsReportedOnceByTheQueue) {
  cl_int error = CL_SUCCESS;
  cl_mem buffer = Refused(&error);
  if (buffer == nullptr) {
    EXPECT_TRUE(IsMemoryError(error)) << error;
    return ExpectWorks();
  }
  const cl_int pattern = 7;
  error = clEnqueueFillBuffer(cl_.queue, buffer, &pattern, sizeof(pattern), 0, 4096, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) error = clFinish(cl_.queue);
  EXPECT_TRUE(IsMemoryError(error)) << error;
  EXPECT_EQ(clFinish(cl_.queue), CL_SUCCESS) << "an error is told once";
  clReleaseMemObject(buffer);
  ExpectWorks();
}

TEST_F(LateErrorTest, ALargeWriteToItIsDrainedAndTheNextOneArrives) {
  cl_int error = CL_SUCCESS;
  cl_mem refused = Refused(&error);
  if (refused == nullptr) {
    EXPECT_TRUE(IsMemoryError(error)) << error;
    return ExpectWorks();
  }
  // Larger than the server's staging memory (limited.toml: 16 MiB): its bytes are on their way and have no target.
  std::vector<cl_uint> data((80u << 20) / sizeof(cl_uint), 0xdeadbeefu);
  error = clEnqueueWriteBuffer(cl_.queue, refused, CL_FALSE, 0, data.size() * sizeof(cl_uint), data.data(), 0, nullptr,
                               nullptr);
  if (error == CL_SUCCESS) error = clFinish(cl_.queue);
  EXPECT_TRUE(IsMemoryError(error)) << error;
  clReleaseMemObject(refused);
  (void)clFinish(cl_.queue);

  std::vector<cl_uint> in((8u << 20) / sizeof(cl_uint));
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<cl_uint>(i * 2654435761u);
  std::vector<cl_uint> out(in.size());
  const size_t size = in.size() * sizeof(cl_uint);
  cl_mem buffer = cl_.Buffer(size);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_TRUE, 0, size, in.data(), 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, size, out.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(in, out);
  clReleaseMemObject(buffer);
  ExpectWorks();
}

}  // namespace
}  // namespace hawser::test
