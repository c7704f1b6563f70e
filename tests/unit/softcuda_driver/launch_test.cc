// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/object_file.h"
#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

class SoftLaunch : public ContextTest {};

TEST_F(SoftLaunch, AddsVectors) {
  constexpr unsigned kCount = 10000;
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  for (unsigned i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5F * static_cast<float>(i);
  }
  const size_t bytes = kCount * sizeof(float);
  const CUdeviceptr da = Alloc(bytes);
  const CUdeviceptr db = Alloc(bytes);
  const CUdeviceptr dc = Alloc(bytes);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(da, a.data(), bytes));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(db, b.data(), bytes));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("add", (kCount + 255) / 256, 256, nullptr, da, db, dc, kCount));
  std::vector<float> c(kCount);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(c.data(), dc, bytes));
  for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
}

TEST_F(SoftLaunch, TakesPackedArguments) {
  const CUdeviceptr out = Alloc(4);
  struct {
    CUdeviceptr p;
    uint32_t v;
  } packed{out, 321};
  size_t size = sizeof(packed.p) + sizeof(packed.v);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  EXPECT_CUDA(CUDA_SUCCESS, cuLaunchKernel(Function("poke"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(Read(out), 321U);
  size = 8;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(Function("poke"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuLaunchKernel(Function("poke"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

TEST_F(SoftLaunch, TakesArgumentsOneByOneAsLongAgo) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  CUdeviceptr out = Alloc(4);
  const CUfunction poke = Function("poke");
  EXPECT_CUDA(CUDA_SUCCESS, cuFuncSetBlockShape(poke, 1, 1, 1));
  EXPECT_CUDA(CUDA_SUCCESS, cuParamSetSize(poke, 12));
  EXPECT_CUDA(CUDA_SUCCESS, cuParamSetv(poke, 0, &out, sizeof(out)));
  EXPECT_CUDA(CUDA_SUCCESS, cuParamSeti(poke, 8, 55));
  EXPECT_CUDA(CUDA_SUCCESS, cuLaunchGrid(poke, 1, 1));
  EXPECT_EQ(Read(out), 55U);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(poke, 0, 1, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(poke, 0, 1));
#pragma GCC diagnostic pop
}

TEST_F(SoftLaunch, FunctionsStayInTheirContext) {
  const CUfunction poke = Function("needs_shape");
  CUcontext other = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&other, nullptr, 0, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(poke, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxDestroy(other));
}

TEST_F(SoftLaunch, ChecksItsArguments) {
  const CUfunction fail = Function("fail");
  const auto launch = [](CUfunction f, unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared) {
    return cuLaunchKernel(f, gx, gy, 1, bx, by, bz, shared, nullptr, nullptr, nullptr);
  };
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, launch(nullptr, 1, 1, 1, 1, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, launch(reinterpret_cast<CUfunction>(0x1230), 1, 1, 1, 1, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 0, 1, 1, 1, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 1, 65536, 1, 1, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 1, 1, 0, 1, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 1, 1, 1025, 1, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 1, 1, 64, 32, 1, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 1, 1, 1, 1, 65, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(fail, 1, 1, 1, 1, 1, 48 * 1024 + 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch(Function("needs_shape"), 1, 1, 32, 1, 1, 0));
  EXPECT_CUDA(CUDA_SUCCESS, launch(Function("needs_shape"), 1, 1, 64, 1, 1, 0));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());  // None of the refused ones ran.
}

TEST_F(SoftLaunch, MoreSharedMemoryIsAskedFor) {
  const CUfunction f = Function("needs_shape");
  int value = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
  EXPECT_EQ(value, 48 * 1024);
  const auto launch = [f] { return cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 100 * 1024, nullptr, nullptr, nullptr); };
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, launch());
  EXPECT_CUDA(CUDA_SUCCESS, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024));
  EXPECT_CUDA(CUDA_SUCCESS, launch());
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE,
              cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300 * 1024));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(SoftLaunch, RefusesAttributesItDoesNotKnow) {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  CUlaunchAttribute attribute{};
  config.attrs = &attribute;
  config.numAttrs = 1;
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  EXPECT_CUDA(CUDA_SUCCESS, cuLaunchKernelEx(&config, Function("needs_shape"), nullptr, nullptr));
  attribute.id = static_cast<CUlaunchAttributeID>(9999);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, Function("needs_shape"), nullptr, nullptr));
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = 2;
  EXPECT_CUDA(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, Function("needs_shape"), nullptr, nullptr));
}

TEST_F(SoftLaunch, CooperativeGridsAreLimited) {
  const CUfunction f = Function("needs_shape");
  int each = 0;
  int processors = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, 64, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  const auto most = static_cast<unsigned>(each * processors);
  EXPECT_GT(most, 0U);
  EXPECT_CUDA(CUDA_SUCCESS, cuLaunchCooperativeKernel(f, most, 1, 1, 64, 1, 1, 0, nullptr, nullptr));
  EXPECT_CUDA(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
              cuLaunchCooperativeKernel(f, most + 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
}

TEST_F(SoftLaunch, TellsParameters) {
  const CUfunction f = Function("add");
  size_t offset = 99;
  size_t size = 99;
  EXPECT_CUDA(CUDA_SUCCESS, cuFuncGetParamInfo(f, 3, &offset, &size));
  EXPECT_EQ(offset, 24U);
  EXPECT_EQ(size, 4U);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 4, &offset, &size));
}

class SoftFault : public ContextTest {
 protected:
  void TearDown() override { EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(context_)); }
};

TEST_F(SoftFault, OutOfBoundsIsReportedAndStays) {
  const CUdeviceptr a = Alloc(4);
  const CUfunction bump = Function("bump");
  testing::internal::CaptureStderr();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, nullptr, a + 4, 1));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  const std::string report = testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("poke"), std::string::npos) << report;
  EXPECT_NE(report.find("block (0,0,0)"), std::string::npos) << report;
  // The context is lost, whatever is called.
  CUdeviceptr b = 0;
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&b, 4));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  uint32_t value = 0;
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&value, a, 4));
  // A new one is not.
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxDestroy(context_));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&context_, nullptr, 0, 0));
  module_ = nullptr;
  const CUdeviceptr c = Alloc(4);
  EXPECT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, nullptr, c, 9));
  EXPECT_EQ(Read(c), 9U);
}

TEST_F(SoftFault, FreedMemoryIsOutOfBounds) {
  const CUdeviceptr a = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemFree(a));
  testing::internal::CaptureStderr();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, nullptr, a, 1));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  testing::internal::GetCapturedStderr();
}

TEST_F(SoftFault, MisalignmentAndTrapHaveTheirOwnErrors) {
  const CUdeviceptr a = Alloc(8);
  testing::internal::CaptureStderr();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("poke", 1, 1, nullptr, a + 1, 1));
  EXPECT_CUDA(CUDA_ERROR_MISALIGNED_ADDRESS, cuCtxSynchronize());
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxDestroy(context_));
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&context_, nullptr, 0, 0));
  module_ = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, Launch("fail", 1, 1, nullptr));
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(nullptr));
  testing::internal::GetCapturedStderr();
}

TEST_F(SoftFault, OtherContextsDoNotNotice) {
  CUcontext other = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxCreate(&other, nullptr, 0, 0));
  testing::internal::CaptureStderr();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("fail", 1, 1, nullptr));
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
  testing::internal::GetCapturedStderr();
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxPopCurrent(nullptr));
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_CUDA(CUDA_SUCCESS, cuCtxDestroy(other));
  module_ = nullptr;
}

class SoftModule : public ContextTest {};

TEST_F(SoftModule, HasFunctionsAndVariables) {
  Function("sum");
  CUfunction none = nullptr;
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&none, module_, "no_such_kernel"));
  unsigned count = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuModuleGetFunctionCount(&count, module_));
  EXPECT_EQ(count, 7U);
  CUdeviceptr table = 0;
  size_t bytes = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleGetGlobal(&table, &bytes, module_, "table"));
  EXPECT_EQ(bytes, 16U);
  EXPECT_EQ(Read(table + 8), 3U);
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&table, &bytes, module_, "no_such_variable"));
  const uint32_t more = 40;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(table, &more, 4));
  const CUdeviceptr out = Alloc(4);
  EXPECT_CUDA(CUDA_SUCCESS, Launch("sum", 1, 1, nullptr, out));
  EXPECT_EQ(Read(out), 49U);
  EXPECT_CUDA(CUDA_SUCCESS, cuModuleUnload(module_));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module_));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(table, &more, 4));  // Gone with it.
}

TEST_F(SoftModule, BadImagesAreToldApart) {
  testing::internal::CaptureStderr();
  CUmodule module = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "hello"));
  EXPECT_CUDA(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/no/such/file.ptx"));
  char info[256] = "x";
  char error[256] = "x";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {error, reinterpret_cast<void*>(sizeof(error)), info, reinterpret_cast<void*>(sizeof(info))};
  const char broken[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { add.s32 %r1, ; }\n";
  EXPECT_CUDA(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, broken, 4, options, values));
  EXPECT_NE(std::strlen(error), 0U);
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(error) + 1);
  EXPECT_EQ(info[0], '\0');
  testing::internal::GetCapturedStderr();
}

TEST_F(SoftModule, LinksUnits) {
  CUlinkState state = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkCreate(0, nullptr, nullptr, &state));
  std::string main = kUnitMain;
  std::string helper = kUnitHelper;
  ASSERT_CUDA(CUDA_SUCCESS,
              cuLinkAddData(state, CU_JIT_INPUT_PTX, main.data(), main.size() + 1, "main", 0, nullptr, nullptr));
  void* image = nullptr;
  size_t bytes = 0;
  testing::internal::CaptureStderr();
  EXPECT_CUDA(CUDA_ERROR_INVALID_PTX, cuLinkComplete(state, &image, &bytes));  // helper is missing.
  testing::internal::GetCapturedStderr();
  ASSERT_CUDA(CUDA_SUCCESS,
              cuLinkAddData(state, CU_JIT_INPUT_PTX, helper.data(), helper.size() + 1, "helper", 0, nullptr, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkComplete(state, &image, &bytes));
  EXPECT_GT(bytes, 0U);
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, image));
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkDestroy(state));
  const CUdeviceptr out = Alloc(4);
  EXPECT_CUDA(CUDA_SUCCESS, Launch("main_kernel", 1, 1, nullptr, out));
  EXPECT_EQ(Read(out), 42U);
}

// As numba-cuda writes grid.sync(): by the functions of libcudadevrt.a, which is machine code.
TEST_F(SoftModule, TheGridSynchronisesByTheDeviceRuntime) {
  std::string text = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry rounds(.param .u64 counters, .param .u64 sums)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [counters];
  ld.param.u64 %d2, [sums];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.u64 %d4, %d1, %d3;
  add.u64 %d5, %d2, %d3;
  {
    .param .b32 scope;
    .param .b64 handle;
    st.param.b32 [scope], 1;
    call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %d6, [handle];
  }
  mov.u32 %r3, 0;
next:
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra meet;
  atom.global.add.u32 %r4, [%d1], 1;
meet:
  {
    .param .b64 handle;
    .param .b32 flags;
    .param .b32 error;
    st.param.b64 [handle], %d6;
    st.param.b32 [flags], 0;
    call.uni (error), cudaCGSynchronize, (handle, flags);
    ld.param.b32 %r5, [error];
  }
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra failed;
  ld.volatile.global.u32 %r6, [%d1];
  mov.u32 %r7, %nctaid.x;
  add.u32 %r3, %r3, 1;
  mul.lo.u32 %r8, %r7, %r3;
  setp.lt.u32 %p3, %r6, %r8;
  @%p3 bra failed;
  setp.lt.u32 %p3, %r3, 20;
  @%p3 bra next;
  st.global.u32 [%d5], %r3;
  ret;
failed:
  st.global.u32 [%d5], 1000;
  ret;
}
)";
  CUlinkState state = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkCreate(0, nullptr, nullptr, &state));
  ASSERT_CUDA(CUDA_SUCCESS,
              cuLinkAddData(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "kernel", 0, nullptr, nullptr));
  // A library with machine code alone.
  hawser::object_file::FileBytes library = hawser::object_file::MakeArchive(
      {hawser::object_file::MakeObject("__nv_relfatbin", hawser::object_file::MakeFatbin("machine code", 2))});
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, library.data(), library.size(), "libcudadevrt.a",
                                          0, nullptr, nullptr));
  void* image = nullptr;
  size_t bytes = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkComplete(state, &image, &bytes));
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, image));
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkDestroy(state));
  CUfunction function = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleGetFunction(&function, module_, "rounds"));
  constexpr unsigned kBlocks = 4;
  CUdeviceptr counters = Alloc(4);
  CUdeviceptr sums = Alloc(4 * kBlocks);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(counters, 0, 1));
  void* parameters[] = {&counters, &sums};
  ASSERT_CUDA(CUDA_SUCCESS, cuLaunchCooperativeKernel(function, kBlocks, 1, 1, 64, 1, 1, 0, nullptr, parameters));
  for (unsigned i = 0; i < kBlocks; ++i) EXPECT_EQ(Read(sums + 4 * i), 20U) << i;
  // Not launched together: there is nothing to synchronise by, and the function says so.
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(counters, 0, 1));
  ASSERT_CUDA(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(Read(sums), 1000U);
}

// numba-cuda expects a result of every function in C, also of those that have none.
TEST_F(SoftModule, AResultThatNobodyGivesIsNoFault) {
  const char text[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .func store(.param .b64 at)
{
  .reg .b64 %d<2>;
  ld.param.b64 %d1, [at];
  st.u32 [%d1], 42;
  ret;
}
.visible .entry calls(.param .u64 p)
{
  .reg .b64 %d<2>;
  ld.param.u64 %d1, [p];
  {
    .param .b64 at;
    .param .b64 result;
    st.param.b64 [at], %d1;
    call.uni (result), store, (at);
  }
  ret;
}
)";
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, text));
  const CUdeviceptr out = Alloc(4);
  EXPECT_CUDA(CUDA_SUCCESS, Launch("calls", 1, 1, nullptr, out));
  EXPECT_EQ(Read(out), 42U);
}

TEST_F(SoftModule, RegistersKeepToWhatIsAskedFor) {
  // Sums 150 numbers that are all read before the first is used.
  std::string text = ".version 7.0\n.target sm_75\n.address_size 64\n";
  const auto kernel = [](const std::string& name, const std::string& limits) {
    std::string body =
        ".visible .entry " + name + "(.param .u64 p)" + limits + "{ .reg .b32 %r<152>; .reg .b64 %d<2>; ";
    body += "ld.param.u64 %d1, [p]; mov.u32 %r150, 0; ";
    for (int i = 0; i < 150; ++i) {
      body += "ld.global.u32 %r" + std::to_string(i) + ", [%d1+" + std::to_string(4 * i) + "]; ";
    }
    for (int i = 0; i < 150; ++i) body += "add.u32 %r150, %r150, %r" + std::to_string(i) + "; ";
    return body + "st.global.u32 [%d1], %r150; ret; }\n";
  };
  text += kernel("any", "") + kernel("few", ".maxnreg 40") + kernel("small", ".maxntid 128, 1, 1");
  const auto registers = [](CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_CUDA(CUDA_SUCCESS, cuModuleGetFunction(&function, module, name));
    int value = 0, threads = 0, block = 0;
    EXPECT_CUDA(CUDA_SUCCESS, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    EXPECT_CUDA(CUDA_SUCCESS, cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    EXPECT_CUDA(CUDA_SUCCESS, cuDeviceGetAttribute(&block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 0));
    EXPECT_LE(value * threads, block) << name;
    int blocks = 0;
    EXPECT_CUDA(CUDA_SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, 0));
    EXPECT_GE(blocks, 1) << name;
    return value;
  };
  CUmodule module = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module, text.c_str()));
  EXPECT_EQ(registers(module, "any"), 64) << "1024 threads share 65536";
  EXPECT_EQ(registers(module, "few"), 40);
  EXPECT_GT(registers(module, "small"), 150);
  EXPECT_CUDA(CUDA_SUCCESS, cuModuleUnload(module));
  // What a load or a link asks for, also when the link's result is loaded.
  CUjit_option option = CU_JIT_MAX_REGISTERS;
  void* wish = reinterpret_cast<void*>(uintptr_t{32});
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadDataEx(&module, text.c_str(), 1, &option, &wish));
  EXPECT_EQ(registers(module, "any"), 32);
  EXPECT_CUDA(CUDA_SUCCESS, cuModuleUnload(module));
  CUlinkState link = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkCreate(1, &option, &wish, &link));
  ASSERT_CUDA(CUDA_SUCCESS,
              cuLinkAddData(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "unit", 0, nullptr, nullptr));
  void* image = nullptr;
  size_t size = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuLinkComplete(link, &image, &size));
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module, image));
  EXPECT_EQ(registers(module, "any"), 32);
  EXPECT_CUDA(CUDA_SUCCESS, cuModuleUnload(module));
  EXPECT_CUDA(CUDA_SUCCESS, cuLinkDestroy(link));
}

TEST_F(SoftModule, LibrariesHaveKernelsThatLaunchAsFunctions) {
  CUlibrary library = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuLibraryGetKernel(&kernel, library, "poke"));
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
  const CUdeviceptr out = Alloc(4);
  CUdeviceptr p = out;
  uint32_t v = 11;
  void* params[] = {&p, &v};
  EXPECT_CUDA(CUDA_SUCCESS,
              cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(Read(out), 11U);
  CUfunction function = nullptr;
  EXPECT_CUDA(CUDA_SUCCESS, cuKernelGetFunction(&function, kernel));
  v = 12;
  EXPECT_CUDA(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(Read(out), 12U);
  CUdeviceptr table = 0;
  size_t bytes = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuLibraryGetGlobal(&table, &bytes, library, "table"));
  EXPECT_EQ(bytes, 16U);
  EXPECT_CUDA(CUDA_SUCCESS, cuLibraryUnload(library));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
}

}  // namespace
}  // namespace hawser::soft
