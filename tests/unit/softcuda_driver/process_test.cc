// SPDX-License-Identifier: Apache-2.0
// What happens to a program as a whole: fork(), the end of the process, output of kernels.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

class SoftProcess : public ContextTest {};

TEST_F(SoftProcess, AChildOfForkIsToldToKeepOff) {
  const CUdeviceptr a = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, nullptr, a));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CUdeviceptr b = 0;
    const bool refused = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc(&b, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Read(a), 1U);  // The parent does not notice.
}

TEST_F(SoftProcess, ExitHandlersMayCallAndKernelsMayStillRun) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // A program of its own: this one has called cuInit, so its children cannot.
    ::execl("/proc/self/exe", "process_test", "--gtest_also_run_disabled_tests",
            "--gtest_filter=SoftExit.DISABLED_WithAKernelInFlight", nullptr);
    ::_exit(99);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// The processors that the calling thread may run on.
cpu_set_t Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  return set;
}

TEST_F(SoftProcess, ItsThreadsRunWhereTheEnvironmentSays) {
  const cpu_set_t all = Processors();
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &all)) --last;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("HAWSER_SOFT_PROCESSORS", std::to_string(last).c_str(), 1);
    ::execl("/proc/self/exe", "process_test", "--gtest_also_run_disabled_tests",
            "--gtest_filter=SoftPlace.DISABLED_OfItsThreads", nullptr);
    ::_exit(99);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

class SoftPlace : public ContextTest {};

TEST_F(SoftPlace, DISABLED_OfItsThreads) {
  const cpu_set_t mine = Processors();
  cpu_set_t device;
  CPU_ZERO(&device);
  const auto look = [](void* set) { *static_cast<cpu_set_t*>(set) = Processors(); };
  ASSERT_CUDA(CUDA_SUCCESS, cuLaunchHostFunc(Stream(), look, &device));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(CPU_COUNT(&device), 1);
  EXPECT_TRUE(CPU_ISSET(std::atoi(std::getenv("HAWSER_SOFT_PROCESSORS")), &device));
  // Kernels run there too, whole grids of them, and those who call stay where they are.
  const CUdeviceptr a = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, nullptr, a));
  EXPECT_EQ(Read(a), 1U);
  const cpu_set_t after = Processors();
  EXPECT_TRUE(CPU_EQUAL(&mine, &after));
}

class SoftExit : public ContextTest {
 protected:
  void TearDown() override {}  // The process ends with everything alive.
};

TEST_F(SoftExit, DISABLED_WithAKernelInFlight) {
  static CUdeviceptr out = 0;
  volatile uint32_t* const flag = Flag();
  out = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, Stream(), Address(flag), out));
  std::atexit([] {
    CUcontext current = nullptr;
    if (cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) ::_exit(2);
    if (cuMemsetD32(out, 1, 1) != CUDA_SUCCESS) ::_exit(3);
  });
}

}  // namespace
}  // namespace hawser::soft
