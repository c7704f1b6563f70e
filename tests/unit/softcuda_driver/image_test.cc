// SPDX-License-Identifier: Apache-2.0
// Images as nvcc makes them: every compression, several targets, relocatable units behind a wrapper.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

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

TEST_F(SoftImage, ABareCubinIsNamed) {
  const std::string fatbin = File("cubin_only.fatbin");
  fatbin::Reader reader(std::as_bytes(std::span(fatbin.data(), fatbin.size())));
  fatbin::Entry entry;
  ASSERT_TRUE(reader.Start().ok());
  ASSERT_TRUE(reader.Next(&entry).value());
  ASSERT_EQ(entry.compression, fatbin::Compression::kNone);
  const std::vector<std::byte> cubin(entry.payload.begin(), entry.payload.end());
  char error[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {error, reinterpret_cast<void*>(sizeof(error))};
  testing::internal::CaptureStderr();
  EXPECT_CUDA(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadDataEx(&module_, cubin.data(), 2, options, values));
  EXPECT_NE(std::string(error).find("cubin for sm_75"), std::string::npos) << error;
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cubin for sm_75"), std::string::npos);
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

class SoftTexture : public SoftImage {
 protected:
  void SetUp() override {
    SoftImage::SetUp();
    if (IsSkipped()) return;
    const std::string fatbin = File("textures.fatbin");
    ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, fatbin.data()));
    out_ = Alloc(64);
  }
  /// An array of floats 0, 1, 2, ..
  CUarray Array(size_t width, size_t height, size_t depth, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = width;
    shape.Height = height;
    shape.Depth = depth;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    shape.Flags = flags;
    CUarray array = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuArray3DCreate(&array, &shape));
    Fill(array, width, height, depth == 0 ? 1 : depth, 0);
    return array;
  }
  void Fill(CUarray array, size_t width, size_t height, size_t depth, float first) {
    std::vector<float> texels(width * height * depth);
    for (size_t i = 0; i < texels.size(); ++i) texels[i] = first + static_cast<float>(i);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = texels.data();
    copy.srcPitch = width * sizeof(float);
    copy.srcHeight = height;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = width * sizeof(float);
    copy.Height = height;
    copy.Depth = depth;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemcpy3D(&copy));
  }
  CUtexObject Texture(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture) {
    CUtexObject object = 0;
    EXPECT_CUDA(CUDA_SUCCESS, cuTexObjectCreate(&object, &resource, &texture, nullptr));
    return object;
  }
  CUtexObject Texture(CUarray array, const CUDA_TEXTURE_DESC& texture) {
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return Texture(resource, texture);
  }
  float Result(size_t index = 0) {
    float value = -1;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(&value, out_ + index * sizeof(value), sizeof(value)));
    return value;
  }
  template <typename... A>
  float Sample(const char* kernel, A... arguments) {
    EXPECT_CUDA(CUDA_SUCCESS, Launch(kernel, 1, 1, nullptr, arguments...));
    return Result();
  }

  CUdeviceptr out_ = 0;
};

TEST_F(SoftTexture, LinearMemoryIsFetched) {
  const std::vector<float> texels = {5, 6, 7};
  const CUdeviceptr memory = Alloc(12);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(memory, texels.data(), 12));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory;
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 12;
  ASSERT_CUDA(CUDA_SUCCESS, Launch("fetch_linear", 1, 4, nullptr, Texture(resource, {}), out_));
  EXPECT_EQ(Result(0), 5);
  EXPECT_EQ(Result(2), 7);
  EXPECT_EQ(Result(3), 0);  // Outside.
}

TEST_F(SoftTexture, TwoDimensionsAreFilteredAndAddressed) {
  const CUarray array = Array(4, 4, 0, 0);
  CUDA_TEXTURE_DESC nearest{};
  for (CUaddress_mode& mode : nearest.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  CUDA_TEXTURE_DESC linear = nearest;
  linear.filterMode = CU_TR_FILTER_MODE_LINEAR;
  EXPECT_EQ(Sample("sample_2d", Texture(array, nearest), out_, 2.5F, 1.5F), 6);
  EXPECT_EQ(Sample("sample_2d", Texture(array, nearest), out_, 99.0F, 1.5F), 7);
  EXPECT_EQ(Sample("sample_2d", Texture(array, linear), out_, 2.0F, 1.0F), 3.5F);
  CUDA_TEXTURE_DESC border = nearest;
  for (CUaddress_mode& mode : border.addressMode) mode = CU_TR_ADDRESS_MODE_BORDER;
  EXPECT_EQ(Sample("sample_2d", Texture(array, border), out_, 99.0F, 1.5F), 0);
  CUDA_TEXTURE_DESC wrap = nearest;
  for (CUaddress_mode& mode : wrap.addressMode) mode = CU_TR_ADDRESS_MODE_WRAP;
  wrap.flags = CU_TRSF_NORMALIZED_COORDINATES;
  EXPECT_EQ(Sample("sample_2d", Texture(array, wrap), out_, 1.125F, 0.125F), 0);
}

TEST_F(SoftTexture, PitchedBytesReadAsFractions) {
  size_t pitch = 0;
  CUdeviceptr memory = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAllocPitch(&memory, &pitch, 8, 2, 4));
  const uint8_t texel[4] = {0, 51, 102, 255};
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(memory + pitch + 4, texel, 4));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {memory, CU_AD_FORMAT_UNSIGNED_INT8, 4, 2, 2, pitch};
  Sample("sample_bytes", Texture(resource, {}), out_, 1.5F, 1.5F);
  EXPECT_EQ(Result(0), 0);
  EXPECT_FLOAT_EQ(Result(1), 0.2F);
  EXPECT_FLOAT_EQ(Result(2), 0.4F);
  EXPECT_EQ(Result(3), 1);
}

TEST_F(SoftTexture, LayersAndDepthAreTold) {
  EXPECT_EQ(Sample("sample_layer", Texture(Array(2, 2, 3, CUDA_ARRAY3D_LAYERED), {}), out_, 2), 8);
  EXPECT_EQ(Sample("sample_3d", Texture(Array(2, 2, 3, 0), {}), out_), 7);
}

TEST_F(SoftTexture, MipmapsHaveLevels) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = shape.Height = 4;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  CUmipmappedArray mipmap = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuMipmappedArrayCreate(&mipmap, &shape, 3));
  for (unsigned level = 0; level < 3; ++level) {
    CUarray array = nullptr;
    ASSERT_CUDA(CUDA_SUCCESS, cuMipmappedArrayGetLevel(&array, mipmap, level));
    Fill(array, 4U >> level, 4U >> level, 1, 100.0F * static_cast<float>(level));
  }
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = mipmap;
  CUDA_TEXTURE_DESC texture{};
  texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
  texture.maxMipmapLevelClamp = 10;
  const CUtexObject object = Texture(resource, texture);
  EXPECT_EQ(Sample("sample_level", object, out_, 0.0F), 5);
  EXPECT_EQ(Sample("sample_level", object, out_, 1.0F), 100);
  EXPECT_EQ(Sample("sample_level", object, out_, 2.0F), 200);
}

TEST_F(SoftTexture, SurfacesAreReadAndWritten) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 4;
  shape.Height = 2;
  shape.Format = CU_AD_FORMAT_SIGNED_INT32;
  shape.NumChannels = 1;
  shape.Flags = CUDA_ARRAY3D_SURFACE_LDST;
  CUarray array = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuArray3DCreate(&array, &shape));
  const int row[4] = {1, 2, 3, 4};
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyHtoA(array, 0, row, sizeof(row)));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUsurfObject surface = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuSurfObjectCreate(&surface, &resource));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("turn", 1, 4, nullptr, surface, 4));
  int turned[4] = {};
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcY = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = turned;
  copy.WidthInBytes = sizeof(turned);
  copy.Height = 1;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpy2D(&copy));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(turned[i], 4 - i);
}

}  // namespace
}  // namespace hawser::soft
