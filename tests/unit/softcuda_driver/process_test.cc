// SPDX-License-Identifier: Apache-2.0
// What happens to a program as a whole: fork(), the end of the process, output of kernels.
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
