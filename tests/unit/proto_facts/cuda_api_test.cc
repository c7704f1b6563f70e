// SPDX-License-Identifier: Apache-2.0
// The table of the driver API's entry points, and what cuGetProcAddress answers from it.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "proto/cuda_api/error_text.h"
#include "proto/cuda_api/private_interface.h"
#include "proto/cuda_api/proc_table.h"

namespace hawser::cuda_api {
namespace {

constexpr uint32_t kDriver = 13000;

/// Every parameter list of the table is that of the declaration in cuda.h.
#define HAWSER_CUDA_ENTRY(symbol, name, version, per_thread, result, params, args) \
  static_assert(std::is_same_v<decltype(&::symbol), result(*) params>);
#include "cuda_api/entry_points.inc"
#undef HAWSER_CUDA_ENTRY

/// Every symbol's address stands for its position plus one.
class CudaProcTable : public testing::Test {
 protected:
  CudaProcTable() : addresses_(ProcEntries().size()) {
    for (size_t i = 0; i < addresses_.size(); ++i) addresses_[i] = reinterpret_cast<void*>(i + 1);
  }

  std::string Symbol(const void* address) const {
    return address == nullptr ? "" : ProcEntries()[reinterpret_cast<size_t>(address) - 1].symbol;
  }
  /// Symbol that cuGetProcAddress_v2 gives; "" and `status_` otherwise.
  std::string Get(const char* name, int version, uint64_t flags = 0) {
    void* address = this;
    result_ = ProcTable(addresses_, kDriver).Get(name, &address, version, flags, &status_);
    return result_ == CUDA_SUCCESS ? Symbol(address) : "";
  }

  std::vector<void*> addresses_;
  int result_ = -1;
  int status_ = -1;
};

TEST_F(CudaProcTable, HoldsEverySymbolOnceAndInOrder) {
  std::set<std::string> symbols;
  const ProcEntry* last = nullptr;
  for (const ProcEntry& entry : ProcEntries()) {
    EXPECT_TRUE(symbols.insert(entry.symbol).second) << entry.symbol;
    EXPECT_GE(entry.version, 2000U) << entry.symbol;
    EXPECT_LE(entry.version, static_cast<uint32_t>(CUDA_VERSION)) << entry.symbol;
    EXPECT_EQ(std::string(entry.symbol).rfind(entry.name, 0), 0U) << entry.symbol;
    if (last != nullptr && std::string(last->name) == entry.name && last->per_thread == entry.per_thread) {
      EXPECT_LT(last->version, entry.version) << entry.symbol;
    }
    if (last != nullptr) {
      EXPECT_LE(std::string(last->name), entry.name);
    }
    last = &entry;
  }
  if (CUDA_VERSION / 1000 == 13 && CUDA_VERSION < 13010) {
    EXPECT_EQ(symbols.size(), 637U + 35U);  // cuda.h and cudaProfiler.h; OpenGL, EGL, VDPAU.
  }
  EXPECT_TRUE(symbols.contains("cuMemcpyHtoD_v2_ptds"));
  EXPECT_TRUE(symbols.contains("cuProfilerStart"));
}

TEST_F(CudaProcTable, GivesTheNewestVariantThatIsNotNewerThanAsked) {
  EXPECT_EQ(Get("cuMemAlloc", 3020), "cuMemAlloc_v2");
  EXPECT_EQ(Get("cuMemAlloc", 13000), "cuMemAlloc_v2");
  EXPECT_EQ(Get("cuMemAlloc", 3010), "cuMemAlloc");
  EXPECT_EQ(Get("cuDeviceGetUuid", 9020), "cuDeviceGetUuid");
  EXPECT_EQ(Get("cuDeviceGetUuid", 11040), "cuDeviceGetUuid_v2");
  EXPECT_EQ(Get("cuDevicePrimaryCtxReset", 7000), "cuDevicePrimaryCtxReset");
  EXPECT_EQ(Get("cuGetProcAddress", 11030), "cuGetProcAddress");
  EXPECT_EQ(Get("cuGetProcAddress", 12000), "cuGetProcAddress_v2");
  EXPECT_EQ(Get("cuStreamGetCaptureInfo", 12020), "cuStreamGetCaptureInfo_v2");
  EXPECT_EQ(Get("cuCtxCreate", 13000), "cuCtxCreate_v4");
  EXPECT_EQ(Get("cuGLGetDevices", 4010), "cuGLGetDevices");
  EXPECT_EQ(Get("cuGLGetDevices", 13000), "cuGLGetDevices_v2");
  EXPECT_EQ(Get("cuVDPAUCtxCreate", 3010), "cuVDPAUCtxCreate");
  EXPECT_EQ(Get("cuVDPAUCtxCreate", 3020), "cuVDPAUCtxCreate_v2");
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SUCCESS);
}

TEST_F(CudaProcTable, GivesThePerThreadVariantOnlyWhenAsked) {
  constexpr uint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  constexpr uint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(Get("cuLaunchKernel", 7000, kPerThread), "cuLaunchKernel_ptsz");
  EXPECT_EQ(Get("cuLaunchKernel", 7000, kLegacy), "cuLaunchKernel");
  EXPECT_EQ(Get("cuLaunchKernel", 7000), "cuLaunchKernel");
  EXPECT_EQ(Get("cuMemcpyHtoD", 13000, kPerThread), "cuMemcpyHtoD_v2_ptds");
  EXPECT_EQ(Get("cuGLMapBufferObject", 13000, kPerThread), "cuGLMapBufferObject_v2_ptds");
  EXPECT_EQ(Get("cuLaunchKernel", 4000, kPerThread), "cuLaunchKernel");  // Per-thread variants came with 7.0.
  EXPECT_EQ(Get("cuInit", 2000, kPerThread), "cuInit");
}

TEST_F(CudaProcTable, SaysWhyThereIsNone) {
  EXPECT_EQ(Get("cuMemAllocAsync", 11010), "");
  EXPECT_EQ(result_, CUDA_SUCCESS);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(Get("cuNoSuchCall", 13000), "");
  EXPECT_EQ(result_, CUDA_SUCCESS);
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(Get("", 0), "");
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(Get("cuMemAlloc_v2", 13000), "");  // Public names only.
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(CudaProcTable, TreatsASymbolThatTheLibraryLacksAsNotFound) {
  const ProcResult found = FindProc("cuInit", 13000, false);
  ASSERT_EQ(found.status, ProcStatus::kFound);
  addresses_[found.index] = nullptr;
  EXPECT_EQ(Get("cuInit", 13000), "");
  EXPECT_EQ(status_, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(CudaProcTable, RefusesBadArguments) {
  const ProcTable table(addresses_, kDriver);
  void* address = nullptr;
  EXPECT_EQ(table.Get(nullptr, &address, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table.Get("cuInit", nullptr, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table.Get("cuInit", &address, 13010, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table.Get("cuInit", &address, -1, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table.Get("cuInit", &address, 13000, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table.Get("cuInit", &address, 13000, 3, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(table.Get("cuInit", &address, 13000, 0, nullptr), CUDA_SUCCESS);  // The status is optional.
}

TEST_F(CudaProcTable, FirstVersionReportsAMissingSymbolAsAnError) {
  const ProcTable table(addresses_, kDriver);
  void* address = this;
  EXPECT_EQ(table.GetV1("cuNoSuchCall", &address, 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(table.GetV1("cuMemAllocAsync", &address, 11010, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table.GetV1("cuMemAlloc", &address, 11010, 0), CUDA_SUCCESS);
  EXPECT_EQ(Symbol(address), "cuMemAlloc_v2");
}

/// Pairs of variants and versions, checked by their types: a wrong pairing of changed signatures does not compile.
static_assert(std::is_same_v<decltype(&::cuCtxCreate_v3), PFN_cuCtxCreate_v11040>);
static_assert(std::is_same_v<decltype(&::cuCtxCreate_v4), PFN_cuCtxCreate_v12050>);
static_assert(std::is_same_v<decltype(&::cuStreamGetCaptureInfo_v3), PFN_cuStreamGetCaptureInfo_v12030>);
static_assert(std::is_same_v<decltype(&::cuMemcpyBatchAsync_v2), PFN_cuMemcpyBatchAsync_v13000>);
static_assert(std::is_same_v<decltype(&::cuGraphAddKernelNode_v2), PFN_cuGraphAddKernelNode_v12000>);

TEST(CudaErrors, HaveNamesAndWords) {
  EXPECT_STREQ(ErrorName(CUDA_SUCCESS), "CUDA_SUCCESS");
  EXPECT_STREQ(ErrorName(CUDA_ERROR_ILLEGAL_ADDRESS), "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_STREQ(ErrorName(CUDA_ERROR_UNKNOWN), "CUDA_ERROR_UNKNOWN");
  EXPECT_EQ(ErrorName(12345), nullptr);
  EXPECT_EQ(ErrorText(12345), nullptr);
  EXPECT_STREQ(ErrorText(CUDA_SUCCESS), "no error");
  EXPECT_STREQ(ErrorText(CUDA_ERROR_INVALID_CLUSTER_SIZE), "invalid cluster size");
}

TEST(PrivateInterfaces, CompilersDoWithout) {
  EXPECT_TRUE(WorksWithout("/opt/cuda/lib/libnvrtc.so.13"));
  EXPECT_TRUE(WorksWithout("libnvJitLink.so.13"));
  EXPECT_FALSE(WorksWithout("/opt/libnvrtc.so/libcublas.so.13"));
  EXPECT_FALSE(WorksWithout("/usr/bin/program"));
  EXPECT_FALSE(WorksWithout(""));
}

}  // namespace
}  // namespace hawser::cuda_api
