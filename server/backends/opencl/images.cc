// SPDX-License-Identifier: Apache-2.0
// Commands on images.
#include "server/backends/opencl/transfers.h"

namespace hawser::server::ocl {
namespace {

constexpr std::string_view kOutside = "the region is outside the image";

}  // namespace

int32_t OpenClBackend::EnqueueReadImage(const opencl::Call& call, const opencl::ReadImage& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const ImageShape* shape = nullptr;
  cl_mem image = command.Image(message.image, "image", &shape);
  uint64_t bytes = 0;
  command.Require(command.ok() && shape->Contains(message.origin, message.region) &&
                      RegionBytes(message.region, shape->element_size, &bytes) && bytes == message.size,
                  CL_INVALID_VALUE, "the region is outside the image or has another size");
  const auto read = [&](cl_command_queue queue, std::byte* to, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueReadImage(queue, image, CL_FALSE, message.origin.data(), message.region.data(), 0, 0, to, count,
                              waits, event);
  };
  return message.transfer == 0 ? ReadInline(call, command, bytes, read)
                               : ReadStaged(call, command, message.transfer, bytes, read);
}

int32_t OpenClBackend::EnqueueWriteImage(const opencl::Call& call, const opencl::WriteImage& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const ImageShape* shape = nullptr;
  cl_mem image = command.Image(message.image, "image", &shape);
  uint64_t bytes = 0;
  command.Require(command.ok() && shape->Contains(message.origin, message.region) &&
                      RegionBytes(message.region, shape->element_size, &bytes) && bytes == message.size,
                  CL_INVALID_VALUE, "the region is outside the image or has another size");
  const auto write = [&](cl_command_queue queue, const std::byte* from, cl_uint count, const cl_event* waits,
                         cl_event* event) {
    return clEnqueueWriteImage(queue, image, CL_FALSE, message.origin.data(), message.region.data(), 0, 0, from, count,
                               waits, event);
  };
  // What the message says is what the guest sends, also when it is wrong.
  if (message.transfer != 0) return WriteStaged(command, message.transfer, message.size, write);
  command.Require(message.data.size() == bytes, CL_INVALID_VALUE, "the data has another size than the region");
  return WriteInline(command, message.data, write);
}

int32_t OpenClBackend::EnqueueFillImage(const opencl::Call& call, const opencl::EnqueueFillImage& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const ImageShape* shape = nullptr;
  cl_mem image = command.Image(message.image, "image", &shape);
  command.Require(command.ok() && shape->Contains(message.origin, message.region), CL_INVALID_VALUE, kOutside);
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueFillImage(queue, image, message.color.data(), message.origin.data(), message.region.data(), count,
                              waits, event);
  });
}

int32_t OpenClBackend::EnqueueCopyImage(const opencl::Call& call, const opencl::EnqueueCopyImage& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const ImageShape *from = nullptr, *to = nullptr;
  cl_mem source = command.Image(message.source, "source", &from);
  cl_mem destination = command.Image(message.destination, "destination", &to);
  command.Require(command.ok() && from->Contains(message.source_origin, message.region) &&
                      to->Contains(message.destination_origin, message.region),
                  CL_INVALID_VALUE, kOutside);
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueCopyImage(queue, source, destination, message.source_origin.data(),
                              message.destination_origin.data(), message.region.data(), count, waits, event);
  });
}

int32_t OpenClBackend::EnqueueCopyImageToBuffer(const opencl::Call& call,
                                                const opencl::EnqueueCopyImageToBuffer& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const ImageShape* shape = nullptr;
  uint64_t total = 0, bytes = 0;
  cl_mem source = command.Image(message.source, "source", &shape);
  cl_mem destination = command.Buffer(message.destination, "destination", &total);
  command.Require(command.ok() && shape->Contains(message.origin, message.region) &&
                      RegionBytes(message.region, shape->element_size, &bytes) &&
                      InRange(message.destination_offset, bytes, total),
                  CL_INVALID_VALUE, "the region is outside the image or the buffer");
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueCopyImageToBuffer(queue, source, destination, message.origin.data(), message.region.data(),
                                      message.destination_offset, count, waits, event);
  });
}

int32_t OpenClBackend::EnqueueCopyBufferToImage(const opencl::Call& call,
                                                const opencl::EnqueueCopyBufferToImage& message) {
  Command command(*this, call, message.queue, message.wait_list, message.event);
  const ImageShape* shape = nullptr;
  uint64_t total = 0, bytes = 0;
  cl_mem source = command.Buffer(message.source, "source", &total);
  cl_mem destination = command.Image(message.destination, "destination", &shape);
  command.Require(command.ok() && shape->Contains(message.origin, message.region) &&
                      RegionBytes(message.region, shape->element_size, &bytes) &&
                      InRange(message.source_offset, bytes, total),
                  CL_INVALID_VALUE, "the region is outside the image or the buffer");
  if (!command.ok()) return command.Fail();
  return command.Run([&](cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event) {
    return clEnqueueCopyBufferToImage(queue, source, destination, message.source_offset, message.origin.data(),
                                      message.region.data(), count, waits, event);
  });
}

}  // namespace hawser::server::ocl
