// SPDX-License-Identifier: Apache-2.0
#include "memmgr/chunked_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

namespace hawser::memmgr {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGranularity = 2 * kMiB;
constexpr int32_t kNoMemory = 2;

/// A device that holds callers to the rules.
class FakeVmm final : public DeviceVmm {
 public:
  explicit FakeVmm(uint64_t memory) : memory_(memory) {}
  ~FakeVmm() override {
    EXPECT_TRUE(handles.empty());
    EXPECT_TRUE(mapped.empty());
    EXPECT_EQ(reserved, 0u);
  }

  uint64_t granularity() const override { return kGranularity; }
  int32_t out_of_memory() const override { return kNoMemory; }
  int32_t Reserve(uint64_t size, uint64_t* address) override {
    EXPECT_EQ(size % kGranularity, 0u);
    if (Fails() || size > most_addresses) return kNoMemory;
    EXPECT_EQ(reserved, 0u);
    reserved = size;
    *address = kBase;
    return 0;
  }
  void Free(uint64_t address, uint64_t size) override {
    EXPECT_EQ(address, kBase);
    EXPECT_EQ(size, reserved);
    EXPECT_TRUE(mapped.empty());
    reserved = 0;
  }
  int32_t Create(uint64_t size, Handle* handle) override {
    EXPECT_EQ(size % kGranularity, 0u);
    if (Fails() || used + size > memory_) return kNoMemory;
    used += size;
    *handle = ++last_;
    handles[*handle] = size;
    return 0;
  }
  void Release(Handle handle) override {
    const auto found = handles.find(handle);
    ASSERT_NE(found, handles.end());
    for (const auto& each : mapped) ASSERT_NE(each.second.handle, handle) << "still mapped";
    used -= found->second;
    handles.erase(found);
  }
  int32_t Map(uint64_t address, uint64_t size, Handle handle) override {
    EXPECT_EQ(handles.count(handle), 1u);
    EXPECT_EQ(handles[handle], size);
    EXPECT_GE(address, kBase);
    EXPECT_LE(address + size, kBase + reserved);
    const auto next = mapped.lower_bound(address);
    EXPECT_TRUE(next == mapped.end() || next->first >= address + size);
    EXPECT_TRUE(next == mapped.begin() || std::prev(next)->first + std::prev(next)->second.size <= address);
    if (Fails()) return 999;
    mapped[address] = {size, handle, {}};
    return 0;
  }
  void Unmap(uint64_t address, uint64_t size) override {
    const auto found = mapped.find(address);
    ASSERT_NE(found, mapped.end());
    ASSERT_EQ(found->second.size, size);
    mapped.erase(found);
  }
  int32_t SetAccess(uint64_t address, uint64_t size, std::span<const int> devices) override {
    if (Fails()) return 998;
    uint64_t at = address;
    for (auto each = mapped.find(address); at < address + size; ++each) {
      EXPECT_TRUE(each != mapped.end() && each->first == at) << "a hole in what is made accessible";
      if (each == mapped.end()) return 997;
      each->second.devices = {devices.begin(), devices.end()};
      at += each->second.size;
    }
    EXPECT_EQ(at, address + size);
    return 0;
  }

  /// All of [address, address + size) has memory that the device may use.
  bool Usable(uint64_t address, uint64_t size, int device) const {
    for (uint64_t at = address; at < address + size;) {
      auto each = mapped.upper_bound(at);
      if (each == mapped.begin()) return false;
      --each;
      if (at >= each->first + each->second.size || each->second.devices.count(device) == 0) return false;
      at = each->first + each->second.size;
    }
    return true;
  }

  struct Mapping {
    uint64_t size = 0;
    Handle handle = 0;
    std::set<int> devices;
  };
  static constexpr uint64_t kBase = uint64_t{0x7000} << 32;
  uint64_t most_addresses = uint64_t{1} << 50;
  uint64_t reserved = 0;
  uint64_t used = 0;
  std::map<Handle, uint64_t> handles;
  std::map<uint64_t, Mapping> mapped;
  std::optional<int> fail_after;  ///< So many calls go well, the next one does not.

 private:
  bool Fails() { return fail_after && (*fail_after)-- == 0; }

  const uint64_t memory_;
  Handle last_ = 0;
};

TEST(ChunkedMemory, SmallAllocationsShareAChunk) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
  uint64_t first = 0, second = 0, large = 0;
  ASSERT_EQ(memory.Allocate(1000, &first), 0);
  ASSERT_EQ(memory.Allocate(100 * 1024, &second), 0);
  EXPECT_EQ(second, first + 1024) << "1,000 rounded up to 512s";
  EXPECT_EQ(vmm.handles.size(), 1u);
  EXPECT_EQ(memory.held(), 2 * kMiB);
  EXPECT_TRUE(vmm.Usable(second, 100 * 1024, 0));
  ASSERT_EQ(memory.Allocate(kMiB + 1, &large), 0);
  EXPECT_EQ(large % kGranularity, 0u);
  EXPECT_EQ(memory.held(), 4 * kMiB);
  EXPECT_EQ(memory.Footprint(1000), 1024u);
  EXPECT_EQ(memory.Footprint(kMiB + 1), 2 * kMiB);
}

TEST(ChunkedMemory, LargeOnesAreChunksSideBySide) {
  FakeVmm vmm(uint64_t{64} << 30);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(uint64_t{256} << 30), 0);
  uint64_t address = 0;
  ASSERT_EQ(memory.Allocate(9 * kMiB, &address), 0);
  EXPECT_EQ(memory.Chunks().size(), 5u) << "of 2 MiB";
  EXPECT_TRUE(vmm.Usable(address, 10 * kMiB, 0));
  EXPECT_FALSE(vmm.Usable(address, 10 * kMiB, 1));
  ASSERT_TRUE(memory.Free(address));
  EXPECT_EQ(memory.held(), 0u);
  ASSERT_EQ(memory.Allocate(uint64_t{10} << 30, &address), 0);
  EXPECT_EQ(memory.Chunks().size(), 80u) << "of 128 MiB: 10 GiB by 128, rounded up to a power of two";
  EXPECT_TRUE(vmm.Usable(address, uint64_t{10} << 30, 0));
}

TEST(ChunkedMemory, FreesOnlyWhatBeginsThere) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
  uint64_t small = 0, other = 0, large = 0;
  ASSERT_EQ(memory.Allocate(512, &small), 0);
  ASSERT_EQ(memory.Allocate(512, &other), 0);
  ASSERT_EQ(memory.Allocate(4 * kMiB, &large), 0);
  EXPECT_FALSE(memory.Free(small + 8));
  EXPECT_FALSE(memory.Free(large + kGranularity)) << "a chunk, but no allocation";
  EXPECT_FALSE(memory.Free(0));
  EXPECT_FALSE(memory.Free(UINT64_MAX));
  EXPECT_TRUE(memory.Free(small));
  EXPECT_FALSE(memory.Free(small)) << "twice; it is where its slab begins";
  EXPECT_TRUE(memory.Free(large));
  EXPECT_FALSE(memory.Free(large));
  EXPECT_TRUE(memory.Free(other));
}

TEST(ChunkedMemory, KeepsOneEmptySlab) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
  std::vector<uint64_t> all(8);
  for (uint64_t& each : all) ASSERT_EQ(memory.Allocate(kMiB, &each), 0);
  EXPECT_EQ(memory.held(), 8 * kMiB);
  for (const uint64_t each : all) ASSERT_TRUE(memory.Free(each));
  EXPECT_EQ(memory.held(), 2 * kMiB);
  for (int round = 0; round < 10; ++round) {
    uint64_t address = 0;
    ASSERT_EQ(memory.Allocate(100, &address), 0);
    EXPECT_EQ(memory.held(), 2 * kMiB) << "the kept one is used";
    ASSERT_TRUE(memory.Free(address));
  }
}

TEST(ChunkedMemory, SaysWhatLiesUnderAnAllocation) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
  uint64_t small = 0, other = 0, large = 0;
  ASSERT_EQ(memory.Allocate(512, &small), 0);
  ASSERT_EQ(memory.Allocate(1000, &other), 0);
  ASSERT_EQ(memory.Allocate(5 * kMiB, &large), 0);
  const std::vector<ChunkedMemory::Chunk> of_other = memory.Share(other, 1000),
                                          of_large = memory.Share(large, 5 * kMiB);
  ASSERT_EQ(of_other.size(), 1u);
  EXPECT_EQ(of_other[0].address, small);
  EXPECT_TRUE(of_other[0].shared);
  ASSERT_EQ(of_large.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(of_large[i].address, large + i * kGranularity);
  for (const ChunkedMemory::Chunk& each : memory.Chunks()) EXPECT_TRUE(each.shared);
  EXPECT_TRUE(memory.Share(large, 7 * kMiB).empty()) << "there is not so much";
  EXPECT_TRUE(memory.Share(large, 0).empty());
  EXPECT_TRUE(memory.Share(large + 32 * kMiB, 512).empty());
  EXPECT_TRUE(memory.Share(0, 512).empty());
  EXPECT_TRUE(memory.Free(large));
  EXPECT_TRUE(memory.Share(large, 5 * kMiB).empty());
}

/// Chunks that somebody else made, as a driver imports them.
std::vector<ChunkedMemory::Chunk> Others(FakeVmm* vmm, const std::vector<uint64_t>& sizes) {
  std::vector<ChunkedMemory::Chunk> chunks(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    chunks[i].size = sizes[i];
    EXPECT_EQ(vmm->Create(sizes[i], &chunks[i].handle), 0);
  }
  return chunks;
}

TEST(ChunkedMemory, TakesInChunksOfOthers) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
  uint64_t own = 0, first = 0, second = 0;
  ASSERT_EQ(memory.Allocate(3 * kMiB, &own), 0);
  ASSERT_EQ(memory.TakeIn(Others(&vmm, {4 * kMiB, 4 * kMiB, 2 * kMiB}), 0, &first), 0);
  ASSERT_EQ(memory.TakeIn(Others(&vmm, {2 * kMiB}), 512, &second), 0);
  EXPECT_TRUE(vmm.Usable(first, 10 * kMiB, 0));
  EXPECT_EQ(second % kGranularity, 512u);
  EXPECT_TRUE(vmm.Usable(second - 512, 2 * kMiB, 0));
  EXPECT_EQ(memory.held(), 16 * kMiB);
  ASSERT_EQ(memory.GiveAccess(1), 0);
  EXPECT_TRUE(vmm.Usable(first, 10 * kMiB, 1)) << "a peer sees it too";
  EXPECT_TRUE(memory.Share(first, kMiB).empty()) << "who made it shares it";
  EXPECT_FALSE(memory.Free(second - 512)) << "there it does not begin";
  EXPECT_TRUE(memory.Free(second));
  EXPECT_FALSE(memory.Free(second));
  EXPECT_TRUE(memory.Free(first));
  EXPECT_FALSE(memory.Free(first));
  EXPECT_EQ(memory.held(), 4 * kMiB);
}

TEST(ChunkedMemory, WhatCannotBeTakenInStaysTheCallers) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(8 * kMiB), 0);
  uint64_t address = 0;
  const std::vector<ChunkedMemory::Chunk> chunks = Others(&vmm, {4 * kMiB, 2 * kMiB});
  EXPECT_NE(memory.TakeIn(chunks, 6 * kMiB, &address), 0) << "begins behind its end";
  std::vector<ChunkedMemory::Chunk> odd = chunks;
  for (const uint64_t size : {uint64_t{0}, uint64_t{512}, UINT64_MAX - 2 * kMiB + 1}) {
    odd[1].size = size;
    EXPECT_NE(memory.TakeIn(odd, 0, &address), 0);
  }
  EXPECT_NE(memory.TakeIn({}, 0, &address), 0);
  for (int calls = 0; calls < 3; ++calls) {
    vmm.fail_after = calls;
    EXPECT_NE(memory.TakeIn(chunks, 0, &address), 0);
    EXPECT_TRUE(vmm.mapped.empty());
    EXPECT_EQ(memory.held(), 0u);
  }
  vmm.fail_after.reset();
  ASSERT_EQ(memory.TakeIn(chunks, 0, &address), 0);
  const std::vector<ChunkedMemory::Chunk> more = Others(&vmm, {4 * kMiB});
  uint64_t other = 0;
  EXPECT_EQ(memory.TakeIn(more, 0, &other), kNoMemory) << "no addresses";
  vmm.Release(more[0].handle);
}

TEST(ChunkedMemory, WhatFailsHalfwayLeavesNothing) {
  for (int calls = 0;; ++calls) {
    FakeVmm vmm(64 * kMiB);
    ChunkedMemory memory(&vmm, 0);
    ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
    vmm.fail_after = calls;
    uint64_t address = 0;
    const int32_t status = memory.Allocate(9 * kMiB, &address);
    vmm.fail_after.reset();
    if (status == 0) {
      EXPECT_EQ(calls, 11) << "five times create and map, once access";
      break;
    }
    EXPECT_EQ(memory.held(), 0u);
    EXPECT_TRUE(vmm.handles.empty());
    ASSERT_EQ(memory.Allocate(9 * kMiB, &address), 0) << "and its addresses are free again";
  }
}

TEST(ChunkedMemory, OutOfMemoryIsTheDriversCode) {
  FakeVmm vmm(8 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(64 * kMiB), 0);
  uint64_t address = 0, other = 0;
  EXPECT_EQ(memory.Allocate(9 * kMiB, &address), kNoMemory);
  EXPECT_EQ(memory.Allocate(UINT64_MAX, &address), kNoMemory);
  EXPECT_EQ(memory.Allocate(UINT64_MAX / 2 - 1, &address), kNoMemory);
  EXPECT_EQ(memory.Footprint(UINT64_MAX), 0u);
  ASSERT_EQ(memory.Allocate(8 * kMiB, &address), 0);
  EXPECT_EQ(memory.Allocate(1, &other), kNoMemory);
  ASSERT_TRUE(memory.Free(address));
  EXPECT_EQ(memory.Allocate(1, &other), 0);
}

TEST(ChunkedMemory, TakesFewerAddressesWhereThereAreNotSoMany) {
  FakeVmm vmm(uint64_t{1} << 40);
  vmm.most_addresses = 100 * kMiB;
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(1024 * kMiB), 0);
  EXPECT_EQ(memory.end() - memory.begin(), 64 * kMiB);
  uint64_t address = 0;
  EXPECT_EQ(memory.Allocate(66 * kMiB, &address), kNoMemory);
  EXPECT_EQ(memory.Allocate(64 * kMiB, &address), 0);
}

TEST(ChunkedMemory, PeersSeeWhatThereIsAndWhatComes) {
  FakeVmm vmm(64 * kMiB);
  ChunkedMemory memory(&vmm, 0);
  ASSERT_EQ(memory.Reserve(256 * kMiB), 0);
  uint64_t before = 0, after = 0;
  ASSERT_EQ(memory.Allocate(4 * kMiB, &before), 0);
  ASSERT_EQ(memory.GiveAccess(1), 0);
  ASSERT_EQ(memory.Allocate(4 * kMiB, &after), 0);
  for (const int device : {0, 1}) {
    EXPECT_TRUE(vmm.Usable(before, 4 * kMiB, device));
    EXPECT_TRUE(vmm.Usable(after, 4 * kMiB, device));
  }
}

TEST(ChunkedMemory, AnyOrderLeavesEverythingUsableAndNothingTwice) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    FakeVmm vmm(512 * kMiB);
    ChunkedMemory memory(&vmm, 0);
    ASSERT_EQ(memory.Reserve(1024 * kMiB), 0);
    std::map<uint64_t, uint64_t> live;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 5 < 3) {
        const uint64_t size = random() % 4 != 0 ? 1 + random() % (200 * 1024) : 1 + random() % (40 * kMiB);
        uint64_t address = 0;
        if (memory.Allocate(size, &address) != 0) continue;
        ASSERT_EQ(address % ChunkedMemory::kUnit, 0u);
        ASSERT_TRUE(vmm.Usable(address, size, 0));
        const auto next = live.lower_bound(address);
        ASSERT_TRUE(next == live.end() || next->first >= address + size);
        ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= address);
        live[address] = size;
      } else if (!live.empty()) {
        const auto victim = std::next(live.begin(), static_cast<int64_t>(random() % live.size()));
        ASSERT_TRUE(memory.Free(victim->first));
        live.erase(victim);
      }
    }
    for (const auto& each : live) ASSERT_TRUE(memory.Free(each.first));
    EXPECT_LE(memory.held(), 2 * kMiB);
  }
}

}  // namespace
}  // namespace hawser::memmgr
