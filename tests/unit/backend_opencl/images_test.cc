// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

class Images : public testing::Test {
 protected:
  void SetUp() override {
    opencl::GetSupportedImageFormats get;
    get.context = session_.Context();
    get.flags = CL_MEM_READ_WRITE;
    get.image_type = CL_MEM_OBJECT_IMAGE2D;
    const auto formats = session_.Ask<opencl::ImageFormats>(get);
    ASSERT_TRUE(formats.has_value());
    ASSERT_EQ(formats->message.orders.size(), formats->message.types.size());
    bool found = false;
    for (uint32_t i = 0; i < formats->message.orders.size(); ++i) {
      found |= formats->message.orders[i] == CL_RGBA && formats->message.types[i] == CL_UNSIGNED_INT8;
    }
    if (!found) GTEST_SKIP() << "the device has no images";
    queue_ = session_.Queue();
  }

  opencl::CreateImage Description(uint64_t width, uint64_t height) {
    opencl::CreateImage create;
    create.image = session_.NewId(opencl::Handle::kMem);
    create.context = session_.Context();
    create.flags = CL_MEM_READ_WRITE;
    create.channel_order = CL_RGBA;
    create.channel_type = CL_UNSIGNED_INT8;
    create.image_type = CL_MEM_OBJECT_IMAGE2D;
    create.width = width;
    create.height = height;
    return create;
  }
  opencl::ReadImage ReadOf(Id image, uint64_t width, uint64_t height) {
    opencl::ReadImage read;
    read.queue = queue_;
    read.image = image;
    read.region = {width, height, 1};
    read.size = width * height * 4;
    return read;
  }
  std::vector<uint32_t> ReadAll(Id image, uint64_t width, uint64_t height) {
    const auto reply = session_.Ask<opencl::ReadReply>(ReadOf(image, width, height));
    return reply && reply->message.status == CL_SUCCESS ? ValuesOf<uint32_t>(reply->message.data)
                                                        : std::vector<uint32_t>();
  }

  Session session_;
  Id queue_;
};

std::vector<uint32_t> Pixels(size_t count) {
  std::vector<uint32_t> pixels(count);
  for (size_t i = 0; i < count; ++i) pixels[i] = static_cast<uint32_t>(i * 2654435761u);
  return pixels;
}

TEST_F(Images, InitialContentsReadAndWrite) {
  const std::vector<uint32_t> pixels = Pixels(8 * 4);
  opencl::CreateImage create = Description(8, 4);
  create.data_size = pixels.size() * 4;
  create.data = BytesOf(pixels);
  ASSERT_EQ(session_.Do(create), CL_SUCCESS);
  EXPECT_EQ(ReadAll(create.image, 8, 4), pixels);

  opencl::WriteImage write;
  write.queue = queue_;
  write.image = create.image;
  write.origin = {2, 1, 0};
  write.region = {2, 2, 1};
  write.size = 16;
  const std::vector<uint32_t> patch = {1, 2, 3, 4};
  write.data = BytesOf(patch);
  ASSERT_EQ(session_.Do(write), CL_SUCCESS);
  std::vector<uint32_t> expected = pixels;
  expected[10] = 1;
  expected[11] = 2;
  expected[18] = 3;
  expected[19] = 4;
  EXPECT_EQ(ReadAll(create.image, 8, 4), expected);
}

TEST_F(Images, OverTheBulkChannel) {
  constexpr uint64_t kSide = 256;
  const std::vector<uint32_t> pixels = Pixels(kSide * kSide);
  opencl::CreateImage create = Description(kSide, kSide);
  create.data_size = pixels.size() * 4;
  create.transfer = 1;
  session_.bulk_in().Deliver(1, OwnBytes(std::vector<uint32_t>(kSide * kSide, 5)));
  ASSERT_EQ(session_.Do(create), CL_SUCCESS);
  opencl::WriteImage write;
  write.queue = queue_;
  write.image = create.image;
  write.region = {kSide, kSide, 1};
  write.size = create.data_size;
  write.transfer = 2;
  ASSERT_EQ(session_.Do(write), CL_SUCCESS);
  opencl::ReadImage read = ReadOf(create.image, kSide, kSide);
  read.transfer = 3;
  ASSERT_EQ(session_.Do(read), CL_SUCCESS);
  session_.bulk_in().Deliver(2, OwnBytes(pixels));
  const auto result = session_.bulk_out().Await(3);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->data, OwnBytes(pixels));
}

TEST_F(Images, RegionsAndSizesThatLie) {
  opencl::CreateImage create = Description(8, 4);
  ASSERT_EQ(session_.Do(create), CL_SUCCESS);
  const auto refused = [&](opencl::ReadImage read) {
    const auto reply = session_.Ask<opencl::ReadReply>(read);
    return reply && reply->message.status == CL_INVALID_VALUE && reply->message.data.empty();
  };
  opencl::ReadImage read = ReadOf(create.image, 8, 4);
  read.size = 127;
  EXPECT_TRUE(refused(read));
  EXPECT_TRUE(refused(ReadOf(create.image, 9, 4)));
  EXPECT_TRUE(refused(ReadOf(create.image, 0, 4)));
  read = ReadOf(create.image, 8, 4);
  read.origin = {~uint64_t{0}, 0, 0};
  EXPECT_TRUE(refused(read));
  read.origin = {0, 0, 1};
  EXPECT_TRUE(refused(read));

  opencl::WriteImage write;
  write.queue = queue_;
  write.image = create.image;
  write.region = {8, 4, 1};
  write.size = 128;
  write.data = wire::AsBytes("abcd", 4);
  EXPECT_EQ(session_.Do(write), CL_INVALID_VALUE);
  write.image = session_.Buffer(128);
  EXPECT_EQ(session_.Do(write), CL_INVALID_MEM_OBJECT);

  create = Description(8, 4);
  create.data_size = 16;
  create.data = wire::AsBytes("0123456789abcdef", 16);
  EXPECT_EQ(session_.Do(create), CL_INVALID_HOST_PTR) << "the driver would read 128 bytes";
  create = Description(uint64_t{1} << 62, uint64_t{1} << 62);
  EXPECT_EQ(session_.Do(create), CL_INVALID_IMAGE_SIZE);
  create = Description(8, 4);
  create.channel_order = 0x1234;
  EXPECT_EQ(session_.Do(create), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
  create = Description(8, 4);
  create.parent = Id(static_cast<uint8_t>(opencl::Handle::kMem), 1, 9999);
  EXPECT_EQ(session_.Do(create), CL_INVALID_MEM_OBJECT);
}

TEST_F(Images, FillAndCopies) {
  opencl::CreateImage create = Description(8, 4);
  ASSERT_EQ(session_.Do(create), CL_SUCCESS);
  opencl::CreateImage other = Description(8, 4);
  ASSERT_EQ(session_.Do(other), CL_SUCCESS);
  opencl::EnqueueFillImage fill;
  fill.queue = queue_;
  fill.image = create.image;
  const uint32_t color[4] = {1, 2, 3, 4};
  std::memcpy(fill.color.data(), color, sizeof(color));
  fill.region = {8, 4, 1};
  ASSERT_EQ(session_.Do(fill), CL_SUCCESS);
  opencl::EnqueueCopyImage copy;
  copy.queue = queue_;
  copy.source = create.image;
  copy.destination = other.image;
  copy.region = {8, 4, 1};
  ASSERT_EQ(session_.Do(copy), CL_SUCCESS);
  EXPECT_EQ(ReadAll(other.image, 8, 4), std::vector<uint32_t>(32, 0x04030201));

  const std::vector<uint32_t> pixels = Pixels(32);
  const Id buffer = session_.BufferOf(pixels);
  opencl::EnqueueCopyBufferToImage in;
  in.queue = queue_;
  in.source = buffer;
  in.destination = create.image;
  in.region = {8, 4, 1};
  ASSERT_EQ(session_.Do(in), CL_SUCCESS);
  EXPECT_EQ(ReadAll(create.image, 8, 4), pixels);
  opencl::EnqueueCopyImageToBuffer out;
  out.queue = queue_;
  out.source = other.image;
  out.destination = buffer;
  out.region = {4, 1, 1};
  out.destination_offset = 16;
  ASSERT_EQ(session_.Do(out), CL_SUCCESS);
  std::vector<uint32_t> expected = pixels;
  std::fill(expected.begin() + 4, expected.begin() + 8, 0x04030201);
  EXPECT_EQ(session_.ReadAs<uint32_t>(queue_, buffer, 32), expected);

  in.source_offset = 4;
  EXPECT_EQ(session_.Do(in), CL_INVALID_VALUE) << "beyond the buffer";
  out.destination_offset = ~uint64_t{0} - 3;
  EXPECT_EQ(session_.Do(out), CL_INVALID_VALUE);
  fill.region = {8, 5, 1};
  EXPECT_EQ(session_.Do(fill), CL_INVALID_VALUE);
  copy.destination_origin = {1, 0, 0};
  EXPECT_EQ(session_.Do(copy), CL_INVALID_VALUE);
}

TEST_F(Images, InAKernelWithASampler) {
  const std::vector<uint32_t> pixels = Pixels(16);
  opencl::CreateImage create = Description(4, 4);
  create.data_size = 64;
  create.data = BytesOf(pixels);
  ASSERT_EQ(session_.Do(create), CL_SUCCESS);
  opencl::CreateSampler sampler;
  sampler.sampler = session_.NewId(opencl::Handle::kSampler);
  sampler.context = session_.Context();
  const uint64_t properties[] = {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE,
                                 CL_SAMPLER_ADDRESSING_MODE,   CL_ADDRESS_CLAMP_TO_EDGE,
                                 CL_SAMPLER_FILTER_MODE,       CL_FILTER_NEAREST};
  sampler.properties = wire::ArrayView<uint64_t>(properties, 6);
  ASSERT_EQ(session_.Do(sampler), CL_SUCCESS);
  const Id kernel = session_.Kernel(session_.Program(R"(
kernel void take(read_only image2d_t image, sampler_t how, global uint* out) {
  uint4 c = read_imageui(image, how, (int2)(3, 2));
  out[0] = c.x | c.y << 8 | c.z << 16 | c.w << 24;
})"),
                                    "take");
  ASSERT_TRUE(kernel);
  const Id out = session_.BufferOf(std::vector<uint32_t>{0});
  ASSERT_EQ(session_.SetBuffer(kernel, 0, create.image), CL_SUCCESS);
  opencl::SetKernelArg set;
  set.kernel = kernel;
  set.index = 1;
  set.kind = 3;
  set.size = sizeof(void*);
  set.object = sampler.sampler;
  ASSERT_EQ(session_.Do(set), CL_SUCCESS);
  EXPECT_EQ(session_.SetValue(kernel, 1, uint64_t{0x4141414141414141}), CL_INVALID_ARG_VALUE);
  EXPECT_EQ(session_.SetValue(kernel, 0, uint64_t{0x4141414141414141}), CL_INVALID_ARG_VALUE);
  ASSERT_EQ(session_.SetBuffer(kernel, 2, out), CL_SUCCESS);
  ASSERT_EQ(session_.Launch(queue_, kernel, 1), CL_SUCCESS);
  EXPECT_EQ(session_.ReadAs<uint32_t>(queue_, out, 1), std::vector<uint32_t>{pixels[11]});
}

TEST_F(Images, OverABuffer) {
  const std::vector<uint32_t> pixels = Pixels(64);
  const Id buffer = session_.BufferOf(pixels);
  opencl::CreateImage create = Description(64, 0);
  create.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  create.parent = buffer;
  const int32_t status = session_.Do(create);
  if (status != CL_SUCCESS) GTEST_SKIP() << "the device has no images over buffers: " << status;
  // Its end is announced behind the commands that are under way.
  const Id gate = session_.UserEvent();
  const Id busy = session_.Queue();
  ASSERT_EQ(session_.Write(busy, session_.Buffer(64), wire::AsBytes("abcd", 4), 0, {gate}), CL_SUCCESS);
  const Id out_of_order = session_.Queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  ASSERT_TRUE(out_of_order);
  ASSERT_EQ(session_.Release(create.image, true), CL_SUCCESS);
  EXPECT_FALSE(session_.HasReleased(create.image));
  ASSERT_EQ(session_.SetUserEvent(gate, CL_COMPLETE), CL_SUCCESS);
  EXPECT_TRUE(session_.AwaitReleased(create.image));
  ASSERT_EQ(session_.Release(buffer, true), CL_SUCCESS);
  EXPECT_TRUE(session_.AwaitReleased(buffer));
}

TEST_F(Images, ReleasedImagesAreAnnounced) {
  opencl::CreateImage create = Description(8, 4);
  ASSERT_EQ(session_.Do(create), CL_SUCCESS);
  ASSERT_EQ(session_.Release(create.image, true), CL_SUCCESS);
  EXPECT_TRUE(session_.AwaitReleased(create.image));
}

TEST_F(Images, FormatsOfAContextThatIsNone) {
  opencl::GetSupportedImageFormats get;
  get.context = Id(static_cast<uint8_t>(opencl::Handle::kContext), 1, 999);
  get.flags = CL_MEM_READ_WRITE;
  get.image_type = CL_MEM_OBJECT_IMAGE2D;
  const auto reply = session_.Ask<opencl::ImageFormats>(get);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->message.status, CL_INVALID_CONTEXT);
}

}  // namespace
}  // namespace hawser::server::ocl
