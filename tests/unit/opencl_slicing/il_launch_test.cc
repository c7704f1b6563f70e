// SPDX-License-Identifier: Apache-2.0
// Programs in intermediate language through the whole backend, in parts.
//
// On a device that takes it (OCL_ICD_VENDORS names one) the driver's own
// clCreateProgramWithIL is used. Elsewhere the one below stands in for it: for this file's module, and for what the
// backend makes of that, it gives the driver the same kernels as text, and it refuses everything else. So what is
// tested everywhere is which module the backend builds, when, and that launches of it are split and right; that the
// rewritten module itself is right is il_carry_test.cc's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "server/backends/opencl/slicing/carry.h"
#include "server/backends/opencl/slicing/il/il_carry.h"
#include "server/worker/launch_gate.h"
#include "tests/unit/backend_opencl/session.h"
#include "tests/unit/opencl_slicing/il_text.h"

namespace hawser::server::ocl {
namespace {

constexpr uint64_t kFields = 8;

// Stores what a work-item sees of the launch, at its linear id.
std::vector<uint32_t> Module() {
  std::string body = R"(
    %linear = OpLoad %ulong %glin
    %row = OpIMul %ulong %linear %fields
)";
  std::string more = "%fields = OpConstant %ulong " + std::to_string(kFields) + "\n";
  int slot = 0;
  for (const std::string part : {"wgid 0", "nwg 0", "gsize 0", "goff 0", "gid 0", "lid 0", "wgid 1", "gid 2"}) {
    const std::string n = std::to_string(slot++), name = part.substr(0, part.size() - 2);
    more += "%slot" + n + " = OpConstant %ulong " + n + "\n";
    body += "%all" + n + " = OpLoad %v3 %" + name + " Aligned 32\n";
    body += "%x" + n + " = OpCompositeExtract %ulong %all" + n + " " + part.back() + "\n";
    body += "%i" + n + " = OpIAdd %ulong %row %slot" + n + "\n";
    body += "%at" + n + " = OpInBoundsPtrAccessChain %global_ulong %out %i" + n + "\n";
    body += "OpStore %at" + n + " %x" + n + " Aligned 8\n";
  }
  return slicing::Assemble(slicing::IlKernel(body, more));
}

constexpr const char* kSameAsText = R"(
kernel void k(global ulong* out, global uint* flag, uint n) {
  ulong linear = ((get_global_id(2) - get_global_offset(2)) * get_global_size(1) + get_global_id(1) -
                  get_global_offset(1)) * get_global_size(0) + get_global_id(0) - get_global_offset(0);
  global ulong* at = out + 8 * linear;
  at[0] = get_group_id(0);
  at[1] = get_num_groups(0);
  at[2] = get_global_size(0);
  at[3] = get_global_offset(0);
  at[4] = get_global_id(0);
  at[5] = get_local_id(0);
  at[6] = get_group_id(1);
  at[7] = get_global_id(2);
})";

std::atomic<int> whole_modules{0}, carried_modules{0};
std::atomic<bool> refuse_carried{false};

bool Is(const std::vector<uint32_t>& module, const void* il, size_t size) {
  return size == module.size() * sizeof(uint32_t) && std::memcmp(module.data(), il, size) == 0;
}

bool DeviceTakesIl(cl_context context) {
  cl_device_id device = nullptr;
  char versions[256] = {};
  return clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(device), &device, nullptr) == CL_SUCCESS &&
         clGetDeviceInfo(device, CL_DEVICE_IL_VERSION, sizeof(versions), versions, nullptr) == CL_SUCCESS &&
         versions[0] != '\0';
}

}  // namespace

// Takes the place of the loader's.
extern "C" cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void* il, size_t size,
                                                        cl_int* status) {
  const std::vector<uint32_t> module = Module();
  const wire::Result<std::vector<uint32_t>> carried = slicing::WithIlCarry(std::as_bytes(std::span(module)));
  const bool is_whole = Is(module, il, size), is_carried = carried.ok() && Is(carried.value(), il, size);
  if (is_whole) ++whole_modules;
  if (is_carried) ++carried_modules;
  if (is_carried && refuse_carried) {
    *status = CL_INVALID_VALUE;
    return nullptr;
  }
  if (DeviceTakesIl(context)) {
    using Create = cl_program (*)(cl_context, const void*, size_t, cl_int*);
    return reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "clCreateProgramWithIL"))(context, il, size, status);
  }
  if (!is_whole && !is_carried) {
    *status = CL_INVALID_VALUE;
    return nullptr;
  }
  // What the build option does to text, a line does here: options are none of intermediate language's.
  std::string text = is_carried ? "#define HAWSER_SPLIT_CARRY 1\n" : "";
  text += is_carried ? slicing::WithCarryPrelude(kSameAsText) : std::string(kSameAsText);
  const char* source = text.c_str();
  return clCreateProgramWithSource(context, 1, &source, nullptr, status);
}

namespace {

class CountingGate final : public LaunchGate {
 public:
  uint64_t UnitNs() const override { return 0; }
  uint32_t Tenants() const override { return 1; }
  bool TryEnter(uint64_t) override { return ++entered_ != 0; }
  bool Enter(uint64_t) override { return ++entered_ != 0; }
  void Leave(uint64_t, uint64_t) override {}
  void Cancel() override {}
  int entered() const { return entered_; }

 private:
  std::atomic<int> entered_{0};
};

struct Shape {
  std::vector<uint64_t> global, local, offset;
};

class IlLaunch : public testing::Test {
 protected:
  void SetUp() override {
    whole_modules = carried_modules = 0;
    refuse_carried = false;
  }
  void TearDown() override { ::unsetenv("HAWSER_OPENCL_SPLIT"); }

  std::unique_ptr<Session> NewSession(uint64_t items) {
    ::unsetenv("HAWSER_OPENCL_SPLIT");
    if (items != 0) ::setenv("HAWSER_OPENCL_SPLIT", ("items=" + std::to_string(items)).c_str(), 1);
    SessionOptions options;
    options.gate = &gate_;
    auto session = std::make_unique<Session>(options);
    static const bool told = [&] {
      session->Context();
      cl_platform_id platform = nullptr;
      char name[128] = {};
      clGetPlatformIDs(1, &platform, nullptr);
      clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, nullptr);
      std::printf("platform: %s\n", name);
      return true;
    }();
    (void)told;
    return session;
  }
  static Id Create(Session& session) {
    const std::vector<uint32_t> module = Module();
    opencl::CreateProgramWithIL create;
    create.program = session.NewId(opencl::Handle::kProgram);
    create.context = session.Context();
    create.il = BytesOf(module);
    return session.Do(create) == CL_SUCCESS ? create.program : Id();
  }
  static int32_t Build(Session& session, Id program, std::string_view options = "") {
    opencl::BuildProgram build;
    build.program = program;
    build.options = options;
    const auto result = session.Ask<opencl::BuildResult>(build);
    return result.has_value() ? result->message.status : Session::kMalformed;
  }
  static std::vector<uint64_t> Run(Session& session, Id program, const Shape& shape) {
    const Id queue = session.Queue();
    const Id kernel = session.Kernel(program, "k");
    uint64_t items = 1;
    for (const uint64_t size : shape.global) items *= size;
    const Id buffer = session.BufferOf(std::vector<uint64_t>(items * kFields, 77));
    const Id flag = session.BufferOf(std::vector<uint32_t>(1, 0));
    EXPECT_EQ(session.SetBuffer(kernel, 0, buffer), CL_SUCCESS);
    EXPECT_EQ(session.SetBuffer(kernel, 1, flag), CL_SUCCESS);
    EXPECT_EQ(session.SetValue(kernel, 2, uint32_t{0}), CL_SUCCESS);
    opencl::EnqueueNDRangeKernel launch;
    launch.queue = queue;
    launch.kernel = kernel;
    launch.work_dim = static_cast<uint32_t>(shape.global.size());
    launch.global = wire::ArrayView<uint64_t>(shape.global.data(), shape.global.size());
    launch.local = wire::ArrayView<uint64_t>(shape.local.data(), shape.local.size());
    launch.offset = wire::ArrayView<uint64_t>(shape.offset.data(), shape.offset.size());
    EXPECT_EQ(session.Do(launch), CL_SUCCESS);
    return session.ReadAs<uint64_t>(queue, buffer, items * kFields);
  }

  CountingGate gate_;
};

TEST_F(IlLaunch, PartsGiveWhatWholeLaunchesGive) {
  ASSERT_EQ(slicing::Problem(Module()), "");
  for (const Shape& shape : {Shape{{512}, {8}, {}}, Shape{{480}, {48}, {60}}, Shape{{64, 16}, {4, 4}, {128, 6}},
                             Shape{{8, 8, 8}, {2, 2, 2}, {5, 6, 7}}}) {
    const auto whole_session = NewSession(0);
    const Id whole_program = Create(*whole_session);
    ASSERT_EQ(Build(*whole_session, whole_program), CL_SUCCESS);
    const std::vector<uint64_t> whole = Run(*whole_session, whole_program, shape);
    carried_modules = 0;
    const auto session = NewSession(64);
    const Id program = Create(*session);
    ASSERT_EQ(Build(*session, program), CL_SUCCESS);
    const int before = gate_.entered();
    EXPECT_EQ(Run(*session, program, shape), whole);
    EXPECT_GE(gate_.entered() - before, 2) << shape.global[0];
    EXPECT_EQ(carried_modules, 1);
  }
}

TEST_F(IlLaunch, DriverThatDoesNotLikeTheRewrittenModuleGetsTheGuestsOwn) {
  refuse_carried = true;
  const auto session = NewSession(64);
  const Id program = Create(*session);
  ASSERT_EQ(Build(*session, program), CL_SUCCESS);
  EXPECT_EQ(carried_modules, 1);
  const int before = gate_.entered();
  const std::vector<uint64_t> seen = Run(*session, program, {{512}, {8}, {}});
  EXPECT_LE(gate_.entered() - before, 1) << "it must run whole";
  ASSERT_EQ(seen.size(), 512 * kFields);
  EXPECT_EQ(seen[1], 64u);
}

TEST_F(IlLaunch, SecondBuildKeepsTheProgramThatThereIs) {
  const auto session = NewSession(64);
  const Id program = Create(*session);
  ASSERT_EQ(Build(*session, program), CL_SUCCESS);
  ASSERT_EQ(Build(*session, program, "-cl-mad-enable"), CL_SUCCESS);
  EXPECT_EQ(whole_modules, 1);
  EXPECT_EQ(carried_modules, 1);
  const Id kernel = session->Kernel(program, "k");
  EXPECT_TRUE(kernel);
  // As any program with a kernel: the driver refuses.
  EXPECT_EQ(Build(*session, program), CL_INVALID_OPERATION);
  const int before = gate_.entered();
  const std::vector<uint64_t> seen = Run(*session, program, {{512}, {8}, {}});
  ASSERT_EQ(seen.size(), 512 * kFields);
  EXPECT_EQ(seen[1], 64u);
  EXPECT_GE(gate_.entered() - before, 2);
}

}  // namespace
}  // namespace hawser::server::ocl
