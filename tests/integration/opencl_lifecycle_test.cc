// SPDX-License-Identifier: Apache-2.0
// fork, exec, exit from any thread, dlclose, kill: nothing hangs, nothing is left on the server. with_server.py checks
// afterwards that every worker has gone.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
kernel void store(global int* out, int value) { out[0] = value; }
kernel void spin(global volatile int* stop) { while (stop[0] == 0) ; }
)";

/// Runs one kernel and reads its result. 0 when all is right.
int Work(int value) {
  ClSetup cl(0, kSource);
  if (!cl.ok()) return 1;
  cl_kernel kernel = cl.Kernel("store");
  cl_mem buffer = cl.Buffer(sizeof(cl_int));
  const cl_int argument = value;
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  clSetKernelArg(kernel, 1, sizeof(argument), &argument);
  const size_t one = 1;
  clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
  cl_int seen = 0;
  const cl_int error = clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, nullptr, nullptr);
  clReleaseMemObject(buffer);
  clReleaseKernel(kernel);
  return error == CL_SUCCESS && seen == value ? 0 : 2;
}

/// Starts a kernel that runs until the process is gone.
void StartEndlessKernel(ClSetup& cl) {
  cl_kernel kernel = cl.Kernel("spin");
  cl_int zero = 0;
  cl_mem buffer = cl.Buffer(sizeof(zero), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &zero);
  clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
  const size_t one = 1;
  clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
  clFlush(cl.queue);
}

int WaitFor(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return status;
}

template <typename Body>
pid_t Child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // A hang ends the child with SIGALRM, which the test then sees.
    body();
    _exit(200);
  }
  return child;
}

TEST(LifecycleTest, ChildOfForkConnectsAfreshAndParentGoesOn) {
  ASSERT_EQ(Work(1), 0);
  const pid_t child = Child([] { exit(Work(7)); });
  EXPECT_EQ(Work(2), 0);
  const int status = WaitFor(child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Work(3), 0);
}

TEST(LifecycleTest, ForkWhileAnotherThreadWaits) {
  ClSetup cl(0, kSource);
  ASSERT_TRUE(cl.ok());
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::thread busy([&] {
    while (!stop) {
      if (Work(5) != 0) ++failures;
    }
  });
  for (int i = 0; i < 10; ++i) {
    const pid_t child = Child([] { exit(0); });
    const int status = WaitFor(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(failures, 0);
}

TEST(LifecycleTest, ExecLeavesNothingBehind) {
  const pid_t child = Child([] {
    if (Work(1) != 0) _exit(1);
    execl("/bin/true", "true", nullptr);
  });
  const int status = WaitFor(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(LifecycleTest, ExitWhileAnotherThreadWaitsForEver) {
  const pid_t child = Child([] {
    auto* cl = new ClSetup(0, kSource);
    if (!cl->ok()) _exit(1);
    StartEndlessKernel(*cl);
    std::thread([cl] { clFinish(cl->queue); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    exit(42);
  });
  const int status = WaitFor(child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(LifecycleTest, ExitFromAnotherThreadThanMain) {
  const pid_t child = Child([] {
    auto* cl = new ClSetup(0, kSource);
    if (!cl->ok()) _exit(1);
    StartEndlessKernel(*cl);
    std::thread([] { exit(43); }).detach();
    clFinish(cl->queue);
  });
  const int status = WaitFor(child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 43);
}

TEST(LifecycleTest, KilledGuestTakesItsEndlessKernelWithIt) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = Child([&] {
    auto* cl = new ClSetup(0, kSource);
    if (!cl->ok()) _exit(1);
    StartEndlessKernel(*cl);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    clFinish(cl->queue);
  });
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  const int status = WaitFor(child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(Work(4), 0);  // and with_server.py waits for the killed guest's worker to be gone
}

TEST(LifecycleTest, LibraryMayBeClosed) {
  const pid_t child = Child([] {
    void* library = dlopen(HAWSER_ICD_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) _exit(1);
    using GetPlatforms = cl_int (*)(cl_uint, cl_platform_id*, cl_uint*);
    auto get = reinterpret_cast<GetPlatforms>(dlsym(library, "clIcdGetPlatformIDsKHR"));
    cl_uint count = 0;
    if (get == nullptr || get(0, nullptr, &count) != CL_SUCCESS || count == 0) _exit(2);
    if (dlclose(library) != 0) _exit(3);
    exit(0);
  });
  const int status = WaitFor(child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hawser::test
