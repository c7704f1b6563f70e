// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.cu against the same computation on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <tuple>

#include "tests/unit/softcuda_exec/device.h"
#include "tests/unit/softcuda_exec/kernels.h"

namespace hawser::exec {
namespace {

/// How many threads help, and the architecture that the kernels were compiled for.
class CudaKernels : public testing::TestWithParam<std::tuple<unsigned, const char*>> {
 protected:
  CudaKernels() : device_(std::get<0>(GetParam())) {}

  void SetUp() override {
#ifndef HAWSER_KERNELS_PTX
    GTEST_SKIP() << "there is no nvcc to compile the kernels";
#else
    std::ifstream file(std::string(HAWSER_KERNELS_PTX) + std::get<1>(GetParam()) + ".ptx");
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_EQ(device_.Load({text.str()}), "");
    EXPECT_THAT(device_.program().unsupported(), testing::IsEmpty());
#endif
  }

  void Run(const std::string& kernel, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
           const Arguments& arguments, uint32_t dynamic = 0) {
    const Outcome outcome = device_.Run(kernel, grid, block, arguments, dynamic);
    ASSERT_TRUE(outcome.ok()) << outcome.fault.Text();
  }

  Device device_;
  std::mt19937_64 random_{42};
};

TEST_P(CudaKernels, DivergentLoops) {
  std::vector<unsigned> in(1000);
  for (unsigned i = 0; i < in.size(); ++i) in[i] = i * 7 + 1;
  const uint64_t out = device_.Allocate(4 * in.size());
  Run("collatz_kernel", {8, 1, 1}, {128, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(1000));
  const auto result = device_.Download<unsigned>(out, in.size());
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(result[i], collatz(in[i])) << in[i];
}

TEST_P(CudaKernels, ShuffleAndSharedReduction) {
  std::vector<int> in(10000);
  int expected = 0;
  for (size_t i = 0; i < in.size(); ++i) expected += in[i] = static_cast<int>(i * i % 1009) - 500;
  const uint64_t out = device_.Allocate(4);
  Run("block_sum", {40, 1, 1}, {256, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(10000));
  EXPECT_EQ(device_.Download<int>(out, 1)[0], expected);
}

TEST_P(CudaKernels, Histogram) {
  std::vector<unsigned char> in(20000);
  std::vector<unsigned> expected(256);
  for (auto& v : in) ++expected[v = static_cast<unsigned char>(random_())];
  const uint64_t out = device_.Allocate(1024);
  Run("histogram", {5, 1, 1}, {256, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(20000));
  EXPECT_EQ(device_.Download<unsigned>(out, 256), expected);
}

TEST_P(CudaKernels, Recursion) {
  const uint64_t out = device_.Allocate(4 * 64);
  Run("fib_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(out));
  const auto result = device_.Download<int>(out, 64);
  constexpr int kFib[13] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(result[i], kFib[i % 13]);
}

TEST_P(CudaKernels, DoubleMath) {
  std::vector<double> in = {0.0, -0.0, 1.0, -1.0, 0.5, 1e-10, 20.0, -30.0, 1e5};
  std::uniform_real_distribution<double> range(-20, 20);
  while (in.size() < 200) in.push_back(range(random_));
  const auto n = static_cast<int>(in.size());
  const uint64_t out = device_.Allocate(8 * in.size() * kMathFunctions);
  Run("math_kernel", {7, 1, 1}, {32, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(n));
  const auto result = device_.Download<double>(out, in.size() * kMathFunctions);
  for (size_t i = 0; i < in.size(); ++i) {
    double expected[kMathFunctions];
    math_functions(in[i], expected);
    for (size_t k = 0; k < kMathFunctions; ++k) {
      const double got = result[i * kMathFunctions + k];
      if (std::isnan(expected[k]) || std::isinf(expected[k])) {
        EXPECT_TRUE(std::isnan(expected[k]) ? std::isnan(got) : got == expected[k]) << k << " of " << in[i];
      } else {
        EXPECT_NEAR(got, expected[k], std::fabs(expected[k]) * 1e-14 + 1e-300) << "function " << k << " of " << in[i];
      }
    }
  }
}

TEST_P(CudaKernels, FloatMath) {
  std::vector<float> in = {0.0f, 1.0f, -1.0f, 0.5f, 1e-10f, 20.0f, -30.0f, 1e5f};
  std::uniform_real_distribution<float> range(-20, 20);
  while (in.size() < 200) in.push_back(range(random_));
  const auto n = static_cast<int>(in.size());
  const uint64_t out = device_.Allocate(4 * in.size() * kMathFunctions);
  Run("mathf_kernel", {7, 1, 1}, {32, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(n));
  const auto result = device_.Download<float>(out, in.size() * kMathFunctions);
  for (size_t i = 0; i < in.size(); ++i) {
    float expected[kMathFunctions];
    math_functions_f(in[i], expected);
    for (size_t k = 0; k < kMathFunctions; ++k) {
      const float got = result[i * kMathFunctions + k];
      if (std::isnan(expected[k]) || std::isinf(expected[k])) {
        EXPECT_TRUE(std::isnan(expected[k]) ? std::isnan(got) : got == expected[k]) << k << " of " << in[i];
      } else {
        EXPECT_NEAR(got, expected[k], std::fabs(expected[k]) * 2e-6f + 1e-38f) << "function " << k << " of " << in[i];
      }
    }
  }
}

TEST_P(CudaKernels, Integers) {
  std::vector<int64_t> in = {0, 1, -1, INT64_MAX, INT64_MIN + 1, INT32_MAX, INT32_MIN, 3, -3, 65536};
  while (in.size() < 256)
    in.push_back(static_cast<int64_t>(random_() >> (random_() % 60)) * (random_() % 2 == 0 ? 1 : -1));
  const auto n = static_cast<int>(in.size());
  const uint64_t out = device_.Allocate(8 * in.size() * kIntegerFunctions);
  Run("integer_kernel", {4, 1, 1}, {64, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(n));
  const auto result = device_.Download<int64_t>(out, in.size() * kIntegerFunctions);
  for (size_t i = 0; i < in.size(); ++i) {
    long long expected[kIntegerFunctions];
    integer_functions(in[i], in[(i + 1) % in.size()], expected);
    for (size_t k = 0; k < kIntegerFunctions; ++k) {
      EXPECT_EQ(result[i * kIntegerFunctions + k], expected[k])
          << "function " << k << " of " << in[i] << ", " << in[(i + 1) % in.size()];
    }
  }
}

TEST_P(CudaKernels, LocalArrays) {
  std::vector<int> data(24 * 40);
  for (auto& v : data) v = static_cast<int>(random_() % 1000);
  const uint64_t place = device_.Upload(data);
  Run("sort_kernel", {1, 1, 1}, {40, 1, 1}, Arguments().Add(place));
  for (size_t i = 0; i < 40; ++i) insertion_sort(data.data() + 24 * i, 24);
  EXPECT_EQ(device_.Download<int>(place, data.size()), data);
}

TEST_P(CudaKernels, Printf) {
  Run("print_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(3));
  EXPECT_EQ(device_.sink.text(),
            "thread 0 of two:  4.50 abcdef00000 z%\n"
            "thread 1 of two:  4.50 abcdef00000 z%\n");
}

TEST_P(CudaKernels, AssertAndTrap) {
  Run("assert_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(32));
  const Outcome failed = device_.Run("assert_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(5));
  EXPECT_EQ(failed.fault.kind, Fault::Kind::kAssert);
  EXPECT_THAT(failed.fault.message, testing::HasSubstr("block: [0,0,0], thread: [5,0,0] Assertion `"));
  EXPECT_THAT(failed.fault.message, testing::HasSubstr("kernels.cu"));
  const Outcome trapped = device_.Run("trap_kernel", {1, 1, 1}, {32, 1, 1}, Arguments());
  EXPECT_EQ(trapped.fault.kind, Fault::Kind::kTrap);
  EXPECT_EQ(trapped.fault.thread[0], 3u);
}

TEST_P(CudaKernels, DeviceHeap) {
  const uint64_t region = device_.Allocate(1 << 20);
  DeviceHeap heap(region, 1 << 20);
  device_.config.heap = &heap;
  const uint64_t out = device_.Allocate(4 * 64);
  Run("list_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(out).Add(20));
  const auto result = device_.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(result[static_cast<size_t>(i)], 190 + 20 * i);
  EXPECT_EQ(heap.used(), 0u);
}

TEST_P(CudaKernels, GridSync) {
  constexpr int kThreads = 24 * 64;
  const uint64_t data = device_.Allocate(4 * kThreads);
  const uint64_t out = device_.Allocate(4 * kThreads);
  device_.config.cooperative = true;
  Run("grid_sync_kernel", {24, 1, 1}, {64, 1, 1}, Arguments().Add(data).Add(out));
  const auto result = device_.Download<int>(out, kThreads);
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(result[static_cast<size_t>(i)], 3 * ((i + 37) % kThreads) + 3);
}

TEST_P(CudaKernels, GridSyncNeedsACooperativeLaunch) {
  const uint64_t data = device_.Allocate(4 * 64);
  const Outcome outcome = device_.Run("grid_sync_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(data).Add(data));
  EXPECT_EQ(outcome.fault.kind, Fault::Kind::kTrap);
}

TEST_P(CudaKernels, SpinLockBetweenLanes) {
  const uint64_t lock = device_.Allocate(8);
  Run("lane_lock", {3, 1, 1}, {96, 1, 1}, Arguments().Add(lock).Add(lock + 4));
  EXPECT_EQ(device_.Download<int>(lock, 2)[1], 288);
}

TEST_P(CudaKernels, SpinBetweenWarps) {
  const uint64_t flag = device_.Allocate(16);
  const uint64_t out = device_.Allocate(4 * 4 * 128);
  Run("spin_for_warp", {4, 1, 1}, {128, 1, 1}, Arguments().Add(flag).Add(out));
  EXPECT_EQ(device_.Download<int>(out, 1)[0], 5);
}

TEST_P(CudaKernels, Tiles) {
  std::vector<int> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7 % 23);
  const uint64_t out = device_.Allocate(4 * 64 * 6);
  Run("tile_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out));
  const auto result = device_.Download<int>(out, 64 * 6);
  int above = 0;
  for (const int v : in) above += v > 10 ? 1 : 0;
  for (size_t i = 0; i < 64; ++i) {
    int sum = 0;
    int ballot = 0;
    for (size_t k = i / 8 * 8; k < i / 8 * 8 + 8; ++k) {
      sum += in[k];
      ballot |= in[k] % 2 == 0 ? 1 << (k % 8) : 0;
    }
    int size = 0;
    int rank = 0;
    uint32_t same = 0;
    for (size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
      size += in[k] % 3 == 0 ? 1 : 0;
      rank += in[k] % 3 == 0 && k < i ? 1 : 0;
      same |= in[k] % 4 == in[i] % 4 ? 1u << (k % 32) : 0;
    }
    const int* r = &result[i * 6];
    EXPECT_EQ(r[0], sum) << i;
    EXPECT_EQ(r[1], ballot) << i;
    EXPECT_EQ(r[2], in[i ^ 3]) << i;
    EXPECT_EQ(r[3], in[i] % 3 == 0 ? size * 100 + rank : 0) << i;
    EXPECT_EQ(static_cast<uint32_t>(r[4]), same) << i;
    EXPECT_EQ(r[5], above) << i;
  }
}

TEST_P(CudaKernels, VirtualFunctions) {
  const uint64_t out = device_.Allocate(4 * 32);
  Run("virtual_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(out));
  const auto result = device_.Download<int>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(result[static_cast<size_t>(i)], i % 3 == 0 ? i : i % 3 == 1 ? i * i : 2 * i);
}

TEST_P(CudaKernels, StructParametersAndDynamicShared) {
  const Parameters p{{5, 4, 3, 2, 1}, 2.5, 100};
  const uint64_t out = device_.Allocate(4 * 64);
  Run("struct_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(p).Add(out), 256);
  const auto result = device_.Download<int>(out, 64);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(result[static_cast<size_t>(i)], p.values[(63 - i) % 5] + static_cast<int>(2.5 * (i % 16 + 1)) + 100) << i;
  }
  const Outcome without = device_.Run("struct_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(p).Add(out), 0);
  EXPECT_EQ(without.fault.kind, Fault::Kind::kIllegalAddress);
}

TEST_P(CudaKernels, Globals) {
  Run("globals_kernel", {2, 1, 1}, {32, 1, 1}, Arguments());
  EXPECT_EQ(device_.Download<int>(device_.symbol("counter"), 1)[0], 71);
  const int managed = device_.program().FindSymbol("managed_value");
  ASSERT_GE(managed, 0);
  EXPECT_TRUE(device_.program().symbols()[static_cast<size_t>(managed)].managed);
  EXPECT_EQ(device_.Download<int>(device_.symbol("managed_value"), 1)[0], 23);
}

TEST_P(CudaKernels, Switch) {
  std::vector<int> in(32);
  for (int i = 0; i < 32; ++i) in[static_cast<size_t>(i)] = i % 11 - 1;
  const uint64_t out = device_.Allocate(128);
  Run("switch_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out));
  const auto result = device_.Download<int>(out, 32);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(result[i], many_ways(in[i]));
}

#if defined(__FLT16_MAX__)
/// The nearest bf16, as a float: its upper half; ties to even. Of finite numbers.
float ToBfloat(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

TEST_P(CudaKernels, Halves) {
  std::vector<float> in(65);
  std::uniform_real_distribution<float> range(-8, 8);
  for (auto& v : in) v = range(random_);
  in[3] = 65504.0f;
  in[4] = 65520.0f;
  in[5] = 1e-7f;
  in[6] = 0.0f;
  const uint64_t out = device_.Allocate(4 * 64 * 12);
  Run("half_kernel", {1, 1, 1}, {64, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out));
  const auto result = device_.Download<float>(out, 64 * 12);
  for (size_t i = 0; i < 64; ++i) {
    const auto a = static_cast<_Float16>(in[i]);
    const auto b = static_cast<_Float16>(in[i + 1]);
    const auto fma = [](_Float16 x, _Float16 y, _Float16 z) {
      return static_cast<_Float16>(static_cast<double>(x) * static_cast<double>(y) + static_cast<double>(z));
    };
    const float* r = &result[i * 12];
    EXPECT_EQ(r[0], static_cast<float>(a)) << i;
    EXPECT_EQ(r[1], static_cast<float>(static_cast<_Float16>(static_cast<float>(a) + static_cast<float>(b)))) << i;
    EXPECT_EQ(r[2], static_cast<float>(static_cast<_Float16>(static_cast<float>(a) * static_cast<float>(b)))) << i;
    if (!std::isnan(r[3])) {
      EXPECT_EQ(r[3], static_cast<float>(fma(a, b, a))) << i;
    }
    if (!std::isnan(r[4])) {
      EXPECT_EQ(r[4], static_cast<float>(static_cast<_Float16>(static_cast<float>(a) - static_cast<float>(b)))) << i;
    }
    EXPECT_EQ(r[6], a < b ? 1.0f : 0.0f) << i;
    EXPECT_EQ(r[7], static_cast<float>(fma(a, a, a))) << i;
    EXPECT_EQ(r[8], static_cast<float>(fma(b, b, b))) << i;
    const float c = ToBfloat(in[i]);
    const float d = ToBfloat(in[i + 1]);
    EXPECT_EQ(r[9], c) << i;
    EXPECT_EQ(r[10], ToBfloat(c + d)) << i;
    EXPECT_EQ(r[11], ToBfloat(c * d)) << i;
  }
}
#endif

TEST_P(CudaKernels, AtomicsOfAllTypes) {
  const uint64_t sum = device_.Upload(std::vector<double>{0});
  const uint64_t fsum = device_.Upload(std::vector<float>{0});
  const uint64_t low = device_.Upload(std::vector<int>{INT32_MAX});
  const uint64_t high = device_.Upload(std::vector<uint64_t>{0});
  Run("double_atomics", {4, 1, 1}, {100, 1, 1}, Arguments().Add(sum).Add(fsum).Add(low).Add(high));
  EXPECT_EQ(device_.Download<double>(sum, 1)[0], 399 * 400 / 4.0);
  EXPECT_EQ(device_.Download<float>(fsum, 1)[0], 400.0f);
  EXPECT_EQ(device_.Download<int>(low, 1)[0], 601);
  EXPECT_EQ(device_.Download<uint64_t>(high, 1)[0], uint64_t{399} << 33);
}

TEST_P(CudaKernels, Transpose) {
  std::vector<float> in(128 * 128);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  const uint64_t out = device_.Allocate(4 * in.size());
  Run("transpose", {4, 4, 1}, {32, 8, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(128));
  const auto result = device_.Download<float>(out, in.size());
  for (size_t y = 0; y < 128; ++y) {
    for (size_t x = 0; x < 128; ++x) ASSERT_EQ(result[x * 128 + y], in[y * 128 + x]);
  }
}

#if defined(__FLT16_MAX__)
TEST_P(CudaKernels, WarpMatrix) {
  std::vector<_Float16> a(256);
  std::vector<_Float16> b(256);
  for (size_t i = 0; i < 256; ++i) {
    a[i] = static_cast<_Float16>(static_cast<float>(i % 13) - 6);
    b[i] = static_cast<_Float16>(static_cast<float>(i % 7) * 0.5f - 1);
  }
  const uint64_t c = device_.Allocate(1024);
  Run("wmma_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(device_.Upload(a)).Add(device_.Upload(b)).Add(c));
  const auto result = device_.Download<float>(c, 256);
  for (size_t y = 0; y < 16; ++y) {
    for (size_t x = 0; x < 16; ++x) {
      float sum = 1;
      for (size_t k = 0; k < 16; ++k) sum += static_cast<float>(a[y * 16 + k]) * static_cast<float>(b[x * 16 + k]);
      EXPECT_EQ(result[y * 16 + x], 2 * sum) << y << ", " << x;
    }
  }
}
#endif

TEST_P(CudaKernels, PackedBytes) {
  std::vector<unsigned> in(33);
  for (auto& v : in) v = static_cast<unsigned>(random_());
  const uint64_t out = device_.Allocate(4 * 32 * 6);
  Run("bytes_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out));
  const auto result = device_.Download<unsigned>(out, 32 * 6);
  for (size_t i = 0; i < 32; ++i) {
    unsigned differences = 0;
    unsigned total = 0;
    unsigned sums = 0;
    int dot = 7;
    for (unsigned k = 0; k < 32; k += 8) {
      const int a = static_cast<int>(in[i] >> k & 255);
      const int b = static_cast<int>(in[i + 1] >> k & 255);
      differences |= static_cast<unsigned>(std::abs(a - b)) << k;
      total += static_cast<unsigned>(std::abs(a - b));
      sums |= static_cast<unsigned>((a + b) & 255) << k;
      dot += static_cast<int8_t>(a) * static_cast<int8_t>(b);
    }
    const auto half = [&](unsigned shift) {
      return static_cast<unsigned>(static_cast<uint16_t>(
                 std::max(static_cast<int16_t>(in[i] >> shift), static_cast<int16_t>(in[i + 1] >> shift))))
             << shift;
    };
    const unsigned* r = &result[i * 6];
    EXPECT_EQ(r[0], differences) << i;
    EXPECT_EQ(r[1], total) << i;
    EXPECT_EQ(r[2], sums) << i;
    EXPECT_EQ(r[3], half(0) | half(16)) << i;
    EXPECT_EQ(r[4], total + 5) << i;
    EXPECT_EQ(static_cast<int>(r[5]), dot) << i;
  }
}

TEST_P(CudaKernels, Clusters) {
  if (device_.program().FindKernel("cluster_kernel") < 0) return;  // Compiled for a device without clusters.
  constexpr uint32_t kThreads = 96;
  std::vector<uint32_t> in(12 * kThreads);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint32_t>(i % 1000);
  const uint64_t out = device_.Allocate(4 * in.size());
  device_.config.cluster = {4, 1, 1};
  Run("cluster_kernel", {12, 1, 1}, {kThreads, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out));
  const auto result = device_.Download<uint32_t>(out, in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t block = i / kThreads;
    uint32_t total = static_cast<uint32_t>(1000000 * (block % 4));
    for (size_t k = block / 4 * 4 * kThreads; k < (block / 4 + 1) * 4 * kThreads; ++k) total += in[k];
    ASSERT_EQ(result[i], total) << i;
  }
}

TEST_P(CudaKernels, OutOfBoundsIsReported) {
  std::vector<unsigned> in(100, 3);
  const uint64_t out = device_.Allocate(4 * 100);
  const Outcome outcome =
      device_.Run("collatz_kernel", {1, 1, 1}, {128, 1, 1}, Arguments().Add(device_.Upload(in)).Add(out).Add(120));
  EXPECT_EQ(outcome.fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(outcome.fault.thread[0], 100u);
  EXPECT_EQ(outcome.fault.size, 4u);
  EXPECT_EQ(outcome.fault.kernel, "collatz_kernel");
  EXPECT_THAT(outcome.fault.Text(), testing::HasSubstr("0 bytes before the address"));
  const Outcome odd = device_.Run("collatz_kernel", {1, 1, 1}, {32, 1, 1}, Arguments().Add(out + 2).Add(out).Add(10));
  EXPECT_EQ(odd.fault.kind, Fault::Kind::kMisaligned);
}

INSTANTIATE_TEST_SUITE_P(Threads, CudaKernels,
                         testing::Combine(testing::Values(0u, 3u), testing::Values("75", "80", "90")),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "HelpersCompute" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace hawser::exec
