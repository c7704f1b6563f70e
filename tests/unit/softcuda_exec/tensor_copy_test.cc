// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor: what lands where, against the rules of the PTX ISA (5.5, 9.7.9.27) applied element by element.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "softcuda/exec/tensor_map.h"
#include "tests/unit/softcuda_exec/device.h"

namespace hawser::exec {
namespace {

using testing::HasSubstr;

constexpr size_t kMost = TensorMap::kMostDimensions;
constexpr uint32_t kShared = 16384;

/// A map as a kernel's parameter.
struct alignas(64) Parameter {
  std::array<uint8_t, TensorMap::kBytes> bytes{};
};

Parameter AsParameter(const TensorMap& map) {
  Parameter parameter;
  map.Store(parameter.bytes.data());
  return parameter;
}

/// A map of a tensor of 32-bit numbers.
TensorMap Numbers(uint64_t address, const std::vector<uint64_t>& size, const std::vector<uint64_t>& stride,
                  const std::vector<uint16_t>& box, const std::vector<uint8_t>& step = {}) {
  TensorMap map;
  map.mark = TensorMap::kMark;
  map.dimensions = static_cast<uint8_t>(size.size());
  map.element_bytes = 4;
  map.address = address;
  map.step.fill(1);
  std::copy(size.begin(), size.end(), map.size.begin());
  std::copy(stride.begin(), stride.end(), map.stride.begin());
  std::copy(box.begin(), box.end(), map.box.begin());
  std::copy(step.begin(), step.end(), map.step.begin());
  return map;
}

std::string Coordinates(const std::vector<int>& at) {
  std::string text = "{";
  for (const int each : at) text += (text.size() > 1 ? ", " : "") + std::to_string(each);
  return text + "}";
}

/// A kernel of one thread: loads a box to `s`, waits for its bytes, and gives all of shared memory to `out`.
std::string LoadKernel(const std::vector<int>& at, uint64_t bytes, const std::string& map = "[%d1, ") {
  return ".version 8.4\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {\n"
         ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
         ".shared .align 1024 .b8 s[" +
         std::to_string(kShared) +
         "]; .shared .align 8 .b64 bars[2];\n"
         "ld.param.u64 %d0, [out]; mov.b64 %d1, map; cvta.param.u64 %d1, %d1; mov.u32 %r0, s; mov.u32 %r1, bars;\n"
         "mbarrier.init.shared::cta.b64 [%r1+8], 1;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], " +
         std::to_string(bytes) + ";\ncp.async.bulk.tensor." + std::to_string(at.size()) +
         "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], " + map + Coordinates(at) +
         "], [%r1+8];\n"
         "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+8], 0; @!%p1 bra W;\n"
         "mov.u32 %r2, 0;\nL: add.u32 %r3, %r0, %r2; ld.shared.u32 %r4, [%r3]; cvt.u64.u32 %d2, %r2; add.u64 %d2, %d2, "
         "%d0; st.global.u32 [%d2], %r4; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, " +
         std::to_string(kShared) + "; @%p1 bra L; ret; }\n";
}

/// Stores the first bytes of `in` as a box.
std::string StoreKernel(const std::vector<int>& at) {
  return ".version 8.4\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 in, .param .align 64 .b8 map[128]) {\n"
         ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
         ".shared .align 1024 .b8 s[" +
         std::to_string(kShared) +
         "];\nld.param.u64 %d0, [in]; mov.b64 %d1, map; cvta.param.u64 %d1, %d1; mov.u32 %r0, s; mov.u32 %r2, 0;\n"
         "L: add.u32 %r3, %r0, %r2; cvt.u64.u32 %d2, %r2; add.u64 %d2, %d2, %d0; ld.global.u32 %r4, [%d2]; "
         "st.shared.u32 [%r3], %r4; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, " +
         std::to_string(kShared) + "; @%p1 bra L;\nfence.proxy.async.shared::cta;\ncp.async.bulk.tensor." +
         std::to_string(at.size()) + "d.global.shared::cta.tile.bulk_group [%d1, " + Coordinates(at) +
         "], [%r0];\ncp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret; }\n";
}

struct Result {
  Outcome outcome;
  std::vector<uint32_t> words;
};

Result RunLoad(Device* device, const TensorMap& map, const std::vector<int>& at, uint64_t bytes) {
  EXPECT_EQ(device->Load({LoadKernel(at, bytes)}), "");
  EXPECT_THAT(device->program().unsupported(), testing::IsEmpty());
  const uint64_t out = device->Allocate(kShared);
  Result result;
  result.outcome = device->Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out).Add(AsParameter(map)));
  result.words = device->Download<uint32_t>(out, kShared / 4);
  return result;
}

/// Every element of the box in turn: f(its number in the box, its number in the tensor or -1).
template <typename F>
void ForElements(const TensorMap& map, const std::vector<int>& at, const F& f) {
  std::array<uint32_t, kMost> moved{1, 1, 1, 1, 1};
  for (size_t i = 0; i < map.dimensions; ++i) moved[i] = (map.box[i] + map.step[i] - 1U) / map.step[i];
  size_t number = 0;
  std::array<uint32_t, kMost> k{};
  for (k[4] = 0; k[4] < moved[4]; ++k[4]) {
    for (k[3] = 0; k[3] < moved[3]; ++k[3]) {
      for (k[2] = 0; k[2] < moved[2]; ++k[2]) {
        for (k[1] = 0; k[1] < moved[1]; ++k[1]) {
          for (k[0] = 0; k[0] < moved[0]; ++k[0]) {
            int64_t place = 0;
            bool inside = true;
            for (size_t i = 0; i < map.dimensions; ++i) {
              const int64_t coordinate = at[i] + int64_t{k[i]} * map.step[i];
              inside &= coordinate >= 0 && coordinate < static_cast<int64_t>(map.size[i]);
              place += coordinate * (i == 0 ? 4 : static_cast<int64_t>(map.stride[i - 1]));
            }
            f(number++, inside ? place / 4 : -1);
          }
        }
      }
    }
  }
}

/// The swizzle as the manuals draw it: rows of 128 bytes, the 16-byte column of a row exchanged by the row's number.
uint64_t Drawn(uint32_t bits, uint64_t offset) {
  const uint64_t row = offset / 128;
  const uint64_t column = offset % 128 / 16;
  uint64_t to = column;
  if (bits == 1) to = column ^ (row % 2);
  if (bits == 2) to = column ^ (row % 4);
  if (bits == 3) to = column ^ (row % 8);
  return row * 128 + to * 16 + offset % 16;
}

std::vector<uint32_t> Counting(size_t count) {
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<uint32_t>(i + 1);
  return numbers;
}

struct Case {
  std::string name;
  std::vector<uint64_t> size;
  std::vector<uint64_t> stride;
  std::vector<uint16_t> box;
  std::vector<uint8_t> step;
  std::vector<int> at;
  uint8_t swizzle = 0;
};

class TensorCopy : public testing::TestWithParam<Case> {};

TEST_P(TensorCopy, LoadsAndStoresTheBox) {
  const Case& c = GetParam();
  Device device(0);
  const std::vector<uint32_t> tensor = Counting(8192);
  const uint64_t memory = device.Upload(tensor);
  TensorMap map = Numbers(memory, c.size, c.stride, c.box, c.step);
  map.swizzle_bits = c.swizzle;
  map.fill = 0;
  const Result loaded = RunLoad(&device, map, c.at, map.BoxBytes());
  ASSERT_TRUE(loaded.outcome.ok()) << loaded.outcome.fault.Text();
  std::vector<uint32_t> shared(kShared / 4);
  std::vector<uint32_t> stored(tensor.size());
  const std::vector<uint32_t> box = Counting(kShared / 4);
  size_t inside = 0;
  ForElements(map, c.at, [&](size_t number, int64_t place) {
    const uint64_t word = Drawn(c.swizzle, 4 * number) / 4;
    shared[word] = place < 0 ? 0 : tensor[static_cast<size_t>(place)];
    if (place >= 0) stored[static_cast<size_t>(place)] = box[word];
    inside += place >= 0 ? 1 : 0;
  });
  EXPECT_EQ(loaded.words, shared);

  const uint64_t empty = device.Allocate(4 * tensor.size());
  map.address = empty;
  ASSERT_EQ(device.Load({StoreKernel(c.at)}), "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty());
  const Outcome outcome =
      device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(device.Upload(box)).Add(AsParameter(map)));
  ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  EXPECT_EQ(device.Download<uint32_t>(empty, tensor.size()), stored);
  EXPECT_EQ(inside == 0, c.name == "Outside");
}

INSTANTIATE_TEST_SUITE_P(
    All, TensorCopy,
    testing::Values(
        Case{"Line", {100}, {}, {32}, {}, {7}}, Case{"LineBeforeItsBegin", {100}, {}, {32}, {}, {-5}},
        Case{"LineOverItsEnd", {100}, {}, {64}, {}, {70}}, Case{"Square", {60, 40}, {256}, {16, 8}, {}, {4, 3}},
        Case{"Corner", {60, 40}, {256}, {16, 8}, {}, {52, 36}},
        Case{"OtherCorner", {60, 40}, {256}, {16, 8}, {}, {-3, -2}},
        Case{"Outside", {60, 40}, {256}, {16, 8}, {}, {60, 0}},
        Case{"EverySecondRow", {60, 40}, {256}, {16, 8}, {1, 2}, {4, 35}},
        Case{"EveryThirdRowOfSeven", {60, 40}, {256}, {8, 7}, {1, 3}, {0, -3}},
        Case{"Cube", {8, 8, 8}, {32, 256}, {4, 3, 2}, {}, {2, 6, 7}},
        Case{"FiveDimensions", {4, 3, 4, 3, 2}, {16, 48, 192, 576}, {4, 2, 3, 2, 2}, {1, 1, 2, 1, 1}, {0, 1, 1, 2, -1}},
        Case{"Swizzled32", {64, 64}, {256}, {8, 32}, {}, {8, 8}, 1},
        Case{"Swizzled64", {64, 64}, {256}, {16, 32}, {}, {8, 50}, 2},
        Case{"Swizzled128", {64, 64}, {256}, {32, 24}, {}, {-2, 0}, 3},
        Case{"Swizzled128OfOddRows", {64, 64}, {256}, {16, 3}, {}, {0, 0}, 3}),
    [](const auto& each) { return each.param.name; });

TEST(TensorCopyFill, ElementsOutsideHaveTheMapsValue) {
  Device device(0);
  const uint64_t memory = device.Upload(Counting(64));
  TensorMap map = Numbers(memory, {16, 4}, {64}, {8, 2}, {});
  map.fill = 0x7fffffff;
  const Result result = RunLoad(&device, map, {12, 3}, map.BoxBytes());
  ASSERT_TRUE(result.outcome.ok()) << result.outcome.fault.Text();
  EXPECT_EQ(std::vector<uint32_t>(result.words.begin(), result.words.begin() + 8),
            (std::vector<uint32_t>{61, 62, 63, 64, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff}));
  EXPECT_EQ(result.words[8], 0x7fffffffU);
  EXPECT_EQ(result.words[16], 0U);
}

TEST(TensorCopyFill, DenormalsAreFlushedWhereTheTypeSaysSo) {
  Device device(0);
  const uint64_t memory = device.Upload(std::vector<uint32_t>{1, 0x80000001, 0x3f800000, 0x7f800000});
  TensorMap map = Numbers(memory, {4}, {}, {4}, {});
  map.flush_denormals = 1;
  const Result result = RunLoad(&device, map, {0}, 16);
  ASSERT_TRUE(result.outcome.ok()) << result.outcome.fault.Text();
  EXPECT_EQ(std::vector<uint32_t>(result.words.begin(), result.words.begin() + 4),
            (std::vector<uint32_t>{0, 0x80000000, 0x3f800000, 0x7f800000}));
}

TEST(TensorCopyFault, DamagedMapsAreNone) {
  const std::array<void (*)(TensorMap*), 7> damages = {
      [](TensorMap* map) { map->mark = 0; },          [](TensorMap* map) { map->dimensions = 6; },
      [](TensorMap* map) { map->element_bytes = 3; }, [](TensorMap* map) { map->swizzle_bits = 9; },
      [](TensorMap* map) { map->box[1] = 0; },        [](TensorMap* map) { map->step[1] = 0; },
      [](TensorMap* map) { map->box[0] = 1; }};
  for (size_t i = 0; i < damages.size(); ++i) {
    Device device(0);
    TensorMap map = Numbers(device.Upload(Counting(64)), {16, 4}, {64}, {8, 2}, {});
    damages[i](&map);
    const Result result = RunLoad(&device, map, {0, 0}, 64);
    EXPECT_EQ(result.outcome.fault.kind, Fault::Kind::kIllegalInstruction) << i;
    EXPECT_THAT(result.outcome.fault.Text(), HasSubstr("no tensor map")) << i;
  }
}

TEST(TensorCopyFault, OtherDimensionsThanTheMapsAreRefused) {
  Device device(0);
  const TensorMap map = Numbers(device.Upload(Counting(64)), {16, 4}, {64}, {8, 2}, {});
  const Result result = RunLoad(&device, map, {0, 0, 0}, 64);
  EXPECT_EQ(result.outcome.fault.kind, Fault::Kind::kIllegalInstruction);
  EXPECT_THAT(result.outcome.fault.Text(), HasSubstr("3 coordinates by a map of 2 dimensions"));
}

TEST(TensorCopyFault, OnlyLiveMemoryIsReadAndWritten) {
  Device device(0);
  const uint64_t memory = device.Upload(Counting(64));
  // The map says more rows than there is memory; those that exist are well.
  const TensorMap map = Numbers(memory, {16, 8}, {64}, {16, 2}, {});
  EXPECT_TRUE(RunLoad(&device, map, {0, 2}, 128).outcome.ok());
  const Result result = RunLoad(&device, map, {0, 3}, 128);
  EXPECT_EQ(result.outcome.fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_THAT(result.outcome.fault.Text(), HasSubstr("tensor's box"));
  ASSERT_EQ(device.Load({StoreKernel({0, 3})}), "");
  const uint64_t in = device.Allocate(kShared);
  const Outcome outcome = device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(in).Add(AsParameter(map)));
  EXPECT_EQ(outcome.fault.kind, Fault::Kind::kIllegalAddress);
}

TEST(TensorCopyFault, BoxesLieInTheBlocksSharedMemory) {
  Device device(0);
  const TensorMap map = Numbers(device.Upload(Counting(8192)), {64, 128}, {256}, {64, 128}, {});
  const Result result = RunLoad(&device, map, {0, 0}, 32768);
  EXPECT_EQ(result.outcome.fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_THAT(result.outcome.fault.Text(), HasSubstr("box of 32768 bytes"));
}

TEST(TensorCopyFault, FormsThatThisDeviceLacksAreNamed) {
  Device device(0);
  std::string text = LoadKernel({0, 0, 0}, 64);
  text.replace(text.find(".tile."), 6, ".im2col.");
  ASSERT_EQ(device.Load({text}), "");
  EXPECT_THAT(device.program().unsupported(), testing::ElementsAre(HasSubstr("im2col")));
}

TEST(TensorCopyMap, MapsInMemoryServeToo) {
  Device device(0);
  const TensorMap map = Numbers(device.Upload(Counting(64)), {16, 4}, {64}, {8, 2}, {});
  // The second of two maps, by an offset of the address.
  std::vector<uint8_t> two(2 * TensorMap::kBytes);
  map.Store(two.data() + TensorMap::kBytes);
  const uint64_t maps = device.Upload(two);
  std::string text = LoadKernel({0, 1}, 64, "[%d3+128, ");
  const std::string load = "ld.param.u64 %d0, [out];";
  text.replace(text.find(load), load.size(), load + " ld.param.u64 %d3, [map];");
  ASSERT_EQ(device.Load({text}), "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty());
  const uint64_t out = device.Allocate(kShared);
  Parameter parameter;
  std::memcpy(parameter.bytes.data(), &maps, sizeof(maps));
  const Outcome outcome = device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out).Add(parameter));
  ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  EXPECT_EQ(device.Download<uint32_t>(out, 3), (std::vector<uint32_t>{17, 18, 19}));
}

TEST(TensorCopyMap, KernelsChangeMaps) {
  // A map of another tensor goes to shared memory, is changed field by field, and serves from global memory.
  Device device(0);
  const uint64_t numbers = device.Upload(Counting(64));
  const TensorMap other = Numbers(numbers + 64, {4, 2, 2}, {64, 64}, {4, 1, 1}, {1, 2, 2});
  const uint64_t maps = device.Allocate(2 * TensorMap::kBytes);  // Its address is a multiple of 256.
  other.Store(reinterpret_cast<void*>(maps));
  const std::string change =
      " ld.param.u64 %d3, [map]; mov.u32 %r0, s; mov.u32 %r2, 0;\n"
      "C: cvt.u64.u32 %d2, %r2; add.u64 %d2, %d2, %d3; ld.global.u32 %r4, [%d2]; add.u32 %r3, %r0, %r2;\n"
      "st.shared.u32 [%r3], %r4; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, 128; @%p1 bra C; ld.param.u64 %d4, "
      "[map+8];\n"
      "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r0], %d4;\n"
      "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r0], 1; mov.b32 %r5, 16;\n"
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r0], 0, %r5;\n"
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r0], 1, 4; mov.b64 %d5, 64;\n"
      "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r0], 0, %d5;\n"
      "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r0], 0, 8;\n"
      "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r0], 1, 2;\n"
      "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r0], 1, 1;\n"
      "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r0], 2;\n"
      "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r0], 0;\n"
      "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r0], 0;\n"
      "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r0], 0;\n"
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d3+128], [%r0], 128;\n"
      "fence.proxy.tensormap::generic.acquire.gpu [%d3+128], 128;\n";
  std::string text = LoadKernel({0, 1}, 64, "[%d3+128, ");
  const std::string load = "ld.param.u64 %d0, [out];";
  text.replace(text.find(load), load.size(), load + change);
  ASSERT_EQ(device.Load({text}), "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty());
  const uint64_t out = device.Allocate(kShared);
  Parameter parameter;
  std::memcpy(parameter.bytes.data(), &maps, sizeof(maps));
  std::memcpy(parameter.bytes.data() + 8, &numbers, sizeof(numbers));
  const Outcome outcome = device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out).Add(parameter));
  ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  EXPECT_EQ(device.Download<uint32_t>(out, 3), (std::vector<uint32_t>{17, 18, 19}));
  EXPECT_EQ(device.Download<uint32_t>(out, 9)[8], 33u);
  // What is no map is not made one.
  std::memset(reinterpret_cast<void*>(maps), 0, TensorMap::kBytes);
  const Fault fault = device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out).Add(parameter)).fault;
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalInstruction);
  EXPECT_THAT(fault.Text(), HasSubstr("no tensor map"));
  for (const std::string bad :
       {"fill_mode.shared::cta.b1024.b32 [%r0], 1;", "swizzle_mode.shared::cta.b1024.b32 [%r0], 4;",
        "box_dim.shared::cta.b1024.b32 [%r0], 5, 1;", "elemtype.shared::cta.b1024.b32 [%r0], %r1;"}) {
    std::string refused = LoadKernel({0, 1}, 64);
    refused.replace(refused.find(load), load.size(), load + " tensormap.replace.tile." + bad);
    ASSERT_EQ(device.Load({refused}), "");
    EXPECT_EQ(device.program().unsupported().size(), 1u) << bad;
  }
}

TEST(TensorCopyCluster, OneBoxReachesSeveralBlocks) {
  // Rank 1 loads a box for ranks 0 and 1, each of which waits at a barrier of its own; rank 2 has nothing of it.
  Device device(0);
  const std::string text =
      ".version 8.4\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {\n"
      ".reg .pred %p<4>; .reg .b16 %to; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
      ".shared .align 8 .b64 bar; .shared .align 128 .b8 s[256]; ld.param.u64 %d0, [out]; mov.b64 %d1, map;\n"
      "cvta.param.u64 %d1, %d1; mov.u32 %r0, s; add.u32 %r0, %r0, 128; mov.u32 %r1, bar; mov.u32 %r2, "
      "%cluster_ctarank;\n"
      "mbarrier.init.shared::cta.b64 [%r1], 1; setp.eq.u32 %p0, %r2, 1; setp.eq.u32 %p1, %r2, 2; selp.b32 %r3, 0, 64, "
      "%p1;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r3; barrier.cluster.arrive; barrier.cluster.wait;\n"
      "mov.b16 %to, 3; @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%r0], [%d1, {0, 1}], [%r1], %to;\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra W; ld.shared.u32 %r4, [%r0+32];\n"
      "mad.wide.u32 %d0, %r2, 4, %d0; st.global.u32 [%d0], %r4; barrier.cluster.arrive; barrier.cluster.wait; ret; }\n";
  ASSERT_EQ(device.Load({text}), "");
  EXPECT_THAT(device.program().unsupported(), testing::IsEmpty());
  const TensorMap map = Numbers(device.Upload(Counting(64)), {16, 4}, {64}, {8, 2}, {});
  const uint64_t out = device.Allocate(12);
  device.config.cluster = {3, 1, 1};
  const Outcome outcome = device.Run("k", {3, 1, 1}, {1, 1, 1}, Arguments().Add(out).Add(AsParameter(map)));
  ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  EXPECT_EQ(device.Download<uint32_t>(out, 3), (std::vector<uint32_t>{33, 33, 0}));
}

}  // namespace
}  // namespace hawser::exec
