// SPDX-License-Identifier: Apache-2.0
// Guests beside each other on one server: who breaks or dies hurts nobody else.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "tests/integration/cuda_fixture.h"

namespace hawser {
namespace {

/// This program again, running one test that is disabled otherwise.
class Neighbour {
 public:
  explicit Neighbour(const std::string& test) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 9);
      ::close(ends[0]);
      ::close(ends[1]);
      const std::string filter = "--gtest_filter=" + test;
      ::execl("/proc/self/exe", "cuda_server_test", filter.c_str(), "--gtest_also_run_disabled_tests",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ends[0];
  }
  ~Neighbour() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      (void)Wait();
    }
    if (output_ >= 0) ::close(output_);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  /// Until it says so, or is gone.
  bool AwaitWord() const {
    char word = 0;
    return ::read(output_, &word, 1) == 1;
  }
  void Kill() const { ::kill(pid_, SIGKILL); }
  int Wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  /// From within the neighbour.
  static void SayWord() { (void)!::write(9, "x", 1); }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

/// Workers of the server that this test runs against.
int Workers() {
  const char* server = std::getenv("HAWSER_TEST_SERVER_PID");
  if (server == nullptr) return -1;
  std::ifstream children("/proc/" + std::string(server) + "/task/" + server + "/children");
  int count = 0;
  for (std::string pid; children >> pid;) ++count;
  return count;
}

/// Waits for a worker whose guest has just ended: it leaves a little after its guest.
bool AwaitWorkers(int wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Workers() != wanted) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

CUresult LaunchStore(CUfunction store, CUdeviceptr address, uint32_t value) {
  void* parameters[] = {&address, &value};
  return cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
}

class CudaServer : public CudaTest {};

TEST_F(CudaServer, DISABLED_GoesWild) {
  CUfunction store = Function("store");
  for (CUdeviceptr address = 0x200000000000; address < 0x200000000000 + (uint64_t{64} << 20); address += 4 << 20) {
    (void)LaunchStore(store, address, 0xdeadbeef);
    if (cuCtxSynchronize() != CUDA_SUCCESS) {
      HAWSER_CU(cuDevicePrimaryCtxReset(device_));
      HAWSER_CU(cuDevicePrimaryCtxRetain(&context_, device_));
      HAWSER_CU(cuCtxSetCurrent(context_));
      module_ = nullptr;
      store = Function("store");
      Neighbour::SayWord();
    }
  }
}

TEST_F(CudaServer, AWildKernelBesideUsChangesNothingHere) {
  constexpr uint32_t kCount = 4096;
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, kCount * 4));
  HAWSER_CU(cuMemsetD32(memory, 0, kCount));
  CUfunction add = Function("add");
  Neighbour wild("CudaServer.DISABLED_GoesWild");
  ASSERT_TRUE(wild.AwaitWord()) << "the neighbour has broken its context at least once";
  std::vector<uint32_t> back(kCount);
  for (uint32_t round = 1; round <= 200; ++round) {
    HAWSER_CU(LaunchAdd(add, memory, kCount, 1, nullptr));
    HAWSER_CU(cuMemcpyDtoH(back.data(), memory, kCount * 4));
    for (const uint32_t value : back) ASSERT_EQ(value, round);
  }
  const int status = wild.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(CudaServer, DISABLED_IsBusyUntilItIsKilled) {
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 256u << 20));
  CUfunction spin = Function("spin");
  uint32_t rounds = 2000000000;
  void* parameters[] = {&memory, &rounds};
  HAWSER_CU(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  std::vector<char> data(8u << 20);
  HAWSER_CU(cuMemcpyHtoDAsync(memory + 4096, data.data(), data.size(), nullptr));
  Neighbour::SayWord();
  (void)cuCtxSynchronize();
  FAIL() << "nobody killed it";
}

TEST_F(CudaServer, AGuestThatIsKilledLeavesNothing) {
  HAWSER_CU(cuCtxSynchronize());
  ASSERT_TRUE(AwaitWorkers(1)) << "our own worker alone, not the one of the test before this: " << Workers();
  Neighbour busy("CudaServer.DISABLED_IsBusyUntilItIsKilled");
  ASSERT_TRUE(busy.AwaitWord());
  EXPECT_EQ(Workers(), 2);
  busy.Kill();
  (void)busy.Wait();
  EXPECT_TRUE(AwaitWorkers(1)) << Workers();
  // And we go on.
  CUdeviceptr memory = 0;
  HAWSER_CU(cuMemAlloc(&memory, 1u << 20));
  HAWSER_CU(cuMemsetD32(memory, 3, 1u << 18));
  uint32_t value = 0;
  HAWSER_CU(cuMemcpyDtoH(&value, memory + 4096, 4));
  EXPECT_EQ(value, 3u);
}

}  // namespace
}  // namespace hawser
