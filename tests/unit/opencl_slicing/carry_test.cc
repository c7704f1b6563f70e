// SPDX-License-Identifier: Apache-2.0
// Launches in parts give the same bytes as whole ones: each built-in, shapes, offsets, local memory, atomics.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "server/backends/opencl/slicing/carry_probe.h"
#include "server/worker/launch_gate.h"
#include "tests/unit/backend_opencl/session.h"

namespace hawser::server::ocl {
namespace {

/// Open, and counts.
class CountingGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return 0; }
  uint32_t Tenants() const override { return 1; }
  bool TryEnter(uint64_t) override { return ++entered_ != 0; }
  bool Enter(uint64_t) override { return ++entered_ != 0; }
  void Leave(uint64_t, uint64_t) override { ++left_; }
  void Cancel() override {}
  int entered() const { return entered_; }
  int left() const { return left_; }

 private:
  std::atomic<int> entered_{0}, left_{0};
};

// No loops over the dimension: PoCL 3.1 leaves calls with a dimension that it does not know unresolved in larger
// kernels, and gives up the process.
constexpr std::string_view kKernels = R"(
#define FIELDS 16
static ulong place(void) {
  return ((get_global_id(2) - get_global_offset(2)) * get_global_size(1) + get_global_id(1) - get_global_offset(1)) *
             get_global_size(0) + get_global_id(0) - get_global_offset(0);
}
kernel void geometry(global ulong* out) {
  global ulong* at = out + FIELDS * place();
  at[0] = get_group_id(0);
  at[2] = get_num_groups(0);
  at[4] = get_global_size(0);
  at[6] = get_global_offset(0);
  at[8] = get_global_id(0);
  at[10] = get_local_id(0) + 1000 * get_local_size(0);
  at[1] = get_group_id(1);
  at[3] = get_num_groups(1);
  at[5] = get_global_size(1);
  at[7] = get_global_offset(1);
  at[9] = get_global_id(1);
  at[11] = get_local_id(1) + 1000 * get_local_size(1);
  at[12] = get_work_dim();
  at[13] = get_global_id(2) * 100 + get_global_size(2) * 10 + get_num_groups(2) + get_local_size(2) * 1000;
  at[14] = get_global_offset(0) >= 50 ? 7 : 8;
  at[15] = get_group_id(2) + get_global_offset(2) + get_group_id(7) + get_num_groups(9);
}
kernel void plain(global ulong* out, ulong x, ulong y, ulong z, ulong sx, ulong sy) {
  ulong at = ((get_global_id(2) - z) * sy + get_global_id(1) - y) * sx + get_global_id(0) - x;
  out[at] = at * 3 + get_local_id(0) + 100 * get_local_size(1);
}
kernel void reduce(global const ulong* in, global ulong* sums, local ulong* scratch) {
  size_t l = get_local_id(0);
  scratch[l] = in[get_global_id(0) - get_global_offset(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (size_t s = get_local_size(0) / 2; s > 0; s /= 2) {
    if (l < s) scratch[l] += scratch[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) sums[get_group_id(0)] = scratch[0];
}
// The last work-group that is done adds up what all have left.
kernel void last_done(global const uint* in, global uint* parts, global uint* count, global uint* result) {
  local uint last;
  if (get_local_id(0) == 0) {
    uint sum = 0;
    for (uint i = 0; i < get_local_size(0); ++i) sum += in[get_group_id(0) * get_local_size(0) + i];
    parts[get_group_id(0)] = sum;
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    last = atomic_inc(count) == get_num_groups(0) - 1;
    if (last) {
      uint all = 0;
      for (uint i = 0; i < get_num_groups(0); ++i) all += parts[i];
      result[0] = all;
    }
  }
}
kernel void histogram(global const uint* in, global uint* bins, uint n) {
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&bins[in[i] % 16]);
}
kernel void linear(global ulong* out, uint flag) {
  out[place()] = get_group_id(0) + get_global_size(0);
#if __OPENCL_C_VERSION__ >= 300
  out[place()] += 1000000 * get_global_linear_id();
#endif
}
)";

struct Shape {
  std::vector<uint64_t> global, local, offset;
};

class Split : public testing::Test {
 protected:
  /// A session in which launches are split into parts of so many work-items; 0: they are not.
  std::unique_ptr<Session> NewSession(uint64_t items) {
    if (items == 0) {
      ::unsetenv("HAWSER_OPENCL_SPLIT");
    } else {
      ::setenv("HAWSER_OPENCL_SPLIT", ("items=" + std::to_string(items)).c_str(), 1);
    }
    SessionOptions options;
    options.gate = &gate_;
    return std::make_unique<Session>(options);
  }
  void TearDown() override {
    ::unsetenv("HAWSER_OPENCL_SPLIT");
    EXPECT_EQ(gate_.entered(), gate_.left());
  }
  static int32_t Launch(Session& session, Id queue, Id kernel, const Shape& shape, Id event = {}) {
    opencl::EnqueueNDRangeKernel launch;
    launch.queue = queue;
    launch.kernel = kernel;
    launch.work_dim = static_cast<uint32_t>(shape.global.size());
    launch.global = wire::ArrayView<uint64_t>(shape.global.data(), shape.global.size());
    launch.local = wire::ArrayView<uint64_t>(shape.local.data(), shape.local.size());
    launch.offset = wire::ArrayView<uint64_t>(shape.offset.data(), shape.offset.size());
    launch.event = event;
    return session.Do(launch);
  }
  /// The one that sessions use.
  static cl_device_id FirstDevice() {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    EXPECT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), CL_SUCCESS);
    return device;
  }
  static uint64_t Items(const Shape& shape) {
    uint64_t items = 1;
    for (const uint64_t size : shape.global) items *= size;
    return items;
  }

  CountingGate gate_;
};

std::vector<uint64_t> Geometry(Session& session, const Shape& shape, std::string_view options, int32_t* status) {
  const Id queue = session.Queue();
  const Id kernel = session.Kernel(session.Program(kKernels, options), "geometry");
  uint64_t items = 1;
  for (const uint64_t size : shape.global) items *= size;
  const Id buffer = session.BufferOf(std::vector<uint64_t>(items * 16, 77));
  session.SetBuffer(kernel, 0, buffer);
  opencl::EnqueueNDRangeKernel launch;
  launch.queue = queue;
  launch.kernel = kernel;
  launch.work_dim = static_cast<uint32_t>(shape.global.size());
  launch.global = wire::ArrayView<uint64_t>(shape.global.data(), shape.global.size());
  launch.local = wire::ArrayView<uint64_t>(shape.local.data(), shape.local.size());
  launch.offset = wire::ArrayView<uint64_t>(shape.offset.data(), shape.offset.size());
  *status = session.Do(launch);
  return session.ReadAs<uint64_t>(queue, buffer, items * 16);
}

TEST_F(Split, EveryBuiltIn) {
  const Shape shapes[] = {
      {{512}, {8}, {}},
      {{512}, {16}, {60}},
      {{480}, {48}, {}},
      {{64, 16}, {8, 2}, {}},
      {{64, 16}, {4, 4}, {128, 6}},
      {{256, 2}, {64, 1}, {}},
      {{1024, 4}, {8, 4}, {3, 1}},
      {{8, 8, 8}, {2, 2, 2}, {}},
      {{8, 8, 8}, {2, 2, 2}, {5, 6, 7}},
      {{32, 4, 4}, {4, 4, 2}, {0, 0, 4000000}},
  };
  for (const std::string_view options : {"", "-cl-std=CL3.0"}) {
    const bool other_language = !options.empty();
    for (const Shape& shape : shapes) {
      if (other_language && shape.offset.empty()) continue;
      int32_t status = 0;
      const std::vector<uint64_t> whole = Geometry(*NewSession(0), shape, options, &status);
      ASSERT_EQ(status, CL_SUCCESS);
      ASSERT_EQ(whole.size(), Items(shape) * 16);
      for (const uint64_t items : other_language ? std::vector<uint64_t>{128} : std::vector<uint64_t>{64, 1024}) {
        const int before = gate_.entered();
        const std::vector<uint64_t> parts = Geometry(*NewSession(items), shape, options, &status);
        ASSERT_EQ(status, CL_SUCCESS);
        EXPECT_EQ(parts, whole) << options << " " << shape.global[0] << " in " << items;
        const int entered = gate_.entered() - before;
        if (Items(shape) <= items) {
          EXPECT_EQ(entered, 0);  // Whole.
        } else {
          EXPECT_GE(entered, 2) << shape.global[0] << " in " << items;
        }
      }
    }
  }
}

// PoCL 3.1 itself is wrong there about a whole launch; parts are right.
TEST_F(Split, OffsetsBeyond65535) {
  Shape shape{{256}, {8}, {300000}};
  auto session = NewSession(64);
  const Id queue = session->Queue();
  const Id kernel = session->Kernel(session->Program(R"(
    kernel void k(global uint* out) {
      out[get_global_id(0) - 300000] = (get_global_offset(0) >= 100000) + 2 * (get_global_offset(0) == 300000);
    })"),
                                    "k");
  const Id buffer = session->BufferOf(std::vector<uint32_t>(256, 77));
  session->SetBuffer(kernel, 0, buffer);
  ASSERT_EQ(Launch(*session, queue, kernel, shape), CL_SUCCESS);
  EXPECT_EQ(session->ReadAs<uint32_t>(queue, buffer, 256), std::vector<uint32_t>(256, 3));
  EXPECT_EQ(gate_.entered(), 4);
}

TEST_F(Split, PlainKernelsInEveryDimension) {
  const Shape shapes[] = {
      {{512}, {8}, {}},
      {{509}, {}, {}},
      {{64, 16}, {8, 2}, {100000, 6}},
      {{61, 17}, {1, 1}, {}},
      {{8, 8, 32}, {2, 2, 2}, {}},
      {{8, 8, 32}, {2, 2, 2}, {5, 6, 700000}},
  };
  for (const Shape& shape : shapes) {
    std::vector<uint64_t> whole;
    for (const uint64_t items : {0, 64, 128, 200}) {
      const int before = gate_.entered();
      auto session = NewSession(items);
      const Id queue = session->Queue();
      const Id kernel = session->Kernel(session->Program(kKernels), "plain");
      const Id buffer = session->BufferOf(std::vector<uint64_t>(Items(shape), 0));
      session->SetBuffer(kernel, 0, buffer);
      for (uint32_t d = 0; d < 3; ++d) {
        session->SetValue<uint64_t>(kernel, 1 + d, d < shape.offset.size() ? shape.offset[d] : 0);
        if (d < 2) session->SetValue<uint64_t>(kernel, 4 + d, d < shape.global.size() ? shape.global[d] : 1);
      }
      ASSERT_EQ(Launch(*session, queue, kernel, shape), CL_SUCCESS);
      const std::vector<uint64_t> values = session->ReadAs<uint64_t>(queue, buffer, Items(shape));
      if (items == 0) whole = values;
      ASSERT_EQ(values.size(), Items(shape));
      EXPECT_EQ(values, whole) << shape.global[0] << " in " << items;
      // Without a local size, a kernel that sees it runs whole.
      if (items != 0) {
        EXPECT_EQ(gate_.entered() - before > 1, !shape.local.empty()) << shape.global[0];
      }
    }
  }
}

TEST_F(Split, LocalMemoryAndBarriers) {
  std::vector<uint64_t> in(2048), whole;
  for (size_t i = 0; i < in.size(); ++i) in[i] = i * i + 3;
  for (const uint64_t items : {0, 64, 128, 1024}) {
    auto session = NewSession(items);
    const Id queue = session->Queue();
    const Id kernel = session->Kernel(session->Program(kKernels), "reduce");
    const Id from = session->BufferOf(in), sums = session->BufferOf(std::vector<uint64_t>(2048 / 32, 0));
    session->SetBuffer(kernel, 0, from);
    session->SetBuffer(kernel, 1, sums);
    opencl::SetKernelArg local;
    local.kernel = kernel;
    local.index = 2;
    local.kind = 4;
    local.size = 32 * sizeof(uint64_t);
    ASSERT_EQ(session->Do(local), CL_SUCCESS);
    ASSERT_EQ(Launch(*session, queue, kernel, {{2048}, {32}, {}}), CL_SUCCESS);
    const std::vector<uint64_t> values = session->ReadAs<uint64_t>(queue, sums, 2048 / 32);
    if (items == 0) whole = values;
    EXPECT_EQ(values, whole) << items;
    EXPECT_NE(values[5], 0u);
  }
  EXPECT_EQ(gate_.entered(), 2048 / 64 + 2048 / 128 + 2);
}

TEST_F(Split, LastGroupDoneAndHistogram) {
  std::vector<uint32_t> in(4096);
  uint32_t sum = 0;
  for (size_t i = 0; i < in.size(); ++i) sum += in[i] = static_cast<uint32_t>(i * 7 + i / 3);
  std::vector<uint32_t> bins(16, 0);
  for (const uint32_t value : in) ++bins[value % 16];
  for (const uint64_t items : {0, 64, 1024}) {
    const int before = gate_.entered();
    auto session = NewSession(items);
    const Id queue = session->Queue(), program = session->Program(kKernels);
    const Id from = session->BufferOf(in), parts = session->BufferOf(std::vector<uint32_t>(64, 0)),
             count = session->BufferOf(std::vector<uint32_t>(1, 0)),
             result = session->BufferOf(std::vector<uint32_t>(1, 0)),
             counts = session->BufferOf(std::vector<uint32_t>(16, 0));
    const Id last = session->Kernel(program, "last_done"), histogram = session->Kernel(program, "histogram");
    uint32_t index = 0;
    for (const Id buffer : {from, parts, count, result}) session->SetBuffer(last, index++, buffer);
    session->SetBuffer(histogram, 0, from);
    session->SetBuffer(histogram, 1, counts);
    session->SetValue<uint32_t>(histogram, 2, 4096);
    ASSERT_EQ(Launch(*session, queue, last, {{4096}, {64}, {}}), CL_SUCCESS);
    // No local size, and none is seen, but the global size is.
    ASSERT_EQ(Launch(*session, queue, histogram, {{2048}, {}, {}}), CL_SUCCESS);
    EXPECT_EQ(session->ReadAs<uint32_t>(queue, result, 1)[0], sum) << items;
    EXPECT_EQ(session->ReadAs<uint32_t>(queue, counts, 16), bins) << items;
    if (items != 0) {
      EXPECT_EQ(gate_.entered() - before, static_cast<int>(4096 / items + 2048 / items));
    }
  }
}

// The same device, which another worker of the tenant found to be without a carry, or with one.
TEST_F(Split, WhatAnotherWorkerFoundOutIsBelieved) {
  constexpr std::string_view kGroups = "kernel void k(global int* a) { a[get_global_id(0)] = get_group_id(0); }";
  for (const bool works : {true, false}) {
    auto session = NewSession(64);
    cl_device_id device = FirstDevice();
    const uint64_t key = slicing::CarryKey(device);
    EXPECT_FALSE(session->stats().findings.Find(key).has_value());
    if (!works) session->stats().findings.Add(key, false);
    const Id queue = session->Queue(), kernel = session->Kernel(session->Program(kGroups), "k");
    EXPECT_EQ(session->stats().findings.Find(key), std::optional(works));
    const Id buffer = session->BufferOf(std::vector<int>(256, 0));
    session->SetBuffer(kernel, 0, buffer);
    const int before = gate_.entered();
    ASSERT_EQ(Launch(*session, queue, kernel, {{256}, {32}, {}}), CL_SUCCESS);
    EXPECT_EQ(session->ReadAs<int>(queue, buffer, 256)[200], 6);
    EXPECT_EQ(gate_.entered() - before, works ? 4 : 0);
  }
}

TEST_F(Split, BuildLogsSourceAndArgumentsStayTheGuests) {
  constexpr std::string_view kBroken =
      "kernel void k(global int* a) {\n  a[0] = get_group_id(0);\n  nonsense here;\n}\n";
  constexpr std::string_view kGood =
      "kernel void k(global int* a) {\n  a[get_global_id(0)] = get_group_id(0) * 1000 + __LINE__;\n}\n";
  const auto log_of = [](Session& session, std::string_view source) {
    opencl::BuildProgram build;
    build.program = session.Source(source);
    const auto result = session.Ask<opencl::BuildResult>(build);
    std::string log;
    if (result) result->message.builds.ForEach([&](const opencl::DeviceBuild& one) { log += one.log; });
    return log;
  };
  auto whole = NewSession(0), split = NewSession(64);
  // PoCL names its temporary file, which differs.
  const std::string log = log_of(*split, kBroken);
  EXPECT_NE(log.find(":3:"), std::string::npos) << log;
  EXPECT_EQ(log.find(":83:"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), [&] {
    const std::string native = log_of(*whole, kBroken);
    return std::count(native.begin(), native.end(), '\n');
  }());

  const Id program = split->Program(kGood);
  opencl::Query query;
  query.kind = 1;
  query.object = program;
  query.param = CL_PROGRAM_SOURCE;
  query.max_size = 1 << 16;
  const auto reply = split->Ask<opencl::QueryReply>(query);
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(reply->message.value.data()), reply->message.value.size()),
            std::string(kGood) + '\0');
  const Id queue = split->Queue(), kernel = split->Kernel(program, "k");
  const Id buffer = split->BufferOf(std::vector<int>(256, 0));
  split->SetBuffer(kernel, 0, buffer);
  ASSERT_EQ(Launch(*split, queue, kernel, {{256}, {32}, {}}), CL_SUCCESS);
  EXPECT_EQ(split->ReadAs<int>(queue, buffer, 256)[200], 6002);
  EXPECT_EQ(gate_.entered(), 4);
}

}  // namespace
}  // namespace hawser::server::ocl
