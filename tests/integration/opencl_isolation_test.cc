// SPDX-License-Identifier: Apache-2.0
// A guest can hurt only itself: an out-of-bounds kernel ends its own worker, with the right error, and a neighbour in
// another process does not notice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
kernel void wild(global int* out, long where) { out[where] = 1; }
kernel void store(global int* out, int value) { out[0] = value; }
)";

/// The culprit: writes far outside every allocation, then must see an error, not success.
int Culprit() {
  ClSetup cl(0, kSource);
  if (!cl.ok()) return 1;
  cl_kernel kernel = cl.Kernel("wild");
  cl_mem buffer = cl.Buffer(64);
  const cl_long where = -(1ll << 45);
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  clSetKernelArg(kernel, 1, sizeof(where), &where);
  const size_t one = 1;
  cl_event event = nullptr;
  cl_int error = clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, &event);
  if (error != CL_SUCCESS) return 2;
  error = clFinish(cl.queue);
  if (error == CL_SUCCESS) return 3;
  if (error != CL_DEVICE_NOT_AVAILABLE) return 4;
  cl_int status = CL_COMPLETE;
  if (clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr) != CL_SUCCESS)
    return 5;
  if (status >= 0) return 6;
  // Every later call says so too; none hangs.
  if (clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr) == CL_SUCCESS) return 7;
  cl_int value = 0;
  if (clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, 4, &value, 0, nullptr, nullptr) == CL_SUCCESS) return 8;
  return 0;
}

TEST(IsolationTest, WildKernelEndsOnlyItsOwnSession) {
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  cl_kernel kernel = cl.Kernel("store");
  cl_mem buffer = cl.Buffer(sizeof(cl_int));
  ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(Culprit());
  }
  int rounds = 0;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 || rounds < 200) {
    const cl_int value = ++rounds;
    cl_int seen = -1;
    const size_t one = 1;
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(value), &value), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(seen, value);
    if (ended == child) break;
  }
  if (ended == 0) {
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "see Culprit() for the step";
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
}

}  // namespace
}  // namespace hawser::test
