// SPDX-License-Identifier: Apache-2.0
// Generated definitions: this program implements three entry points, the others come from generate.py.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "proto/cuda_api/interop.h"
#include "proto/cuda_api/unsupported.h"

namespace {
int per_thread_depth = 0;
int depth_at_query = -1;
std::map<std::string, int>& Said() {
  static auto* const said = new std::map<std::string, int>;
  return *said;
}
}  // namespace

extern "C" CUresult CUDAAPI cuInit(unsigned int flags) { return flags == 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

extern "C" CUresult CUDAAPI cuStreamQuery(CUstream stream) {
  depth_at_query = per_thread_depth;
  return stream == nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Over several lines, as a formatter may leave it.
extern "C" CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState, CUjitInputType, const char*, unsigned int, CUjit_option*,
                                             void**) {
  return CUDA_ERROR_FILE_NOT_FOUND;
}

namespace hawser::cuda_api {

CUresult Unsupported(const char* symbol, std::atomic_flag* said) {
  if (!said->test_and_set()) ++Said()[symbol];
  return CUDA_ERROR_NOT_SUPPORTED;
}
PerThreadDefaultStream::PerThreadDefaultStream() { ++per_thread_depth; }
PerThreadDefaultStream::~PerThreadDefaultStream() { --per_thread_depth; }

TEST(CudaStubs, EverySymbolIsDefined) {
  int symbols = 0;
#define HAWSER_CUDA_ENTRY(symbol, name, version, per_thread, result, params, args) \
  symbols += reinterpret_cast<void*>(&::symbol) != nullptr ? 1 : 0;
#include "cuda_api/entry_points.inc"
#undef HAWSER_CUDA_ENTRY
#define HAWSER_CUDA_INTEROP(symbol) symbols += reinterpret_cast<void*>(&::symbol) != nullptr ? 1 : 0;
#include "cuda_api/interop.inc"
#undef HAWSER_CUDA_INTEROP
  EXPECT_GE(symbols, 637 + 35);
}

TEST(CudaStubs, LeaveAloneWhatIsImplemented) {
  EXPECT_EQ(cuInit(7), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkAddFile_v2(nullptr, CU_JIT_INPUT_PTX, "", 0, nullptr, nullptr), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST(CudaStubs, SayTheirNameOnce) {
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemAlloc(nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(Said()["cuMemAlloc_v2"], 1);
  EXPECT_EQ(Said()["cuMemAlloc"], 1);
}

/// A program calls them with parameters that the definitions do not name.
TEST(CudaStubs, InteropRefusesWhateverItIsGiven) {
  const auto devices = reinterpret_cast<CUresult (*)(unsigned*, CUdevice*, unsigned, unsigned)>(
      reinterpret_cast<void*>(&cuGLGetDevices_v2));  // As a program does with what dlsym() gives it.
  unsigned count = 7;
  CUdevice device = 8;
  EXPECT_EQ(devices(&count, &device, 1, 1), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(count, 7U);
  EXPECT_EQ(device, 8);
  EXPECT_EQ(Said()["cuGLGetDevices_v2"], 1);
}

TEST(CudaStubs, PerThreadVariantsCallTheirTwinInScope) {
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(depth_at_query, 0);
  EXPECT_EQ(cuStreamQuery_ptsz(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(depth_at_query, 1);
  EXPECT_EQ(per_thread_depth, 0);
  EXPECT_EQ(cuStreamSynchronize_ptsz(nullptr), CUDA_ERROR_NOT_SUPPORTED);  // Its twin is a stub: it is one as well.
}

}  // namespace hawser::cuda_api
