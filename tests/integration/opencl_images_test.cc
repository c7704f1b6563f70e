// SPDX-License-Identifier: Apache-2.0
// Images of every kind: contents at creation, reads and writes with pitches, maps, copies, fills, queries, errors.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/integration/cl_fixture.h"
#include "tests/integration/random_bytes.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void invert(read_only image2d_t in, write_only image2d_t out) {
  int2 at = (int2)(get_global_id(0), get_global_id(1));
  uint4 pixel = read_imageui(in, nearest, at);
  write_imageui(out, at, (uint4)(255) - pixel);
}
)";

struct Kind {
  const char* name;
  cl_mem_object_type type;
  size_t width, height, depth, layers;
  size_t extent[3];
};
const Kind kKinds[] = {
    {"Line", CL_MEM_OBJECT_IMAGE1D, 300, 0, 0, 0, {300, 1, 1}},
    {"Lines", CL_MEM_OBJECT_IMAGE1D_ARRAY, 40, 0, 0, 6, {40, 6, 1}},
    {"Plane", CL_MEM_OBJECT_IMAGE2D, 37, 29, 0, 0, {37, 29, 1}},
    {"LargePlane", CL_MEM_OBJECT_IMAGE2D, 700, 600, 0, 0, {700, 600, 1}},
    {"Planes", CL_MEM_OBJECT_IMAGE2D_ARRAY, 33, 21, 0, 5, {33, 21, 5}},
    {"Space", CL_MEM_OBJECT_IMAGE3D, 31, 17, 9, 0, {31, 17, 9}},
};

class ImageTest : public ::testing::TestWithParam<Kind> {
 protected:
  ImageTest() : cl_(0, kSource) {}
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    cl_bool images = CL_FALSE;
    clGetDeviceInfo(cl_.device, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, nullptr);
    if (!images) GTEST_SKIP() << "the device has no images";
  }
  size_t Elements() const { return GetParam().extent[0] * GetParam().extent[1] * GetParam().extent[2]; }
  cl_mem Create(cl_mem_flags flags, void* host, size_t row_pitch = 0, size_t slice_pitch = 0) {
    const Kind& kind = GetParam();
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {};
    desc.image_type = kind.type;
    desc.image_width = kind.width;
    desc.image_height = kind.height;
    desc.image_depth = kind.depth;
    desc.image_array_size = kind.layers;
    desc.image_row_pitch = row_pitch;
    desc.image_slice_pitch = slice_pitch;
    cl_int error = CL_SUCCESS;
    cl_mem image = clCreateImage(cl_.context, flags, &format, &desc, host, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    return image;
  }
  std::vector<unsigned char> ReadAll(cl_mem image) {
    std::vector<unsigned char> back(Elements() * 4);
    EXPECT_EQ(clEnqueueReadImage(cl_.queue, image, CL_TRUE, kOrigin, GetParam().extent, 0, 0, back.data(), 0, nullptr,
                                 nullptr),
              CL_SUCCESS);
    return back;
  }
  static constexpr size_t kOrigin[3] = {0, 0, 0};
  ClSetup cl_;
};

TEST_P(ImageTest, ContentsAtCreation) {
  auto data = RandomBytes(Elements() * 4, 1);
  cl_mem image = Create(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, data.data());
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(ReadAll(image), data);
  clReleaseMemObject(image);
}

TEST_P(ImageTest, ContentsWithPitches) {
  const Kind& kind = GetParam();
  if (kind.type == CL_MEM_OBJECT_IMAGE1D || kind.type == CL_MEM_OBJECT_IMAGE1D_ARRAY) {
    GTEST_SKIP() << "one row: pitches of layers are tested with planes";
  }
  const size_t row = kind.width * 4 + 12;
  const bool layered = kind.type != CL_MEM_OBJECT_IMAGE2D;
  const size_t slice = row * (kind.height + 2);
  auto memory = RandomBytes(slice * kind.extent[2], 2);
  cl_mem image = Create(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, memory.data(), row, layered ? slice : 0);
  ASSERT_NE(image, nullptr);
  const auto back = ReadAll(image);
  size_t at = 0;
  for (size_t z = 0; z < kind.extent[2]; ++z) {
    for (size_t y = 0; y < kind.extent[1]; ++y, at += kind.width * 4) {
      ASSERT_EQ(std::memcmp(&back[at], &memory[z * slice + y * row], kind.width * 4), 0) << y << ' ' << z;
    }
  }
  clReleaseMemObject(image);
}

TEST_P(ImageTest, PartsAreWrittenAndRead) {
  const Kind& kind = GetParam();
  auto data = RandomBytes(Elements() * 4, 3);
  cl_mem image = Create(CL_MEM_READ_WRITE, nullptr);
  ASSERT_NE(image, nullptr);
  ASSERT_EQ(
      clEnqueueWriteImage(cl_.queue, image, CL_FALSE, kOrigin, kind.extent, 0, 0, data.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  size_t origin[3], region[3];
  for (int i = 0; i < 3; ++i) {
    origin[i] = kind.extent[i] > 4 ? 1 : 0;
    region[i] = kind.extent[i] > 4 ? kind.extent[i] - 3 : kind.extent[i];
  }
  auto part = RandomBytes(region[0] * region[1] * region[2] * 4, 4);
  ASSERT_EQ(clEnqueueWriteImage(cl_.queue, image, CL_TRUE, origin, region, 0, 0, part.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  size_t at = 0;
  for (size_t z = 0; z < region[2]; ++z) {
    for (size_t y = 0; y < region[1]; ++y, at += region[0] * 4) {
      std::memcpy(&data[(((z + origin[2]) * kind.extent[1] + y + origin[1]) * kind.extent[0] + origin[0]) * 4],
                  &part[at], region[0] * 4);
    }
  }
  EXPECT_EQ(ReadAll(image), data);
  std::vector<unsigned char> back(part.size());
  cl_event read = nullptr;
  ASSERT_EQ(clEnqueueReadImage(cl_.queue, image, CL_FALSE, origin, region, 0, 0, back.data(), 0, nullptr, &read),
            CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, &read), CL_SUCCESS);
  EXPECT_EQ(back, part);
  clReleaseEvent(read);
  const size_t too_far[3] = {kind.extent[0], 0, 0};
  EXPECT_EQ(clEnqueueReadImage(cl_.queue, image, CL_TRUE, too_far, region, 0, 0, back.data(), 0, nullptr, nullptr),
            CL_INVALID_VALUE);
  EXPECT_EQ(clEnqueueReadImage(cl_.queue, image, CL_TRUE, kOrigin, nullptr, 0, 0, back.data(), 0, nullptr, nullptr),
            CL_INVALID_VALUE);
  clReleaseMemObject(image);
}

TEST_P(ImageTest, MapsSeeAndKeepWhatIsWritten) {
  const Kind& kind = GetParam();
  for (const bool host_memory : {false, true}) {
    auto data = RandomBytes(Elements() * 4, 5);
    auto own = data;
    cl_mem image = Create(CL_MEM_READ_WRITE | (host_memory ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR), own.data());
    ASSERT_NE(image, nullptr);
    size_t origin[3], region[3];
    for (int i = 0; i < 3; ++i) {
      origin[i] = kind.extent[i] > 4 ? 2 : 0;
      region[i] = kind.extent[i] > 4 ? kind.extent[i] - 4 : kind.extent[i];
    }
    size_t row = 0, slice = 0;
    cl_int error = CL_SUCCESS;
    auto* memory =
        static_cast<unsigned char*>(clEnqueueMapImage(cl_.queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin,
                                                      region, &row, &slice, 0, nullptr, nullptr, &error));
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_NE(memory, nullptr);
    const bool lines = kind.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    EXPECT_GE(row, region[0] * 4);
    for (size_t z = 0; z < region[2]; ++z) {
      for (size_t y = 0; y < region[1]; ++y) {
        unsigned char* mapped = memory + z * slice + y * (lines ? slice : row);
        unsigned char* expected =
            &data[(((z + origin[2]) * kind.extent[1] + y + origin[1]) * kind.extent[0] + origin[0]) * 4];
        ASSERT_EQ(std::memcmp(mapped, expected, region[0] * 4), 0) << y << ' ' << z;
        for (size_t x = 0; x < region[0] * 4; ++x) mapped[x] = expected[x] = static_cast<unsigned char>(x + y * 3 + z);
      }
    }
    ASSERT_EQ(clEnqueueUnmapMemObject(cl_.queue, image, memory, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(ReadAll(image), data);
    clReleaseMemObject(image);
    clFinish(cl_.queue);
  }
}

TEST_P(ImageTest, FillsAndCopies) {
  const Kind& kind = GetParam();
  cl_mem image = Create(CL_MEM_READ_WRITE, nullptr);
  cl_mem other = Create(CL_MEM_READ_WRITE, nullptr);
  cl_mem buffer = cl_.Buffer(Elements() * 4);
  const cl_uint color[4] = {1, 2, 3, 4};
  ASSERT_EQ(clEnqueueFillImage(cl_.queue, image, color, kOrigin, kind.extent, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyImage(cl_.queue, image, other, kOrigin, kOrigin, kind.extent, 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyImageToBuffer(cl_.queue, other, buffer, kOrigin, kind.extent, 0, 0, nullptr, nullptr),
            CL_SUCCESS);
  std::vector<unsigned char> back(Elements() * 4);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, back.size(), back.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  for (size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i % 4 + 1) << i;
  const auto data = RandomBytes(back.size(), 6);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_FALSE, 0, data.size(), data.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyBufferToImage(cl_.queue, buffer, image, 0, kOrigin, kind.extent, 0, nullptr, nullptr),
            CL_SUCCESS);
  EXPECT_EQ(ReadAll(image), data);
  EXPECT_EQ(clEnqueueCopyBufferToImage(cl_.queue, buffer, image, 4, kOrigin, kind.extent, 0, nullptr, nullptr),
            CL_INVALID_VALUE);
  clReleaseMemObject(buffer);
  clReleaseMemObject(image);
  clReleaseMemObject(other);
}

TEST_P(ImageTest, Queries) {
  const Kind& kind = GetParam();
  cl_mem image = Create(CL_MEM_READ_ONLY, nullptr);
  const auto get = [&](cl_image_info param) {
    size_t value = 99;
    EXPECT_EQ(clGetImageInfo(image, param, sizeof(value), &value, nullptr), CL_SUCCESS);
    return value;
  };
  EXPECT_EQ(get(CL_IMAGE_WIDTH), kind.width);
  EXPECT_EQ(get(CL_IMAGE_HEIGHT), kind.height);
  EXPECT_EQ(get(CL_IMAGE_DEPTH), kind.depth);
  EXPECT_EQ(get(CL_IMAGE_ARRAY_SIZE), kind.layers);
  EXPECT_EQ(get(CL_IMAGE_ELEMENT_SIZE), 4u);
  EXPECT_EQ(get(CL_IMAGE_ROW_PITCH), kind.width * 4);
  cl_mem_object_type type = 0;
  EXPECT_EQ(clGetMemObjectInfo(image, CL_MEM_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
  EXPECT_EQ(type, kind.type);
  clReleaseMemObject(image);
}

TEST_P(ImageTest, KernelsSeeThem) {
  const Kind& kind = GetParam();
  if (kind.type != CL_MEM_OBJECT_IMAGE2D) GTEST_SKIP() << "the kernel takes one plane, no other kind of image";
  auto data = RandomBytes(Elements() * 4, 7);
  cl_mem in = Create(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, data.data());
  cl_mem out = Create(CL_MEM_WRITE_ONLY, nullptr);
  cl_kernel invert = cl_.Kernel("invert");
  ASSERT_EQ(clSetKernelArg(invert, 0, sizeof(cl_mem), &in), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArg(invert, 1, sizeof(cl_mem), &out), CL_SUCCESS);
  ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, invert, 2, nullptr, kind.extent, nullptr, 0, nullptr, nullptr),
            CL_SUCCESS);
  for (auto& byte : data) byte = static_cast<unsigned char>(255 - byte);
  EXPECT_EQ(ReadAll(out), data);
  clReleaseKernel(invert);
  clReleaseMemObject(in);
  clReleaseMemObject(out);
}

TEST_P(ImageTest, Errors) {
  const cl_image_format good = {CL_RGBA, CL_UNSIGNED_INT8};
  const cl_image_format bad = {CL_RGBA, 0x4242};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 8;
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(clCreateImage(cl_.context, 0, nullptr, &desc, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  EXPECT_EQ(clCreateImage(cl_.context, 0, &good, nullptr, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_IMAGE_DESCRIPTOR);
  EXPECT_EQ(clCreateImage(cl_.context, 0, &bad, &desc, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  desc.image_width = size_t{1} << 40;
  EXPECT_EQ(clCreateImage(cl_.context, 0, &good, &desc, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_IMAGE_SIZE);
  cl_mem buffer = cl_.Buffer(64);
  char byte = 0;
  const size_t one[3] = {1, 1, 1};
  EXPECT_EQ(clEnqueueReadImage(cl_.queue, buffer, CL_TRUE, kOrigin, one, 0, 0, &byte, 0, nullptr, nullptr),
            CL_INVALID_MEM_OBJECT);
  clReleaseMemObject(buffer);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ImageTest, ::testing::ValuesIn(kKinds),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace hawser::test
