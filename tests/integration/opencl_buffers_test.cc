// SPDX-License-Identifier: Apache-2.0
// Buffers: every way of moving bytes, at sizes around each limit (in place, in the message, in bulk, in chunks).
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"
#include "tests/integration/random_bytes.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
kernel void add(global uchar* data, uint value) { data[get_global_id(0)] += value; }
kernel void slow(global uint* data, uint rounds) {
  uint x = data[0];
  for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  data[0] = x;
}
)";

const size_t kSizes[] = {1, 4, 100, 4096, 32767, 32768, 32769, 65537, 1 << 20, (4 << 20) + 1, 9 << 20};

class BufferTest : public ::testing::TestWithParam<cl_command_queue_properties> {
 protected:
  BufferTest() : cl_(GetParam(), kSource) {}
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    slow_ = cl_.Kernel("slow");
    slow_data_ = cl_.Buffer(4);
    const cl_uint zero = 0;
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, slow_data_, CL_TRUE, 0, 4, &zero, 0, nullptr, nullptr), CL_SUCCESS);
  }
  void TearDown() override {
    if (slow_ != nullptr) clReleaseKernel(slow_);
    if (slow_data_ != nullptr) clReleaseMemObject(slow_data_);
  }
  /// Keeps the device busy for some milliseconds, so that the queue is not idle.
  void MakeBusy() {
    const cl_uint rounds = 3000000;
    ASSERT_EQ(clSetKernelArg(slow_, 0, sizeof(cl_mem), &slow_data_), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(slow_, 1, sizeof(rounds), &rounds), CL_SUCCESS);
    const size_t one = 1;
    ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, slow_, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  }

  ClSetup cl_;
  cl_kernel slow_ = nullptr;
  cl_mem slow_data_ = nullptr;
};

TEST_P(BufferTest, BlockingRoundTrips) {
  for (const size_t size : kSizes) {
    for (const bool busy : {false, true}) {
      cl_mem buffer = cl_.Buffer(size + 7);
      const auto data = RandomBytes(size, static_cast<unsigned>(size));
      std::vector<unsigned char> back(size);
      if (busy) MakeBusy();
      ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_TRUE, 5, size, data.data(), 0, nullptr, nullptr),
                CL_SUCCESS);
      // An out-of-order queue promises order between commands only through events and barriers.
      if (cl_.queue != nullptr) {
        ASSERT_EQ(clEnqueueBarrierWithWaitList(cl_.queue, 0, nullptr, nullptr), CL_SUCCESS);
      }
      if (busy) MakeBusy();
      ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 5, size, back.data(), 0, nullptr, nullptr), CL_SUCCESS);
      ASSERT_EQ(back, data) << size << (busy ? " busy" : " idle");
      clReleaseMemObject(buffer);
    }
  }
}

TEST_P(BufferTest, EventsCompleteOnceDataLanded) {
  for (const size_t size : kSizes) {
    cl_mem buffer = cl_.Buffer(size);
    const auto data = RandomBytes(size, static_cast<unsigned>(size) + 1);
    std::vector<unsigned char> back(size);
    MakeBusy();
    cl_event written = nullptr;
    cl_event read = nullptr;
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_FALSE, 0, size, data.data(), 0, nullptr, &written),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_FALSE, 0, size, back.data(), 1, &written, &read), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, &read), CL_SUCCESS);
    ASSERT_EQ(back, data) << size;
    cl_int status = 1;
    ASSERT_EQ(clGetEventInfo(written, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr), CL_SUCCESS);
    EXPECT_EQ(status, CL_COMPLETE);
    clReleaseEvent(written);
    clReleaseEvent(read);
    clReleaseMemObject(buffer);
  }
}

TEST_P(BufferTest, FinishCoversReads) {
  const size_t size = 3 << 20;
  cl_mem buffer = cl_.Buffer(size);
  for (unsigned round = 0; round < 20; ++round) {
    const auto data = RandomBytes(size, round);
    std::vector<unsigned char> back(size), small(64);
    if (round % 2 == 0) MakeBusy();
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_FALSE, 0, size, data.data(), 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueBarrierWithWaitList(cl_.queue, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_FALSE, 0, size, back.data(), 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_FALSE, 9, 64, small.data(), 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
    ASSERT_EQ(back, data) << round;
    ASSERT_EQ(std::memcmp(small.data(), data.data() + 9, 64), 0) << round;
  }
  clReleaseMemObject(buffer);
}

TEST_P(BufferTest, LaterEventsCoverEarlierReads) {
  const size_t size = 5 << 20;
  cl_mem buffer = cl_.Buffer(size);
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  for (unsigned round = 0; round < 10; ++round) {
    const auto data = RandomBytes(size, 100 + round);
    std::vector<unsigned char> back(size);
    cl_event written = nullptr, read = nullptr, marked = nullptr;
    MakeBusy();
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_FALSE, 0, size, data.data(), 0, nullptr, &written),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_FALSE, 0, size, back.data(), 1, &written, &read), CL_SUCCESS);
    ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
    // Somebody else's event that waited for the read says as much as the read's own.
    ASSERT_EQ(clEnqueueMarkerWithWaitList(other, 1, &read, &marked), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, &marked), CL_SUCCESS);
    ASSERT_EQ(back, data) << round;
    for (cl_event event : {written, read, marked}) clReleaseEvent(event);
  }
  clReleaseCommandQueue(other);
  clReleaseMemObject(buffer);
}

TEST_P(BufferTest, LaterEventsCoverEarlierRectangles) {
  const size_t row = 4096, rows = 1024;
  cl_mem buffer = cl_.Buffer(row * rows);
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  const size_t origin[3] = {0, 0, 0};
  const size_t region[3] = {row - 96, rows, 1};
  for (unsigned round = 0; round < 30; ++round) {
    const auto data = RandomBytes(row * rows, 200 + round);
    std::vector<unsigned char> back(row * rows);
    cl_event written = nullptr, read = nullptr, marked = nullptr;
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_FALSE, 0, data.size(), data.data(), 0, nullptr, &written),
              CL_SUCCESS);
    ASSERT_EQ(clEnqueueReadBufferRect(cl_.queue, buffer, CL_FALSE, origin, origin, region, row, 0, row, 0, back.data(),
                                      1, &written, &read),
              CL_SUCCESS);
    ASSERT_EQ(clFlush(cl_.queue), CL_SUCCESS);
    ASSERT_EQ(clEnqueueMarkerWithWaitList(other, 1, &read, &marked), CL_SUCCESS);
    ASSERT_EQ(clWaitForEvents(1, &marked), CL_SUCCESS);
    for (size_t y = 0; y < rows; ++y) {
      ASSERT_EQ(std::memcmp(&back[y * row], &data[y * row], region[0]), 0) << "row " << y << " in round " << round;
    }
    for (cl_event event : {written, read, marked}) clReleaseEvent(event);
  }
  clReleaseCommandQueue(other);
  clReleaseMemObject(buffer);
}

TEST_P(BufferTest, Rectangles) {
  const size_t row = 64, rows = 32, slices = 12;
  for (const size_t scale : {size_t{1}, size_t{60}}) {  // In the message, and in bulk.
    const size_t width = row * scale;
    cl_mem buffer = cl_.Buffer(width * rows * slices);
    auto image = RandomBytes(width * rows * slices, 7);
    ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_TRUE, 0, image.size(), image.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    for (const bool busy : {false, true}) {
      const size_t buffer_origin[3] = {3, 2, 1};
      const size_t host_origin[3] = {1, 4, 2};
      const size_t region[3] = {width - 9, 20, 9};
      const size_t host_row = width + 5, host_slice = host_row * 30;
      auto host = RandomBytes(host_slice * 14, 8);
      auto expected = host;
      for (size_t z = 0; z < region[2]; ++z) {
        for (size_t y = 0; y < region[1]; ++y) {
          std::memcpy(&expected[(z + 2) * host_slice + (y + 4) * host_row + 1],
                      &image[(z + 1) * width * rows + (y + 2) * width + 3], region[0]);
        }
      }
      if (busy) MakeBusy();
      ASSERT_EQ(clEnqueueReadBufferRect(cl_.queue, buffer, CL_TRUE, buffer_origin, host_origin, region, width,
                                        width * rows, host_row, host_slice, host.data(), 0, nullptr, nullptr),
                CL_SUCCESS);
      ASSERT_EQ(host, expected);
      // Write it to another place and read all of it back.
      const size_t to[3] = {9, 11, 2};
      const size_t part[3] = {width - 20, 15, 5};
      const auto source = RandomBytes(host_slice * 14, 9);
      for (size_t z = 0; z < part[2]; ++z) {
        for (size_t y = 0; y < part[1]; ++y) {
          std::memcpy(&image[(z + 2) * width * rows + (y + 11) * width + 9],
                      &source[(z + 2) * host_slice + (y + 4) * host_row + 1], part[0]);
        }
      }
      if (busy) MakeBusy();
      cl_event written = nullptr;
      ASSERT_EQ(clEnqueueWriteBufferRect(cl_.queue, buffer, CL_FALSE, to, host_origin, part, width, width * rows,
                                         host_row, host_slice, source.data(), 0, nullptr, &written),
                CL_SUCCESS);
      std::vector<unsigned char> back(image.size());
      ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, back.size(), back.data(), 1, &written, nullptr),
                CL_SUCCESS);
      ASSERT_EQ(back, image);
      clReleaseEvent(written);
    }
    clReleaseMemObject(buffer);
  }
}

TEST_P(BufferTest, FillsAndCopies) {
  const size_t size = 1 << 18;
  cl_mem a = cl_.Buffer(size);
  cl_mem b = cl_.Buffer(size);
  const cl_uint pattern = 0x01020304;
  cl_event filled = nullptr, copied = nullptr;
  ASSERT_EQ(clEnqueueFillBuffer(cl_.queue, a, &pattern, sizeof(pattern), 16, size - 16, 0, nullptr, &filled),
            CL_SUCCESS);
  ASSERT_EQ(clEnqueueCopyBuffer(cl_.queue, a, b, 16, 0, size - 16, 1, &filled, &copied), CL_SUCCESS);
  std::vector<cl_uint> back((size - 16) / 4);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, b, CL_TRUE, 0, size - 16, back.data(), 1, &copied, nullptr), CL_SUCCESS);
  for (const cl_uint value : back) ASSERT_EQ(value, pattern);
  EXPECT_EQ(clEnqueueFillBuffer(cl_.queue, a, &pattern, 3, 0, 12, 0, nullptr, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clEnqueueFillBuffer(cl_.queue, a, &pattern, 4, 2, 8, 0, nullptr, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clEnqueueCopyBuffer(cl_.queue, a, a, 0, 8, 16, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
  EXPECT_EQ(clEnqueueCopyBuffer(cl_.queue, a, b, size, 0, 1, 0, nullptr, nullptr), CL_INVALID_VALUE);
  for (cl_event event : {filled, copied}) clReleaseEvent(event);
  clReleaseMemObject(a);
  clReleaseMemObject(b);
}

TEST_P(BufferTest, MapsSeeAndKeepWhatIsWritten) {
  for (const size_t size : kSizes) {
    for (const bool host_memory : {false, true}) {
      auto own = RandomBytes(size, 3);
      const auto start = own;
      cl_mem buffer = host_memory ? cl_.Buffer(size, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, own.data())
                                  : cl_.Buffer(size, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, own.data());
      // A kernel changes it; the map must show that.
      cl_kernel add = cl_.Kernel("add");
      const cl_uint value = 3;
      ASSERT_EQ(clSetKernelArg(add, 0, sizeof(cl_mem), &buffer), CL_SUCCESS);
      ASSERT_EQ(clSetKernelArg(add, 1, sizeof(value), &value), CL_SUCCESS);
      MakeBusy();
      cl_event added = nullptr, mapped = nullptr, unmapped = nullptr;
      ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, add, 1, nullptr, &size, nullptr, 0, nullptr, &added), CL_SUCCESS);
      const size_t offset = size > 10 ? 3 : 0;
      cl_int error = CL_SUCCESS;
      auto* memory = static_cast<unsigned char*>(clEnqueueMapBuffer(
          cl_.queue, buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, offset, size - offset, 1, &added, &mapped, &error));
      ASSERT_EQ(error, CL_SUCCESS);
      ASSERT_NE(memory, nullptr);
      if (host_memory) {
        EXPECT_EQ(memory, own.data() + offset);
      }
      cl_uint count = 0;
      ASSERT_EQ(clGetMemObjectInfo(buffer, CL_MEM_MAP_COUNT, sizeof(count), &count, nullptr), CL_SUCCESS);
      EXPECT_EQ(count, 1u);
      ASSERT_EQ(clWaitForEvents(1, &mapped), CL_SUCCESS);
      cl_command_type type = 0;
      ASSERT_EQ(clGetEventInfo(mapped, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
      EXPECT_EQ(type, cl_command_type{CL_COMMAND_MAP_BUFFER});
      auto expected = start;
      for (unsigned char& byte : expected) byte = static_cast<unsigned char>(byte + 3);
      ASSERT_EQ(std::memcmp(memory, &expected[offset], size - offset), 0) << size;
      for (size_t i = offset; i < size; ++i) memory[i - offset] = static_cast<unsigned char>(i);
      ASSERT_EQ(clEnqueueUnmapMemObject(cl_.queue, buffer, memory, 0, nullptr, &unmapped), CL_SUCCESS);
      cl_event again = nullptr;
      ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, add, 1, nullptr, &size, nullptr, 1, &unmapped, &again), CL_SUCCESS);
      std::vector<unsigned char> back(size);
      ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, size, back.data(), 1, &again, nullptr), CL_SUCCESS);
      for (size_t i = offset; i < size; ++i) expected[i] = static_cast<unsigned char>(i + 3);
      ASSERT_EQ(std::memcmp(&back[offset], &expected[offset], size - offset), 0) << size;
      EXPECT_EQ(clEnqueueUnmapMemObject(cl_.queue, buffer, memory, 0, nullptr, nullptr), CL_INVALID_VALUE);
      for (cl_event event : {added, mapped, unmapped, again}) clReleaseEvent(event);
      clReleaseKernel(add);
      clReleaseMemObject(buffer);
      clFinish(cl_.queue);
    }
  }
}

TEST_P(BufferTest, BlockingMapsInvalidateAndOverlap) {
  const size_t size = 1 << 20;
  cl_mem buffer = cl_.Buffer(size);
  const auto data = RandomBytes(size, 5);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_TRUE, 0, size, data.data(), 0, nullptr, nullptr), CL_SUCCESS);
  cl_int error = CL_SUCCESS;
  MakeBusy();
  void* all = clEnqueueMapBuffer(cl_.queue, buffer, CL_TRUE, CL_MAP_READ, 0, size, 0, nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(std::memcmp(all, data.data(), size), 0);
  void* half =
      clEnqueueMapBuffer(cl_.queue, buffer, CL_TRUE, CL_MAP_READ, size / 2, size / 2, 0, nullptr, nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  EXPECT_EQ(std::memcmp(half, data.data() + size / 2, size / 2), 0);
  EXPECT_EQ(clEnqueueUnmapMemObject(cl_.queue, buffer, all, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(clEnqueueUnmapMemObject(cl_.queue, buffer, half, 0, nullptr, nullptr), CL_SUCCESS);
  void* fresh = clEnqueueMapBuffer(cl_.queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 100, 1000, 0, nullptr,
                                   nullptr, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  std::memset(fresh, 0x5a, 1000);
  ASSERT_EQ(clEnqueueUnmapMemObject(cl_.queue, buffer, fresh, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueBarrierWithWaitList(cl_.queue, 0, nullptr, nullptr), CL_SUCCESS);
  std::vector<unsigned char> back(size);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, size, back.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(std::memcmp(back.data(), data.data(), 100), 0);
  EXPECT_EQ(back[100], 0x5a);
  EXPECT_EQ(back[1099], 0x5a);
  EXPECT_EQ(std::memcmp(back.data() + 1100, data.data() + 1100, size - 1100), 0);
  clReleaseMemObject(buffer);
}

TEST_P(BufferTest, SubBuffersAreWindows) {
  cl_uint bits = 0;
  ASSERT_EQ(clGetDeviceInfo(cl_.device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, nullptr), CL_SUCCESS);
  const size_t step = std::max<size_t>(bits / 8, 64);
  cl_mem buffer = cl_.Buffer(step * 8);
  auto data = RandomBytes(step * 8, 6);
  ASSERT_EQ(clEnqueueWriteBuffer(cl_.queue, buffer, CL_TRUE, 0, data.size(), data.data(), 0, nullptr, nullptr),
            CL_SUCCESS);
  cl_buffer_region region = {step * 2, step * 3};
  cl_int error = CL_SUCCESS;
  cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  ASSERT_EQ(error, CL_SUCCESS);
  std::vector<unsigned char> back(step);
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, part, CL_TRUE, step, step, back.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(std::memcmp(back.data(), data.data() + step * 3, step), 0);
  cl_mem associated = nullptr;
  size_t origin = 0;
  cl_mem_flags flags = 0;
  ASSERT_EQ(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(associated), &associated, nullptr),
            CL_SUCCESS);
  ASSERT_EQ(clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof(origin), &origin, nullptr), CL_SUCCESS);
  ASSERT_EQ(clGetMemObjectInfo(part, CL_MEM_FLAGS, sizeof(flags), &flags, nullptr), CL_SUCCESS);
  EXPECT_EQ(associated, buffer);
  EXPECT_EQ(origin, step * 2);
  EXPECT_EQ(flags, cl_mem_flags{CL_MEM_READ_WRITE});
  clReleaseMemObject(buffer);  // The part keeps it.
  ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, part, CL_TRUE, 0, step, back.data(), 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(std::memcmp(back.data(), data.data() + step * 2, step), 0);
  region.origin = 1;
  EXPECT_EQ(clCreateSubBuffer(part, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_MEM_OBJECT);  // No parts of parts.
  clReleaseMemObject(part);
}

TEST_P(BufferTest, Errors) {
  cl_mem buffer = cl_.Buffer(64);
  unsigned char bytes[64] = {};
  const auto read = [&](size_t offset, size_t size, void* to) {
    return clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, offset, size, to, 0, nullptr, nullptr);
  };
  EXPECT_EQ(read(0, 65, bytes), CL_INVALID_VALUE);
  EXPECT_EQ(read(65, 0, bytes), CL_INVALID_VALUE);
  EXPECT_EQ(read(SIZE_MAX, 2, bytes), CL_INVALID_VALUE);
  EXPECT_EQ(read(0, 64, nullptr), CL_INVALID_VALUE);
  EXPECT_EQ(clEnqueueReadBuffer(cl_.queue, nullptr, CL_TRUE, 0, 1, bytes, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
  EXPECT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 0, 1, bytes, 1, nullptr, nullptr),
            CL_INVALID_EVENT_WAIT_LIST);
  cl_int error = CL_SUCCESS;
  EXPECT_EQ(clCreateBuffer(cl_.context, 0, 0, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_BUFFER_SIZE);
  EXPECT_EQ(clCreateBuffer(cl_.context, 0, size_t{1} << 60, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_BUFFER_SIZE);
  EXPECT_EQ(clCreateBuffer(cl_.context, CL_MEM_COPY_HOST_PTR, 4, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_HOST_PTR);
  EXPECT_EQ(clCreateBuffer(cl_.context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 4, nullptr, &error), nullptr);
  EXPECT_EQ(error, CL_INVALID_VALUE);
  cl_mem secret = cl_.Buffer(64, CL_MEM_HOST_NO_ACCESS);
  EXPECT_EQ(clEnqueueReadBuffer(cl_.queue, secret, CL_TRUE, 0, 1, bytes, 0, nullptr, nullptr), CL_INVALID_OPERATION);
  EXPECT_EQ(clEnqueueWriteBuffer(cl_.queue, secret, CL_TRUE, 0, 1, bytes, 0, nullptr, nullptr), CL_INVALID_OPERATION);
  clReleaseMemObject(secret);
  clReleaseMemObject(buffer);
}

TEST_P(BufferTest, DestructorCallbacksRunOnceInReverseOrder) {
  struct Seen {
    std::atomic<int> count{0};
    int order[2] = {};
  } seen;
  struct Note {
    Seen* seen;
    int number;
  };
  static const auto callback = [](cl_mem, void* data) {
    auto* note = static_cast<Note*>(data);
    note->seen->order[note->seen->count.load()] = note->number;
    note->seen->count.fetch_add(1);
  };
  Note first{&seen, 1}, second{&seen, 2};
  cl_mem buffer = cl_.Buffer(1 << 16);
  ASSERT_EQ(clSetMemObjectDestructorCallback(
                buffer, +[](cl_mem mem, void* data) { callback(mem, data); }, &first),
            CL_SUCCESS);
  ASSERT_EQ(clSetMemObjectDestructorCallback(
                buffer, +[](cl_mem mem, void* data) { callback(mem, data); }, &second),
            CL_SUCCESS);
  MakeBusy();
  clReleaseMemObject(buffer);
  clFinish(cl_.queue);
  for (int i = 0; i < 5000 && seen.count.load() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(seen.count.load(), 2);
  EXPECT_EQ(seen.order[0], 2);
  EXPECT_EQ(seen.order[1], 1);
}

TEST_P(BufferTest, ManyShortLivedBuffers) {
  std::vector<unsigned char> data = RandomBytes(64 << 10, 1);
  cl_kernel add = cl_.Kernel("add");
  const cl_uint value = 1;
  ASSERT_EQ(clSetKernelArg(add, 1, sizeof(value), &value), CL_SUCCESS);
  for (int i = 0; i < 500; ++i) {
    cl_mem buffer = cl_.Buffer(data.size(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, data.data());
    ASSERT_NE(buffer, nullptr);
    ASSERT_EQ(clSetKernelArg(add, 0, sizeof(cl_mem), &buffer), CL_SUCCESS);
    const size_t size = 4096;  // Not all of it: where launches are split, it is many parts.
    cl_event added = nullptr;
    ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, add, 1, nullptr, &size, nullptr, 0, nullptr, &added), CL_SUCCESS);
    if (i % 50 == 0) {
      unsigned char byte = 0;
      ASSERT_EQ(clEnqueueReadBuffer(cl_.queue, buffer, CL_TRUE, 77, 1, &byte, 1, &added, nullptr), CL_SUCCESS);
      ASSERT_EQ(byte, static_cast<unsigned char>(data[77] + 1));
    }
    clReleaseEvent(added);
    clReleaseMemObject(buffer);  // Perhaps still in use: the device's memory must stay until then.
  }
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  clReleaseKernel(add);
}

INSTANTIATE_TEST_SUITE_P(Queues, BufferTest,
                         ::testing::Values(cl_command_queue_properties{0},
                                           cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE},
                                           cl_command_queue_properties{CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}),
                         [](const auto& each) {
                           return each.param == 0                           ? "InOrder"
                                  : each.param == CL_QUEUE_PROFILING_ENABLE ? "Profiling"
                                                                            : "OutOfOrder";
                         });

}  // namespace
}  // namespace hawser::test
