// SPDX-License-Identifier: Apache-2.0
// Images as nvcc makes them: every compression, several targets, relocatable units behind a wrapper.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "proto/facts/fatbin.h"
#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

std::string File(const std::string& name) {
  std::ifstream file(std::string(HAWSER_TEST_IMAGES) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class SoftImage : public ContextTest {
 protected:
  void SetUp() override {
    if (std::string(HAWSER_TEST_IMAGES).empty()) GTEST_SKIP() << "there is no nvcc to make fatbins with";
    ContextTest::SetUp();
  }
  void TearDown() override {
    if (context_ != nullptr) ContextTest::TearDown();
  }
  void RunShift() {
    constexpr int kCount = 1000;
    const CUdeviceptr out = Alloc(kCount * sizeof(int));
    ASSERT_CUDA(CUDA_SUCCESS, Launch("shift", 4, 256, nullptr, out, kCount));
    std::vector<int> back(kCount);
    ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(back.data(), out, kCount * sizeof(int)));
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(back[static_cast<size_t>(i)], i + 100);
  }
};

class SoftCompressedImage : public SoftImage, public testing::WithParamInterface<const char*> {};

TEST_P(SoftCompressedImage, IsUnpackedAndRuns) {
  const std::string fatbin = File(std::string(GetParam()) + ".fatbin");
  ASSERT_FALSE(fatbin.empty());
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, fatbin.data()));
  RunShift();
}

TEST_P(SoftCompressedImage, CutOrDamagedIsRefused) {
  const std::string fatbin = File(std::string(GetParam()) + ".fatbin");
  const std::string path = testing::TempDir() + "hawser_cut_" + GetParam() + ".fatbin";
  std::ofstream(path, std::ios::binary).write(fatbin.data(), static_cast<std::streamsize>(fatbin.size() - 9));
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_CUDA(CUDA_ERROR_INVALID_IMAGE, cuModuleLoad(&module, path.c_str()));
  testing::internal::GetCapturedStderr();
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Modes, SoftCompressedImage, testing::Values("default", "size", "speed", "balance", "none"));

TEST_F(SoftImage, IsFoundBehindAWrapper) {
  const std::string fatbin = File("default.fatbin");
  const struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 1;
    const void* data;
    const void* extra = nullptr;
  } wrapper{.data = fatbin.data()};
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadFatBinary(&module_, &wrapper));
  RunShift();
}

TEST_F(SoftImage, RelocatableUnitsAreLinked) {
  const std::string main = File("rdc_main.fatbin");
  const std::string helper = File("rdc_helper.fatbin");
  ASSERT_FALSE(main.empty());
  const std::string without_ptx = File("cubin_only.fatbin");  // As the toolkit's own device library is.
  const void* const parts[] = {main.data(), without_ptx.data(), helper.data(), nullptr};
  const struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 2;
    const void* data = nullptr;
    const void* extra;
  } wrapper{.extra = parts};
  CUlibrary library = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuLibraryLoadData(&library, &wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuLibraryGetModule(&module_, library));
  const CUdeviceptr out = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, Launch("main_kernel", 1, 1, nullptr, out));
  EXPECT_EQ(Read(out), 42U);
  EXPECT_CUDA(CUDA_SUCCESS, cuLibraryUnload(library));
}

TEST_F(SoftImage, WithoutUsablePtxSaysWhatThereIs) {
  const std::string cubin = File("cubin_only.fatbin");
  const std::string newer = File("newer.fatbin");
  ASSERT_FALSE(cubin.empty());
  char error[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {error, reinterpret_cast<void*>(sizeof(error))};
  testing::internal::CaptureStderr();
  EXPECT_CUDA(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadDataEx(&module_, cubin.data(), 2, options, values));
  EXPECT_NE(std::string(error).find("cubin for sm_75"), std::string::npos) << error;
  values[1] = reinterpret_cast<void*>(sizeof(error));
  EXPECT_CUDA(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadDataEx(&module_, newer.data(), 2, options, values));
  EXPECT_NE(std::string(error).find("sm_120"), std::string::npos) << error;
  testing::internal::GetCapturedStderr();
  module_ = nullptr;
}

TEST_F(SoftImage, TheNewestTargetThatFitsIsTaken) {
  const std::string several = File("several.fatbin");  // compute_75, compute_90, compute_120: this device is 9.0.
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, several.data()));
  int version = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, Function("shift")));
  EXPECT_EQ(version, 90);
  RunShift();
}

}  // namespace
}  // namespace hawser::soft
