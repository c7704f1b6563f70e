// SPDX-License-Identifier: Apache-2.0
// hawser-bench-send: what one command without a reply costs the calling thread, with a server in this process that
// only takes the bytes away, and what a call with a reply takes there and back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "interposer/core/heap_allocator.h"
#include "tests/unit/interposer_core/fake_server.h"

namespace hawser::guest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatches = 400;
constexpr int kBatch = 1000;
constexpr int kCalls = 20'000;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double NanosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

/// A launch of two dimensions with a local size: 92 bytes of payload, 108 with the header.
struct Launch {
  Launch() {
    message.queue = wire::Id(2, 1, 1);
    message.kernel = wire::Id(6, 1, 1);
    message.work_dim = 3;
    message.global = wire::ArrayView<uint64_t>(sizes, 3);
    message.local = wire::ArrayView<uint64_t>(sizes, 3);
  }
  const uint64_t sizes[3] = {64, 64, 1};
  opencl::EnqueueNDRangeKernel message;
};

void MeasureSend(wire::Transport transport) {
  FakeServer server(transport);
  auto [session, peer] = server.Connect();
  std::atomic<bool> stop{false};
  std::thread taker([&stop, p = peer.get()] {
    std::vector<std::byte> buffer(256u << 10);
    while (!stop.load(std::memory_order_relaxed)) {
      const wire::Result<size_t> got = p->command->TryRead(buffer);
      if (!got.ok()) return;
      if (got.value() == 0) {
        (void)p->command->WaitReadable({std::chrono::microseconds(50)}, std::chrono::milliseconds(10));
      }
    }
  });
  const Launch launch;
  std::vector<double> each;
  for (int batch = 0; batch < kBatches; ++batch) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kBatch; ++i) {
      if (session->Send(launch.message) != 0) std::abort();
    }
    session->Flush();
    each.push_back(NanosecondsSince(start) / kBatch);
  }
  stop = true;
  taker.join();
  peer->Stop();
  std::printf("%-6s send %zu bytes: median %7.1f ns, best %7.1f ns\n", wire::TransportName(transport).data(),
              launch.message.SizeOf() + sizeof(wire::FrameHeader), Median(each),
              *std::min_element(each.begin(), each.end()));
}

void MeasureCall(wire::Transport transport) {
  FakeServer server(transport);
  auto [session, peer] = server.Connect();
  peer->ServeSpinning(
      [p = peer.get()](const wire::FrameHeader& header, wire::Bytes) { p->Reply(header, opencl::Status()); });
  std::vector<double> each;
  for (int i = 0; i < kCalls; ++i) {
    const Clock::time_point start = Clock::now();
    opencl::Status status;
    if (session->CallInto(opencl::Opcode::kFinish, opencl::Finish(), &status) != 0) std::abort();
    each.push_back(NanosecondsSince(start));
  }
  peer->Stop();
  std::printf("%-6s call and wait:  median %7.1f us, best %7.1f us\n", wire::TransportName(transport).data(),
              Median(each) / 1000, *std::min_element(each.begin(), each.end()) / 1000);
}

void MeasureHeap() {
  HeapAllocator heap(nullptr, uint64_t{4} << 30);
  for (const uint64_t size : {uint64_t{128}, uint64_t{4096}, uint64_t{65536}, uint64_t{1} << 20}) {
    std::vector<uint64_t> live;
    for (int i = 0; i < 500; ++i) live.push_back(heap.Allocate(size));
    constexpr int kPairs = 200'000;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kPairs; ++i) {
      uint64_t& slot = live[static_cast<size_t>(i * 7) % live.size()];
      heap.Free(slot, size);
      slot = heap.Allocate(size);
    }
    std::printf("heap   allocate and free %7llu bytes: %6.1f ns\n", static_cast<unsigned long long>(size),
                NanosecondsSince(start) / kPairs);
  }
}

}  // namespace
}  // namespace hawser::guest

int main() {
  for (const auto transport :
       {hawser::wire::Transport::kShm, hawser::wire::Transport::kUnix, hawser::wire::Transport::kTcp}) {
    hawser::guest::MeasureSend(transport);
    hawser::guest::MeasureCall(transport);
  }
  hawser::guest::MeasureHeap();
  return 0;
}
