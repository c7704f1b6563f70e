// SPDX-License-Identifier: Apache-2.0
// Functions of the program in stream order that take their time: what is behind them waits, and nobody else does.
#include <cuda.h>

#include <cstdint>
#include <cstdlib>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tests/integration/cuda_fixture.h"
#include "tests/integration/other_process.h"

namespace hawser {
namespace {

class CudaHostFunctions : public CudaTest {
 protected:
  static constexpr unsigned kCount = 1000;

  /// Another tenant's process, where the server has two; else one of ours.
  static std::vector<std::pair<std::string, std::string>> Others() {
    const char* const token = std::getenv("HAWSER_TEST_OTHER_TOKEN");
    if (token == nullptr) return {};
    return {{"HAWSER_TOKEN", token}};
  }
};

TEST_F(CudaHostFunctions, DISABLED_AddsSeven) {
  CUdeviceptr memory = 0;
  std::vector<uint32_t> values(kCount);
  HAWSER_CU(cuMemAlloc(&memory, kCount * sizeof(uint32_t)));
  HAWSER_CU(cuMemsetD32(memory, 5, kCount));
  HAWSER_CU(LaunchAdd(Function("add"), memory, kCount, 2, nullptr));
  HAWSER_CU(cuMemcpyDtoH(values.data(), memory, kCount * sizeof(uint32_t)));
  for (const uint32_t value : values) ASSERT_EQ(value, 7u);
  ASSERT_TRUE(HasFailure() == false);
  Starter().SayWord();
}

// The function ends when another process has used the device: who waited for the launch behind it would wait for ever.
TEST_F(CudaHostFunctions, NobodyElseWaitsForOne) {
  CUdeviceptr memory = 0;
  std::vector<uint32_t> values(kCount);
  CUstream stream = nullptr;
  HAWSER_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  HAWSER_CU(cuMemAlloc(&memory, kCount * sizeof(uint32_t)));
  CUfunction add = Function("add");
  // Alone for a while: then nobody is asked for what follows.
  for (int i = 0; i < 20; ++i) {
    HAWSER_CU(LaunchAdd(add, memory, kCount, 2, stream));
    HAWSER_CU(cuStreamSynchronize(stream));
  }
  HAWSER_CU(cuMemsetD32Async(memory, 1, kCount, stream));
  std::promise<void> go;
  const auto wait = [](void* data) { static_cast<std::promise<void>*>(data)->get_future().wait(); };
  HAWSER_CU(cuLaunchHostFunc(stream, wait, &go));
  for (int i = 0; i < 10; ++i) HAWSER_CU(LaunchAdd(add, memory, kCount, 2, stream));
  {
    OtherProcess other("CudaHostFunctions.DISABLED_AddsSeven", Others());
    EXPECT_TRUE(other.AwaitWord());
    EXPECT_TRUE(other.Wait());
  }
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  go.set_value();
  HAWSER_CU(cuStreamSynchronize(stream));
  HAWSER_CU(cuMemcpyDtoH(values.data(), memory, kCount * sizeof(uint32_t)));
  for (const uint32_t value : values) ASSERT_EQ(value, 21u);
  // The device is shared as before.
  OtherProcess other("CudaHostFunctions.DISABLED_AddsSeven", Others());
  EXPECT_TRUE(other.AwaitWord());
  HAWSER_CU(LaunchAdd(add, memory, kCount, 2, stream));
  HAWSER_CU(cuStreamSynchronize(stream));
  EXPECT_TRUE(other.Wait());
}

}  // namespace
}  // namespace hawser
