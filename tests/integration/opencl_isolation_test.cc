// SPDX-License-Identifier: Apache-2.0
// A guest can hurt only itself: an out-of-bounds kernel ends its own worker, with the right error, and a neighbour in
// another process does not notice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
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

/// Releases a buffer that the wild kernel still holds: its destructor callbacks, behind which programs reuse memory,
/// run although nobody can say any more that the buffer is gone.
int Bereaved() {
  ClSetup cl(0, kSource);
  if (!cl.ok()) return 1;
  cl_kernel kernel = cl.Kernel("wild");
  cl_mem buffer = cl.Buffer(64);
  static std::atomic<int> calls = 0;
  static std::atomic<int> last = 0;
  for (int* which : {new int(1), new int(2)}) {
    if (clSetMemObjectDestructorCallback(
            buffer,
            [](cl_mem, void* data) {
              last = *static_cast<int*>(data);
              ++calls;
            },
            which) != CL_SUCCESS) {
      return 2;
    }
  }
  const cl_long where = -(1ll << 45);
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  clSetKernelArg(kernel, 1, sizeof(where), &where);
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(cl.context, &error);
  if (error != CL_SUCCESS) return 3;
  const size_t one = 1;
  if (clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 1, &gate, nullptr) != CL_SUCCESS) return 4;
  if (clFlush(cl.queue) != CL_SUCCESS || clReleaseMemObject(buffer) != CL_SUCCESS) return 5;
  if (calls != 0) return 6;
  if (clSetUserEventStatus(gate, CL_COMPLETE) != CL_SUCCESS) return 7;
  if (clFinish(cl.queue) == CL_SUCCESS) return 8;
  while (calls < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // alarm() ends it.
  return last == 1 ? 0 : 9;                                                     // The last registered runs first.
}

TEST(IsolationTest, DestructorCallbacksRunWhenTheSessionIsLost) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(Bereaved());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "see Bereaved() for the step";
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
