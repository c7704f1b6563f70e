// SPDX-License-Identifier: Apache-2.0
// hawser-bench-codec: what the packed codec costs, alone, for the messages of the launch path.
//
// Each figure is the median over rounds of many repetitions, in nanoseconds for one message.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "proto/opencl/dispatch.h"
#include "proto/opencl/forwarding_handler.h"
#include "proto/opencl/messages.h"

namespace {

using namespace hawser;  // NOLINT: a program of one file.

constexpr int kRounds = 101;
constexpr int kRepetitions = 20000;

/// The compiler must assume that `value` is read and changed here.
template <typename T>
void Keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

template <typename Body>
double MedianNanoseconds(Body body) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepetitions; ++i) body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    rounds.push_back(took.count() / kRepetitions);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

template <typename Message>
void Measure(const char* name, opencl::Opcode opcode, Message message) {
  alignas(64) std::array<std::byte, 4096> memory;
  size_t size = 0;
  const auto encode = [&] {
    Keep(message);
    size = message.SizeOf();
    wire::Writer writer(memory.data(), size);
    message.Encode(writer);
    Keep(memory);
  };
  const auto decode = [&] {
    Keep(memory);
    wire::Reader reader(wire::Bytes(memory.data(), size));
    Message decoded;
    if (!decoded.Decode(reader) || !reader.Done()) std::abort();
    Keep(decoded);
  };
  opencl::ForwardingHandler handler([](const opencl::Call&, const auto& received) {
    Keep(const_cast<std::remove_cvref_t<decltype(received)>&>(received));
    return 0;
  });
  const auto dispatch = [&] {
    Keep(memory);
    wire::FrameHeader header{static_cast<uint32_t>(size), static_cast<uint16_t>(opcode), 0, 1};
    Keep(header);
    if (opencl::Dispatch(header, wire::Bytes(memory.data(), size), handler, nullptr).result !=
        opencl::DispatchResult::kDone) {
      std::abort();
    }
  };
  const double encoded = MedianNanoseconds(encode);
  const double decoded = MedianNanoseconds(decode);
  const double both = MedianNanoseconds([&] {
    encode();
    decode();
  });
  std::printf("%-40s %6zu %8.1f %8.1f %8.1f %10.1f\n", name, size, encoded, decoded, both, MedianNanoseconds(dispatch));
}

wire::Id IdOf(opencl::Handle handle) { return {static_cast<uint8_t>(handle), 1, 1}; }

}  // namespace

int main() {
  const uint64_t sizes[3] = {1024, 1024, 64};
  const wire::Id events[4] = {IdOf(opencl::Handle::kEvent), IdOf(opencl::Handle::kEvent), IdOf(opencl::Handle::kEvent),
                              IdOf(opencl::Handle::kEvent)};
  std::printf("%-40s %6s %8s %8s %8s %10s\n", "message (ns, median)", "bytes", "encode", "decode", "both", "dispatch");

  opencl::EnqueueNDRangeKernel launch;
  launch.queue = IdOf(opencl::Handle::kQueue);
  launch.kernel = IdOf(opencl::Handle::kKernel);
  launch.work_dim = 1;
  launch.global = {sizes, 1};
  Measure("clEnqueueNDRangeKernel, 1-D", opencl::Opcode::kEnqueueNDRangeKernel, launch);
  launch.work_dim = 3;
  launch.global = {sizes, 3};
  launch.local = {sizes, 3};
  launch.wait_list = {events, 4};
  launch.event = events[0];
  Measure("clEnqueueNDRangeKernel, 3-D, 4 waits", opencl::Opcode::kEnqueueNDRangeKernel, launch);

  const std::array<std::byte, 4> value{};
  opencl::SetKernelArg argument;
  argument.kernel = IdOf(opencl::Handle::kKernel);
  argument.kind = 1;
  argument.size = value.size();
  argument.value = value;
  Measure("clSetKernelArg, 4 bytes", opencl::Opcode::kSetKernelArg, argument);

  const std::array<std::byte, 1024> data{};
  opencl::WriteBuffer write;
  write.queue = IdOf(opencl::Handle::kQueue);
  write.buffer = IdOf(opencl::Handle::kMem);
  write.size = data.size();
  write.data = data;
  Measure("clEnqueueWriteBuffer, 1 KiB inline", opencl::Opcode::kEnqueueWriteBuffer, write);
  Measure("clFlush", opencl::Opcode::kFlush, opencl::Flush{IdOf(opencl::Handle::kQueue)});
  return 0;
}
