// SPDX-License-Identifier: Apache-2.0
// A program that was built with per-thread default streams: cuda.h gives it the _ptsz and _ptds variants.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

class SoftPerThread : public ContextTest {};

TEST_F(SoftPerThread, StreamZeroIsTheThreadsOwn) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(8);
  // The thread's stream waits for the host; another stream that blocks does not wait for it, as it would for the legacy
  // stream.
  const CUstream blocking = Stream(CU_STREAM_DEFAULT);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, nullptr, Address(flag), out));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, blocking, out + 4, 3));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(blocking));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(nullptr));
  EXPECT_EQ(Read(out), 1U);
  EXPECT_EQ(Read(out + 4), 3U);
}

TEST_F(SoftPerThread, TheLegacyStreamStillWaitsForIt) {
  volatile uint32_t* const flag = Flag();
  const CUdeviceptr out = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("spin", 1, 1, nullptr, Address(flag), out));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("bump", 1, 1, CU_STREAM_LEGACY, out));
  EXPECT_CUDA(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_LEGACY));
  *flag = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(CU_STREAM_LEGACY));
  EXPECT_EQ(Read(out), 2U);
}

}  // namespace
}  // namespace hawser::soft
