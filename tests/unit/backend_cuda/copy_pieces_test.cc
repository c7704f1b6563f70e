// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/copy_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/backend_cuda/session.h"

namespace hawser::server::cuda_backend {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<std::pair<uint64_t, uint64_t>> Cut(uint64_t size, uint64_t piece) {
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  EXPECT_EQ(CUDA_SUCCESS, InPieces(size, piece, [&](uint64_t offset, uint64_t bytes) {
              pieces.emplace_back(offset, bytes);
              return CUDA_SUCCESS;
            }));
  return pieces;
}

TEST(CopyPieces, OfALine) {
  EXPECT_THAT(Cut(0, 4), ElementsAre());
  EXPECT_THAT(Cut(4, 4), ElementsAre(Pair(0, 4)));
  EXPECT_THAT(Cut(9, 4), ElementsAre(Pair(0, 4), Pair(4, 4), Pair(8, 1)));
  EXPECT_THAT(Cut(9, UINT64_MAX), ElementsAre(Pair(0, 9)));
  EXPECT_THAT(Cut(UINT64_MAX, UINT64_MAX / 2 + 1),
              ElementsAre(Pair(0, UINT64_MAX / 2 + 1), Pair(UINT64_MAX / 2 + 1, UINT64_MAX / 2)));
}

TEST(CopyPieces, NothingBehindAFailure) {
  int calls = 0;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, InPieces(100, 10, [&](uint64_t offset, uint64_t) {
              ++calls;
              return offset == 20 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
            }));
  EXPECT_EQ(calls, 3);
}

// Every row of every plane once, from the same row of the other side; no piece larger than it should be.
TEST(CopyPieces, OfARegion) {
  for (const auto& [width, height, depth] :
       std::vector<std::tuple<size_t, size_t, size_t>>{{8, 1, 1}, {8, 5, 1}, {8, 5, 7}, {100, 3, 2}, {1, 64, 3}}) {
    for (const uint64_t piece : {uint64_t{1}, uint64_t{16}, uint64_t{50}, uint64_t{80}, UINT64_MAX}) {
      CUDA_MEMCPY3D whole{};
      whole.WidthInBytes = width;
      whole.Height = height;
      whole.Depth = depth;
      whole.srcY = 2;
      whole.srcZ = 3;
      whole.dstY = 5;
      whole.dstZ = 1;
      whole.srcXInBytes = 9;
      std::set<std::pair<size_t, size_t>> rows;
      size_t calls = 0;
      EXPECT_EQ(CUDA_SUCCESS, InPieces(whole, piece, [&](const CUDA_MEMCPY3D& part) {
                  ++calls;
                  EXPECT_EQ(part.WidthInBytes, width);
                  EXPECT_EQ(part.srcXInBytes, 9u);
                  EXPECT_TRUE(part.Height * part.Depth == 1 || width * part.Height * part.Depth <= piece);
                  EXPECT_EQ(part.srcY - 2, part.dstY - 5);
                  EXPECT_EQ(part.srcZ - 3, part.dstZ - 1);
                  for (size_t z = 0; z < part.Depth; ++z) {
                    for (size_t y = 0; y < part.Height; ++y) {
                      EXPECT_TRUE(rows.emplace(part.srcZ - 3 + z, part.srcY - 2 + y).second);
                    }
                  }
                  return CUDA_SUCCESS;
                }));
      EXPECT_EQ(rows.size(), height * depth);
      EXPECT_TRUE(rows.empty() || *rows.rbegin() == std::make_pair(depth - 1, height - 1));
      EXPECT_TRUE(piece != UINT64_MAX || calls == 1) << calls;
    }
  }
}

// --- what the backend makes of it

/// Opens for everybody, and knows how many there are.
class CrowdedGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return 0; }
  uint32_t Tenants() const override { return tenants; }
  bool TryEnter(uint64_t) override { return true; }
  bool Enter(uint64_t) override { return true; }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {}

  std::atomic<uint32_t> tenants{2};
};

decltype(DriverTable::cuMemcpyHtoDAsync) to_device = nullptr;
decltype(DriverTable::cuMemcpyDtoHAsync) to_host = nullptr;
std::vector<size_t> sizes_to_device, sizes_to_host;

CUresult CUDAAPI CountToDevice(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  sizes_to_device.push_back(size);
  return to_device(to, from, size, stream);
}
CUresult CUDAAPI CountToHost(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  sizes_to_host.push_back(size);
  return to_host(to, from, size, stream);
}

Session::Options Counting(LaunchGate* gate) {
  Session::Options options;
  options.gate = gate;
  options.adjust = [](DriverTable* table) {
    to_device = std::exchange(table->cuMemcpyHtoDAsync, CountToDevice);
    to_host = std::exchange(table->cuMemcpyDtoHAsync, CountToHost);
  };
  return options;
}

TEST(CudaCopies, AreCutWhileOthersShareTheDevice) {
  constexpr uint64_t kSize = 2 * kCopyPiece + 12345;
  CrowdedGate gate;
  Session session(Counting(&gate));
  const wire::Id context = session.NewContext();
  const uint64_t memory = session.NewMemory(context, kSize);
  std::vector<std::byte> data(kSize);
  for (size_t i = 0; i < kSize; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 4096);
  const SessionStatsPage* stats = UncountedSession();
  const uint64_t in = stats->copied_in.Read(), out = stats->copied_out.Read();
  const auto there_and_back = [&] {
    sizes_to_device.clear();
    sizes_to_host.clear();
    cuda::Write write;
    write.context = context;
    write.address = memory;
    write.size = kSize;
    write.data = wire::Bytes(data.data(), kSize);
    EXPECT_EQ(session.Do(write), 0);
    cuda::Read read;
    read.context = context;
    read.address = memory;
    read.size = kSize;
    const auto reply = session.Ask<cuda::ReadReply>(read);
    EXPECT_EQ(reply->status, 0);
    EXPECT_TRUE(reply->data.size() == kSize && std::memcmp(reply->data.data(), data.data(), kSize) == 0);
  };
  there_and_back();
  EXPECT_THAT(sizes_to_device, ElementsAre(kCopyPiece, kCopyPiece, 12345));
  EXPECT_THAT(sizes_to_host, ElementsAre(kCopyPiece, kCopyPiece, 12345));
  // Alone a copy is one.
  gate.tenants = 1;
  there_and_back();
  EXPECT_THAT(sizes_to_device, ElementsAre(kSize));
  EXPECT_THAT(sizes_to_host, ElementsAre(kSize));
  EXPECT_EQ(stats->copied_in.Read() - in, 2 * kSize);
  EXPECT_EQ(stats->copied_out.Read() - out, 2 * kSize);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
