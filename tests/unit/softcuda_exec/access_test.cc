// SPDX-License-Identifier: Apache-2.0
// The lanes' addresses of one access: those that lie as most programs have them are read and written in fewer steps,
// and all must be inside of what the program may use.
#include <algorithm>
#include <functional>

#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

constexpr uint32_t kElements = 256;

/// Thread i accesses in + at[i]. First all threads access their own element, so that the instruction knows the memory:
/// what is not there has to be found by its quick check. Threads whose bit of `mask` is not set do nothing then.
std::string AccessKernel(const std::string& type, const std::string& instruction) {
  return kHead +
         ".visible .entry k(.param .u64 in, .param .u64 at, .param .u64 out, .param .u32 size, .param .u32 width,\n"
         ".param .u32 mask) {\n"
         ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg ." +
         type +
         " %v<4>;\n"
         "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [at]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [size];\n"
         "ld.param.u32 %r2, [mask]; ld.param.u32 %r5, [width]; mov.u32 %r7, %tid.x; mul.wide.u32 %d3, %r7, %r1;\n"
         "add.u64 %d4, %d0, %d3; mul.wide.u32 %d3, %r7, %r5;\n"
         "add.u64 %d8, %d2, %d3; mul.wide.u32 %d3, %r7, 8; add.u64 %d3, %d1, %d3; ld.global.u64 %d5, [%d3];\n"
         "add.u64 %d5, %d5, %d0; shr.u32 %r3, %r2, %r7; and.b32 %r3, %r3, 1; mov.b32 %r4, 0;\n"
         "cvt.u" +
         type.substr(1) +
         ".u32 %v0, %r7;\n"
         "setp.eq.u32 %p0, %r4, 0;\n"
         "AGAIN:\n@%p0 " +
         instruction +
         "\n"
         "add.u32 %r4, %r4, 1; mov.u64 %d4, %d5; setp.eq.u32 %p0, %r3, 1; setp.lt.u32 %p1, %r4, 2; @%p1 bra AGAIN;\n"
         "st.global." +
         type + " [%d8], %v0; ret; }\n";
}

/// The sizes of elements in bytes, and their registers.
template <typename M>
std::string TypeOf() {
  return "b" + std::to_string(8 * sizeof(M));
}
template <>
std::string TypeOf<uint8_t>() {
  return "b16";  // There are no registers of eight bits that could be converted to.
}

/// A device with `in` filled with what differs everywhere.
template <typename M>
class Access {
 public:
  explicit Access(const std::string& instruction) {
    EXPECT_EQ(device_.Load({AccessKernel(TypeOf<M>(), instruction)}), "");
    EXPECT_THAT(device_.program().unsupported(), testing::IsEmpty());
    std::vector<M> values(kElements);
    for (uint32_t i = 0; i < kElements; ++i) values[i] = Value(i);
    in_ = device_.Upload(values);
  }

  static M Value(uint64_t element) { return static_cast<M>(0x0123456789abcdef * (element + 1) + element); }

  Outcome Run(const std::vector<uint64_t>& offsets, uint32_t mask) {
    out_ = device_.Allocate(8 * kLanes);
    return device_.Run("k", {1, 1, 1}, {kLanes, 1, 1},
                       Arguments()
                           .Add(in_)
                           .Add(device_.Upload(offsets))
                           .Add(out_)
                           .Add(static_cast<uint32_t>(sizeof(M)))
                           .Add(Width())
                           .Add(mask));
  }

  /// Of what a register holds.
  static constexpr uint32_t Width() { return std::max<uint32_t>(2, sizeof(M)); }
  uint64_t Result(uint32_t lane) const {
    uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const char*>(out_) + size_t{lane} * Width(), Width());
    return value;
  }
  uint64_t in() const { return in_; }
  std::vector<M> memory() const { return device_.Download<M>(in_, kElements); }

  static constexpr uint32_t kLanes = 32;

 private:
  Device device_{0};
  uint64_t in_ = 0;
  uint64_t out_ = 0;
};

struct Pattern {
  const char* name;
  std::function<uint64_t(uint32_t)> element;  ///< Of a lane.
};

const std::vector<Pattern> kPatterns = {
    {"neighbours", [](uint32_t lane) { return lane + 3; }},
    {"all the same", [](uint32_t) { return 77; }},
    {"rows of eight neighbours", [](uint32_t lane) { return lane / 8 * 20 + lane % 8 + 1; }},
    {"rows of the same eight neighbours", [](uint32_t lane) { return lane % 8 + 5; }},
    {"rows of the same element", [](uint32_t lane) { return lane / 8 * 30 + 2; }},
    {"rows of eight neighbours but for the last lane", [](uint32_t lane) { return lane == 31 ? 9 : lane % 8; }},
    {"rows of the same element but for one lane", [](uint32_t lane) { return lane == 12 ? 9 : lane / 8; }},
    {"rows of four neighbours", [](uint32_t lane) { return lane / 4 * 6 + lane % 4; }},
    {"the last row backwards", [](uint32_t lane) { return lane < 24 ? lane : 60 - lane; }},
    {"backwards", [](uint32_t lane) { return kElements - 1 - lane; }},
    {"every other", [](uint32_t lane) { return 2 * lane; }},
    {"up to the end", [](uint32_t lane) { return kElements - 32 + lane; }},
    {"rows up to the end", [](uint32_t lane) { return kElements - 8 + lane % 8; }},
    {"here and there", [](uint32_t lane) { return lane * 89 % kElements; }},
};

const std::vector<uint32_t> kMasks = {0xffffffff, 0x7fffffff, 0xfffffffe, 0x00ff00ff, 0x80000001, 0x00010000};

/// Calls `check` with an element of each size and how an instruction names it.
template <typename Check>
void ForAllSizes(const Check& check) {
  check(uint8_t{}, "u8");
  check(uint16_t{}, "b16");
  check(uint32_t{}, "b32");
  check(uint64_t{}, "b64");
}

template <typename M>
void LoadsOf(const std::string& suffix) {
  Access<M> access("ld.global." + suffix + " %v0, [%d4];");
  for (const Pattern& pattern : kPatterns) {
    std::vector<uint64_t> offsets;
    for (uint32_t lane = 0; lane < 32; ++lane) offsets.push_back(pattern.element(lane) * sizeof(M));
    for (const uint32_t mask : kMasks) {
      ASSERT_TRUE(access.Run(offsets, mask).ok()) << pattern.name;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const bool on = (mask >> lane & 1) != 0;
        EXPECT_EQ(access.Result(lane), Access<M>::Value(on ? pattern.element(lane) : lane))
            << suffix << ", " << pattern.name << ", mask " << std::hex << mask << ", lane " << std::dec << lane;
      }
    }
  }
}

TEST(Access, LoadsOfAllPatterns) {
  ForAllSizes([](auto element, const std::string& suffix) { LoadsOf<decltype(element)>(suffix); });
}

template <typename M>
void StoresOf(const std::string& suffix) {
  for (const Pattern& pattern : kPatterns) {
    for (const uint32_t mask : kMasks) {
      Access<M> access("st.global." + suffix + " [%d4], %v0;");
      std::vector<M> expected = access.memory();
      std::vector<uint64_t> offsets;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        offsets.push_back(pattern.element(lane) * sizeof(M));
        expected[lane] = static_cast<M>(lane);  // The first round.
      }
      ASSERT_TRUE(access.Run(offsets, mask).ok()) << pattern.name;
      const std::vector<M> got = access.memory();
      std::vector<std::vector<M>> candidates(kElements);  // Of lanes that write the same element, any may win.
      for (uint32_t lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) candidates[pattern.element(lane)].push_back(static_cast<M>(lane));
      }
      for (uint32_t i = 0; i < kElements; ++i) {
        if (candidates[i].empty()) candidates[i].push_back(expected[i]);
        EXPECT_THAT(candidates[i], testing::Contains(got[i]))
            << suffix << ", " << pattern.name << ", mask " << std::hex << mask << ", element " << std::dec << i;
      }
    }
  }
}

TEST(Access, StoresOfAllPatterns) {
  ForAllSizes([](auto element, const std::string& suffix) { StoresOf<decltype(element)>(suffix); });
}

// One lane is outside, at each end and far away: where differences of addresses have gone around.
TEST(Access, OneLaneOutside) {
  constexpr uint64_t kSize = uint64_t{kElements} * sizeof(uint32_t);
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  for (const char* instruction : {"ld.global.b32 %v0, [%d4];", "st.global.b32 [%d4], %v0;"}) {
    Access<uint32_t> access(instruction);
    const uint64_t in = access.in();
    const std::vector<uint64_t> outside = {kSize,
                                           kSize + (uint64_t{1} << 40),
                                           0 - uint64_t{4},
                                           0 - in,
                                           0 - in - 4,
                                           kHalf,
                                           kHalf - 4,
                                           kHalf + kSize,
                                           kHalf - in,
                                           kHalf - in - 4,
                                           kHalf - in + 4,
                                           kHalf + in,
                                           kHalf + in + kSize,
                                           kHalf + kHalf / 2};
    for (const uint64_t offset : outside) {
      for (const uint32_t lane : {0U, 8U, 15U, 31U}) {
        for (const bool rows : {false, true}) {
          std::vector<uint64_t> offsets;
          for (uint32_t i = 0; i < 32; ++i) offsets.push_back(uint64_t{4} * (rows ? i / 8 : i));
          offsets[lane] = offset;
          const Fault fault = access.Run(offsets, 0xffffffff).fault;
          EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress) << std::hex << offset << " lane " << lane;
          EXPECT_EQ(fault.address, in + offset);
          EXPECT_EQ(fault.thread[0], lane);
          // Lanes that do nothing may be anywhere.
          EXPECT_TRUE(access.Run(offsets, ~(1U << lane)).ok()) << std::hex << offset << " lane " << lane;
        }
      }
    }
    for (const uint64_t offset : {uint64_t{1}, kSize - 3, uint64_t{6}}) {
      std::vector<uint64_t> offsets(32, 0);
      offsets[9] = offset;
      EXPECT_EQ(access.Run(offsets, 0xffffffff).fault.kind, Fault::Kind::kMisaligned) << offset;
    }
  }
}

// Addresses of 32 bits, which wrap around: 256 bytes before the array, and as many behind that.
TEST(Access, RowsOfSharedMemory) {
  const std::string store =
      ".shared .align 4 .b8 s[512]; mov.u32 %r1, s; shr.u32 %r2, %r7, 3; shl.b32 %r2, %r2, 6; and.b32 %r3, %r7, 7;\n"
      "shl.b32 %r3, %r3, 2; add.u32 %r2, %r2, %r3; add.u32 %r1, %r1, %r2; sub.u32 %r1, %r1, 256;\n"  // Every other row.
      "add.u32 %r5, %r7, 1000; st.shared.b32 [%r1+256], %r5; bar.sync 0;\n";
  const auto own = RunBody(store + "ld.shared.b32 %r0, [%r1+256];", 64);
  const auto first = RunBody(store + "sub.u32 %r1, %r1, %r3; ld.shared.b32 %r0, [%r1+256];", 64);
  const auto backwards =
      RunBody(store + "sub.u32 %r1, %r1, %r3; sub.u32 %r1, %r1, %r3; ld.shared.b32 %r0, [%r1+284];", 64);
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(own[i], 1000 + i);
    EXPECT_EQ(first[i], 1000 + i / 8 * 8);
    EXPECT_EQ(backwards[i], 1000 + i / 8 * 8 + 7 - i % 8);
  }
  for (const std::string access : {"ld.shared.b32 %r0, [%r1+224];", "st.shared.b32 [%r1+224], %r7;"}) {
    // The last of the second warp is one element beyond.
    const std::string beyond =
        ".shared .align 4 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r1, %r7, 4, %r1; add.u32 %r1, %r1, 36;\n";
    EXPECT_EQ(FaultOf(beyond + access, 63).kind, Fault::Kind::kNone);
    const Fault fault = FaultOf(beyond + access, 64);
    EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress);
    EXPECT_EQ(fault.thread[0], 63u);
    EXPECT_EQ(fault.address, 512u);
  }
}

TEST(Access, VectorsAreInsideWhole) {
  const Fault fault = FaultOf("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d0];", 3);
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress);  // 12 bytes are all that there is.
  EXPECT_EQ(fault.size, 16u);
  EXPECT_EQ(FaultOf("st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3};", 3).kind, Fault::Kind::kIllegalAddress);
}

}  // namespace
}  // namespace hawser::exec
