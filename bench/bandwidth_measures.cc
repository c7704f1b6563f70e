// SPDX-License-Identifier: Apache-2.0
#include "bench/bandwidth_measures.h"

#include <chrono>
#include <cstring>
#include <string>

namespace hawser::bench {
namespace {

using Clock = std::chrono::steady_clock;
using wire::Code;
using wire::Result;
using wire::Status;

constexpr size_t kPageWords = 1024;  // one stamp per 4 KiB

constexpr char kSource[] = R"(
__kernel void stamp(__global uint* words, uint seed) {
  size_t page = get_global_id(0);
  words[page * 1024] = seed + (uint)page;
}
)";

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Result<std::unique_ptr<BandwidthMeasures>> BandwidthMeasures::Create(const OpenClDevice& device) {
  std::unique_ptr<BandwidthMeasures> measures(new BandwidthMeasures(device));
  auto program = device.Build(kSource);
  if (!program.ok()) return program.status();
  measures->program_ = std::move(*program);
  auto kernel = OpenClDevice::CreateKernel(measures->program_, "stamp");
  if (!kernel.ok()) return kernel.status();
  measures->stamp_ = std::move(*kernel);
  return measures;
}

Result<Values> BandwidthMeasures::Run(Direction direction, HostMemory memory, size_t size, int repetitions) {
  if (size == 0 || size % (kPageWords * sizeof(cl_uint)) != 0) {
    return Status(Code::kInvalid, "bandwidth: " + std::to_string(size) + " bytes is not a multiple of 4096");
  }
  const size_t words = size / sizeof(cl_uint);
  if (source_.size() < words) {
    source_.assign(words, 0);
    sink_.assign(words, 0);
    for (size_t i = 0; i < words; ++i) source_[i] = static_cast<cl_uint>(i * 2654435761u + 99u);
  }
  const cl_mem_flags flags =
      memory == HostMemory::kMapped ? CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR : CL_MEM_READ_WRITE;
  auto buffer = device_.CreateBuffer(size, flags);
  if (!buffer.ok()) return buffer.status();
  // Touches every page on the device's side and leaves known bytes there.
  if (Status s = Check(
          clEnqueueWriteBuffer(device_.queue(), buffer->get(), CL_TRUE, 0, size, source_.data(), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
      !s.ok()) {
    return s;
  }
  if (Status s = Check(clFinish(device_.queue()), "clFinish"); !s.ok()) return s;
  auto seconds = direction == Direction::kHostToDevice ? Upload(buffer->get(), memory, size, repetitions)
                                                       : Download(buffer->get(), memory, size, repetitions);
  if (!seconds.ok()) return seconds.status();
  const double gib = static_cast<double>(size) * repetitions / double(1u << 30);
  return Values{{"gib_s", gib / *seconds}};
}

Result<double> BandwidthMeasures::Upload(cl_mem buffer, HostMemory memory, size_t size, int repetitions) {
  cl_int error = CL_SUCCESS;
  source_[1] += 1;  // so that the check below cannot pass on what was there before
  const auto begin = Clock::now();
  for (int i = 0; i < repetitions && error == CL_SUCCESS; ++i) {
    if (memory == HostMemory::kPageable) {
      error = clEnqueueWriteBuffer(device_.queue(), buffer, CL_TRUE, 0, size, source_.data(), 0, nullptr, nullptr);
    } else {
      void* mapped = clEnqueueMapBuffer(device_.queue(), buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, size, 0,
                                        nullptr, nullptr, &error);
      if (error != CL_SUCCESS) break;
      std::memcpy(mapped, source_.data(), size);
      error = clEnqueueUnmapMemObject(device_.queue(), buffer, mapped, 0, nullptr, nullptr);
    }
  }
  if (error == CL_SUCCESS) error = clFinish(device_.queue());
  const double seconds = Seconds(Clock::now() - begin);
  if (Status s = Check(error, memory == HostMemory::kPageable ? "writing the buffer" : "writing the mapped buffer");
      !s.ok()) {
    return s;
  }
  if (Status s =
          Check(clEnqueueReadBuffer(device_.queue(), buffer, CL_TRUE, 0, size, sink_.data(), 0, nullptr, nullptr),
                "clEnqueueReadBuffer");
      !s.ok()) {
    return s;
  }
  if (std::memcmp(source_.data(), sink_.data(), size) != 0) {
    return Status(Code::kInvalid, "bandwidth: the bytes that came back are not those that were written");
  }
  return seconds;
}

Result<double> BandwidthMeasures::Download(cl_mem buffer, HostMemory memory, size_t size, int repetitions) {
  const size_t pages = size / (kPageWords * sizeof(cl_uint));
  double seconds = 0;
  for (int i = 0; i < repetitions; ++i) {
    const auto seed = static_cast<cl_uint>(1000 * (i + 1));
    if (Status s = Stamp(buffer, pages, seed); !s.ok()) return s;
    cl_int error = CL_SUCCESS;
    const auto begin = Clock::now();
    if (memory == HostMemory::kPageable) {
      error = clEnqueueReadBuffer(device_.queue(), buffer, CL_TRUE, 0, size, sink_.data(), 0, nullptr, nullptr);
    } else {
      void* mapped =
          clEnqueueMapBuffer(device_.queue(), buffer, CL_TRUE, CL_MAP_READ, 0, size, 0, nullptr, nullptr, &error);
      if (error == CL_SUCCESS) {
        std::memcpy(sink_.data(), mapped, size);
        error = clEnqueueUnmapMemObject(device_.queue(), buffer, mapped, 0, nullptr, nullptr);
      }
    }
    seconds += Seconds(Clock::now() - begin);
    if (error == CL_SUCCESS) error = clFinish(device_.queue());
    if (Status s = Check(error, memory == HostMemory::kPageable ? "reading the buffer" : "reading the mapped buffer");
        !s.ok()) {
      return s;
    }
    if (Status s = ExpectStamps(pages, seed); !s.ok()) return s;
  }
  return seconds;
}

Status BandwidthMeasures::Stamp(cl_mem buffer, size_t pages, cl_uint seed) {
  cl_int error = clSetKernelArg(stamp_.get(), 0, sizeof(buffer), &buffer);
  error |= clSetKernelArg(stamp_.get(), 1, sizeof(seed), &seed);
  if (Status s = Check(error, "clSetKernelArg"); !s.ok()) return s;
  // One work-item per group: one kernel binary serves all sizes.
  const size_t local = 1;
  error = clEnqueueNDRangeKernel(device_.queue(), stamp_.get(), 1, nullptr, &pages, &local, 0, nullptr, nullptr);
  if (Status s = Check(error, "clEnqueueNDRangeKernel"); !s.ok()) return s;
  return Check(clFinish(device_.queue()), "clFinish");
}

Status BandwidthMeasures::ExpectStamps(size_t pages, cl_uint seed) const {
  for (size_t page = 0; page < pages; ++page) {
    const cl_uint expected = seed + static_cast<cl_uint>(page);
    if (sink_[page * kPageWords] != expected || sink_[page * kPageWords + 7] != source_[page * kPageWords + 7]) {
      return Status(Code::kInvalid,
                    "bandwidth: page " + std::to_string(page) + " of what was read is not what the device wrote");
    }
  }
  return Status::Ok();
}

}  // namespace hawser::bench
