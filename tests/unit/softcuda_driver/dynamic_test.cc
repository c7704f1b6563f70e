// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism"), in PTX by hand: the calls are
// what nvcc makes of child<<<grid, block, shared, stream>>>(...). Programs of nvcc's are in tests/integration/cudart.
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

// step(p, v): *p = *p * 3 + v, so that the order shows.
// count(p): adds 1 atomically, in every thread.
// launch(kernel, p, v, threads, stream) -> error: launches step, or whatever has its parameters.
constexpr char kHead[] = R"(
.version 7.0
.target sm_75
.address_size 64

.extern .func (.param .b64 buffer) __cudaCDP2GetParameterBufferV2(.param .b64 function, .param .align 4 .b8 grid[12],
    .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 error) __cudaCDP2LaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
.extern .func (.param .b64 buffer) cudaGetParameterBuffer(.param .b64 alignment, .param .b64 size);
.extern .func (.param .b32 error) cudaLaunchDevice(.param .b64 function, .param .b64 buffer,
    .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2GetLastError();
.extern .func (.param .b32 error) __cudaCDP2PeekAtLastError();
.extern .func (.param .b64 text) __cudaCDP2GetErrorString(.param .b32 error);
.extern .func (.param .b64 text) cudaGetErrorName(.param .b32 error);
.extern .func (.param .b32 error) __cudaCDP2StreamCreateWithFlags(.param .b64 to, .param .b32 flags);
.extern .func (.param .b32 error) __cudaCDP2StreamDestroy(.param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2StreamWaitEvent(.param .b64 stream, .param .b64 event, .param .b32 flags);
.extern .func (.param .b32 error) __cudaCDP2EventCreateWithFlags(.param .b64 to, .param .b32 flags);
.extern .func (.param .b32 error) __cudaCDP2EventRecord_ptsz(.param .b64 event, .param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2EventDestroy(.param .b64 event);
.extern .func (.param .b32 error) __cudaCDP2MemcpyAsync(.param .b64 to, .param .b64 from, .param .b64 size,
    .param .b32 kind, .param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2MemsetAsync_ptsz(.param .b64 to, .param .b32 value, .param .b64 size,
    .param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2Memset2DAsync(.param .b64 to, .param .b64 pitch, .param .b32 value,
    .param .b64 width, .param .b64 height, .param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2Memcpy2DAsync(.param .b64 to, .param .b64 to_pitch, .param .b64 from,
    .param .b64 from_pitch, .param .b64 width, .param .b64 height, .param .b32 kind, .param .b64 stream);
.extern .func (.param .b32 error) __cudaCDP2Malloc(.param .b64 to, .param .b64 size);
.extern .func (.param .b32 error) __cudaCDP2Free(.param .b64 memory);
.extern .func (.param .b32 error) __cudaCDP2GetDevice(.param .b64 to);
.extern .func (.param .b32 error) __cudaCDP2GetDeviceCount(.param .b64 to);
.extern .func (.param .b32 error) __cudaCDP2DeviceGetAttribute(.param .b64 to, .param .b32 attribute, .param .b32 device);

.visible .entry step(.param .u64 p, .param .u32 v)
{
  .reg .b64 %p; .reg .b32 %v, %old;
  ld.param.u64 %p, [p];
  ld.param.u32 %v, [v];
  ld.global.u32 %old, [%p];
  mad.lo.u32 %v, %old, 3, %v;
  st.global.u32 [%p], %v;
  ret;
}

.visible .entry count(.param .u64 p, .param .u32 v)
{
  .reg .b64 %p; .reg .b32 %old;
  ld.param.u64 %p, [p];
  atom.global.add.u32 %old, [%p], 1;
  ret;
}

.visible .entry broken(.param .u64 p, .param .u32 v) { trap; }

.visible .func (.param .b32 error) launch(.param .b64 kernel, .param .b64 p, .param .b32 v, .param .b32 threads,
    .param .b64 stream)
{
  .reg .b64 %kernel, %p, %stream, %buffer; .reg .b32 %v, %threads, %error; .reg .pred %none;
  ld.param.u64 %kernel, [kernel];
  ld.param.u64 %p, [p];
  ld.param.u32 %v, [v];
  ld.param.u32 %threads, [threads];
  ld.param.u64 %stream, [stream];
  {
    .param .b64 a0; .param .align 4 .b8 a1[12]; .param .align 4 .b8 a2[12]; .param .b32 a3; .param .b64 r;
    st.param.b64 [a0], %kernel;
    st.param.b32 [a1], 1; st.param.b32 [a1+4], 1; st.param.b32 [a1+8], 1;
    st.param.b32 [a2], %threads; st.param.b32 [a2+4], 1; st.param.b32 [a2+8], 1;
    st.param.b32 [a3], 0;
    call.uni (r), __cudaCDP2GetParameterBufferV2, (a0, a1, a2, a3);
    ld.param.b64 %buffer, [r];
  }
  mov.u32 %error, 12345;
  setp.eq.u64 %none, %buffer, 0;
  @%none bra done;
  st.u64 [%buffer], %p;
  st.u32 [%buffer+8], %v;
  {
    .param .b64 a0; .param .b64 a1; .param .b32 r;
    st.param.b64 [a0], %buffer;
    st.param.b64 [a1], %stream;
    call.uni (r), __cudaCDP2LaunchDeviceV2, (a0, a1);
    ld.param.b32 %error, [r];
  }
done:
  st.param.b32 [error], %error;
  ret;
}
)";

// launch(kernel, %p, v, threads, stream), its error in %error.
std::string Child(const std::string& kernel, const std::string& v, const std::string& threads,
                  const std::string& stream) {
  return "{ .param .b64 a0; .param .b64 a1; .param .b32 a2; .param .b32 a3; .param .b64 a4; .param .b32 r;\n"
         "mov.u64 %t, " +
         kernel + "; st.param.b64 [a0], %t; st.param.b64 [a1], %p; mov.u32 %x, " + v +
         "; st.param.b32 [a2], %x; mov.u32 %x, " + threads + "; st.param.b32 [a3], %x; mov.u64 %t, " + stream +
         "; st.param.b64 [a4], %t; call (r), launch, (a0, a1, a2, a3, a4); ld.param.b32 %error, [r]; }\n";
}

struct Part {
  const char* type;  // b32 or b64
  std::string value;
};

// A call of the device runtime; the answer in %error, or %t when it is an address.
std::string CallOf(const std::string& name, const std::vector<Part>& arguments, bool address = false) {
  std::string text = "{ .param ." + std::string(address ? "b64" : "b32") + " r;\n";
  std::string list;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string a = "a" + std::to_string(i);
    const std::string reg = arguments[i].type == std::string("b32") ? "%x" : "%y";
    text += ".param ." + std::string(arguments[i].type) + " " + a + "; mov." + arguments[i].type + " " + reg + ", " +
            arguments[i].value + "; st.param." + arguments[i].type + " [" + a + "], " + reg + ";\n";
    list += (i == 0 ? "" : ", ") + a;
  }
  text += "call (r), " + name + (arguments.empty() ? "" : ", (" + list + ")") + ";\n";
  return text + (address ? "ld.param.b64 %t, [r]; }\n" : "ld.param.b32 %error, [r]; }\n");
}

std::string Store(int word) { return "st.global.u32 [%q+" + std::to_string(4 * word) + "], %error;\n"; }

// A kernel (p, q): %p, %q are its arguments; %error, %x, %y, %t, %u are free.
std::string Kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %p, %q, %t, %y, %u; .reg .b32 %error, %x, %count; .reg .pred "
         "%c;\n"
         "ld.param.u64 %p, [p]; ld.param.u64 %q, [q];\n" +
         body + "ret;\n}\n";
}

class Dynamic : public ContextTest {
 protected:
  void Load(const std::string& kernels) {
    ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, (kHead + kernels).c_str()));
  }
  // A kernel (p, q) of one block.
  CUresult Run(const char* name, unsigned threads = 1) {
    EXPECT_CUDA(CUDA_SUCCESS, Launch(name, 1, threads, nullptr, p_, q_));
    return cuCtxSynchronize();
  }
  void SetUp() override {
    ContextTest::SetUp();
    p_ = Alloc(4096);
    q_ = Alloc(4096);
  }
  std::string ReadText(CUdeviceptr address) {
    std::string text;
    for (char c = 1; text.size() < 100; ++address) {
      EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(&c, address, 1));
      if (c == 0) break;
      text += c;
    }
    return text;
  }

  CUdeviceptr p_ = 0;
  CUdeviceptr q_ = 0;
};

TEST_F(Dynamic, ChildrenOfAStreamRunInOrderBeforeTheirParentIsOver) {
  Load(Kernel("parent", Child("step", "1", "1", "0") + Store(0) + Child("step", "2", "1", "0") + Store(1)));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("parent", 1, 1, nullptr, p_, q_));
  // What follows in the stream finds it done.
  ASSERT_CUDA(CUDA_SUCCESS, Launch("step", 1, 1, nullptr, p_, 100));
  EXPECT_EQ(Read(p_), (1U * 3 + 2) * 3 + 100);
  EXPECT_EQ(Read(q_), 0U);
  EXPECT_EQ(Read(q_ + 4), 0U);
}

TEST_F(Dynamic, TheTailIsLast) {
  Load(Kernel("middle", Child("step", "5", "1", "3") + Child("step", "4", "1", "0")) +
       Kernel("parent", Child("step", "9", "1", "3") + Child("step", "1", "1", "4") + Child("middle", "0", "1", "3") +
                            Child("step", "2", "1", "0")));
  // middle's second parameter is 64 bits wide: v and what lies behind it.
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  uint32_t expected = 0;
  for (const uint32_t v : {1, 2, 9, 4, 5}) expected = expected * 3 + v;
  EXPECT_EQ(Read(p_), expected);
}

TEST_F(Dynamic, TailsMayFollowEachOtherForLong) {
  Load(Kernel("again",
              "ld.global.u32 %x, [%p]; sub.u32 %x, %x, 1; st.global.u32 [%p], %x; setp.eq.u32 %c, %x, 0;\n"
              "@%c bra done;\n" +
                  Child("again", "0", "1", "3") + "done:\n"));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(p_, 20000, 1));
  ASSERT_CUDA(CUDA_SUCCESS, Run("again"));
  EXPECT_EQ(Read(p_), 0U);
}

TEST_F(Dynamic, GridsAreNestedTwentyFourDeep) {
  // Each level counts; the error of the launch that is too deep stays behind the counter.
  Load(Kernel("down", "ld.global.u32 %x, [%p]; add.u32 %x, %x, 1; st.global.u32 [%p], %x;\n" +
                          Child("down", "0", "1", "0") + "setp.eq.u32 %c, %error, 0;\n@%c bra done;\n" +
                          "st.global.u32 [%p+4], %error;\n" + CallOf("__cudaCDP2GetLastError", {}) +
                          "st.global.u32 [%p+8], %error;\ndone:\n"));
  ASSERT_CUDA(CUDA_SUCCESS, Run("down"));
  EXPECT_EQ(Read(p_), 24U);
  EXPECT_EQ(Read(p_ + 4), 65U) << "cudaErrorLaunchMaxDepthExceeded";
  EXPECT_EQ(Read(p_ + 8), 65U);
}

TEST_F(Dynamic, WhatWaitsIsBounded) {
  // 300,000 launches, of which 262,144 may wait; and what has run makes room again.
  Load(Kernel("parent", "mov.u32 %count, 0;\nagain:\n" + Child("count", "0", "1", "0") +
                            "setp.ne.u32 %c, %error, 0;\n@%c bra refused;\nadd.u32 %count, %count, 1;\n"
                            "setp.lt.u32 %c, %count, 300000;\n@%c bra again;\nrefused:\n"
                            "st.global.u32 [%q], %count;\n" +
                            Store(1)));
  for (int round = 0; round < 2; ++round) {
    ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(p_, 0, 1));
    ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
    EXPECT_EQ(Read(q_), 262144U);
    EXPECT_EQ(Read(q_ + 4), 701U) << "cudaErrorLaunchOutOfResources";
    EXPECT_EQ(Read(p_), 262144U) << "those that were taken have run";
  }
}

TEST_F(Dynamic, EveryThreadMayLaunch) {
  Load(Kernel("parent", Child("count", "0", "33", "0")));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("parent", 7, 50, nullptr, p_, q_));
  EXPECT_EQ(Read(p_), 7U * 50 * 33);
}

TEST_F(Dynamic, WrongLaunchesAreRefusedAndTheThreadIsTold) {
  Load(Kernel("parent", Child("step", "1", "2000", "0") + Store(0) + CallOf("__cudaCDP2PeekAtLastError", {}) +
                            Store(1) + CallOf("__cudaCDP2GetLastError", {}) + Store(2) +
                            CallOf("__cudaCDP2GetLastError", {}) + Store(3) + Child("launch", "1", "1", "0") +
                            Store(4) + CallOf("__cudaCDP2GetLastError", {}) + Store(5) + Child("step", "1", "1", "77") +
                            Store(6) + CallOf("__cudaCDP2GetLastError", {}) + Store(7)));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  EXPECT_EQ(Read(p_), 0U) << "none of them ran";
  EXPECT_EQ(Read(q_), 12345U) << "there was no buffer";
  EXPECT_EQ(Read(q_ + 4), 9U) << "cudaErrorInvalidConfiguration";
  EXPECT_EQ(Read(q_ + 8), 9U);
  EXPECT_EQ(Read(q_ + 12), 0U) << "told once";
  EXPECT_EQ(Read(q_ + 16), 12345U);
  EXPECT_EQ(Read(q_ + 20), 98U) << "cudaErrorInvalidDeviceFunction: launch is no kernel";
  EXPECT_EQ(Read(q_ + 24), 400U) << "cudaErrorInvalidResourceHandle: no such stream";
  EXPECT_EQ(Read(q_ + 28), 400U);
}

TEST_F(Dynamic, OneThreadsErrorIsNotAnothers) {
  Load(Kernel("parent", "mov.u32 %x, %tid.x; setp.ne.u32 %c, %x, 5;\n@%c bra others;\n" +
                            Child("step", "1", "2000", "0") + "others:\n" + CallOf("__cudaCDP2GetLastError", {}) +
                            "mov.u32 %x, %tid.x; mul.wide.u32 %t, %x, 4; add.u64 %q, %q, %t;\n" + Store(0)));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent", 32));
  for (unsigned thread = 0; thread < 32; ++thread) EXPECT_EQ(Read(q_ + 4 * thread), thread == 5 ? 9U : 0U) << thread;
}

TEST_F(Dynamic, AFaultOfAChildIsTheContextsAndTheLast) {
  Load(Kernel("parent", Child("step", "1", "1", "0") + Child("broken", "0", "1", "0") + Child("step", "2", "1", "0") +
                            Child("step", "3", "1", "3")));
  auto* const seen = const_cast<uint32_t*>(Flag());
  p_ = Address(seen);
  EXPECT_CUDA(CUDA_ERROR_LAUNCH_FAILED, Run("parent"));
  EXPECT_EQ(*seen, 1U) << "what follows the fault does not run";
}

TEST_F(Dynamic, StreamsAndEventsOfKernels) {
  Load(Kernel("parent",
              CallOf("__cudaCDP2StreamCreateWithFlags", {{"b64", "%q"}, {"b32", "0"}}) + Store(8) +
                  CallOf("__cudaCDP2StreamCreateWithFlags", {{"b64", "0"}, {"b32", "1"}}) + Store(9) +
                  CallOf("__cudaCDP2StreamCreateWithFlags", {{"b64", "%q"}, {"b32", "1"}}) + Store(10) +
                  "add.u64 %u, %q, 8;\n" + CallOf("__cudaCDP2EventCreateWithFlags", {{"b64", "%u"}, {"b32", "2"}}) +
                  Store(11) + "ld.global.u64 %u, [%q];\n" + Child("step", "1", "1", "%u") + Store(12) +
                  "ld.global.u64 %t, [%q+8]; ld.global.u64 %u, [%q];\n" +
                  CallOf("__cudaCDP2EventRecord_ptsz", {{"b64", "%t"}, {"b64", "%u"}}) + Store(13) +
                  CallOf("__cudaCDP2StreamWaitEvent", {{"b64", "0"}, {"b64", "%t"}, {"b32", "0"}}) + Store(14) +
                  CallOf("__cudaCDP2EventRecord_ptsz", {{"b64", "%t"}, {"b64", "3"}}) + Store(15) +
                  CallOf("__cudaCDP2EventDestroy", {{"b64", "%t"}}) + Store(16) +
                  CallOf("__cudaCDP2EventDestroy", {{"b64", "%t"}}) + Store(17) +
                  CallOf("__cudaCDP2StreamDestroy", {{"b64", "%u"}}) + Store(18) +
                  CallOf("__cudaCDP2StreamDestroy", {{"b64", "%u"}}) + Store(19) + Child("step", "2", "1", "0")));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  const uint32_t expected[] = {1, 1, 0, 0, 0, 0, 0, 1, 0, 400, 0, 400};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(Read(q_ + 32 + 4 * i), expected[i]) << i;
  EXPECT_EQ(Read(p_), 1U * 3 + 2);
}

TEST_F(Dynamic, CopiesAndFillsHaveTheirPlaceInTheStream) {
  Load(Kernel(
      "parent",
      CallOf("__cudaCDP2MemsetAsync_ptsz", {{"b64", "%p"}, {"b32", "1"}, {"b64", "4"}, {"b64", "0"}}) + Store(8) +
          Child("step", "2", "1", "0") + "add.u64 %u, %p, 64;\n" +
          CallOf("__cudaCDP2MemcpyAsync", {{"b64", "%u"}, {"b64", "%p"}, {"b64", "4"}, {"b32", "3"}, {"b64", "0"}}) +
          Store(9) + Child("step", "7", "1", "0")));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  EXPECT_EQ(Read(q_ + 32), 0U);
  EXPECT_EQ(Read(q_ + 36), 0U);
  EXPECT_EQ(Read(p_ + 64), 0x01010101U * 3 + 2);
  EXPECT_EQ(Read(p_), (0x01010101U * 3 + 2) * 3 + 7);
}

TEST_F(Dynamic, BoxesAreWhatTheySeem) {
  const std::string half = "0x8000000000000000";  // Twice this is nothing.
  const auto fill = [](const std::string& pitch, const std::string& width, const std::string& height) {
    return CallOf("__cudaCDP2Memset2DAsync",
                  {{"b64", "%p"}, {"b64", pitch}, {"b32", "255"}, {"b64", width}, {"b64", height}, {"b64", "0"}});
  };
  const auto copy = [](const std::string& to_pitch, const std::string& from_pitch, const std::string& width,
                       const std::string& height) {
    return "add.u64 %u, %p, 2048;\n" + CallOf("__cudaCDP2Memcpy2DAsync", {{"b64", "%u"},
                                                                          {"b64", to_pitch},
                                                                          {"b64", "%p"},
                                                                          {"b64", from_pitch},
                                                                          {"b64", width},
                                                                          {"b64", height},
                                                                          {"b32", "3"},
                                                                          {"b64", "0"}});
  };
  Load(Kernel("parent", fill(half, "4", "3") + Store(0) + fill("2", "4", "3") + Store(1) + fill("16", "4", "3") +
                            Store(2) + copy("16", half, "4", "3") + Store(3) + copy(half, "16", "4", "3") + Store(4) +
                            copy("8", "16", "4", "3") + Store(5) + copy("3", "16", "4", "3") + Store(6) +
                            fill("16", "0", "3") + Store(7)));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  const uint32_t expected[] = {1, 12, 0, 1, 1, 0, 12, 0};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(Read(q_ + 4 * i), expected[i]) << i;
  for (unsigned row = 0; row < 4; ++row) {
    EXPECT_EQ(Read(p_ + 16 * row), row < 3 ? 0xffffffffU : 0U) << row;
    EXPECT_EQ(Read(p_ + 16 * row + 4), 0U) << row;
    EXPECT_EQ(Read(p_ + 2048 + 8 * row), row < 3 ? 0xffffffffU : 0U) << row;
    EXPECT_EQ(Read(p_ + 2048 + 8 * row + 4), 0U) << row;
  }
}

TEST_F(Dynamic, CopiesThatLeaveTheDevicesMemoryFault) {
  Load(Kernel("parent",
              "mov.u64 %u, 64;\n" + CallOf("__cudaCDP2MemcpyAsync",
                                           {{"b64", "%u"}, {"b64", "%p"}, {"b64", "4"}, {"b32", "3"}, {"b64", "0"}})));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, Run("parent"));
}

TEST_F(Dynamic, TheOlderCallsWork) {
  // A buffer of that many bytes in %t.
  const auto buffer = [](const std::string& bytes) {
    return CallOf("cudaGetParameterBuffer", {{"b64", "8"}, {"b64", bytes}}, true);
  };
  const std::string launch = R"(
  { .param .b64 a0; .param .b64 a1; .param .align 4 .b8 a2[12]; .param .align 4 .b8 a3[12]; .param .b32 a4;
    .param .b64 a5; .param .b32 r;
    mov.u64 %u, step; st.param.b64 [a0], %u; st.param.b64 [a1], %t;
    st.param.b32 [a2], 1; st.param.b32 [a2+4], 1; st.param.b32 [a2+8], 1;
    st.param.b32 [a3], 1; st.param.b32 [a3+4], 1; st.param.b32 [a3+8], 1;
    st.param.b32 [a4], 0; st.param.b64 [a5], 0;
    call (r), cudaLaunchDevice, (a0, a1, a2, a3, a4, a5); ld.param.b32 %error, [r]; }
)";
  Load(Kernel("parent", buffer("16") + "st.u64 [%t], %p; mov.u32 %x, 6; st.u32 [%t+8], %x;\n" + launch + Store(0) +
                            buffer("4") + launch + Store(1)));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  EXPECT_EQ(Read(q_), 0U);
  EXPECT_EQ(Read(q_ + 4), 1U) << "cudaErrorInvalidValue: the buffer is shorter than the parameters";
  EXPECT_EQ(Read(p_), 6U);
}

TEST_F(Dynamic, ParametersThatNobodyLaunchedAreGivenBack) {
  // 8 MiB of kernels' memory, and 1 KiB for each round's buffers: without giving them back this ends after a few.
  Load(Kernel("parent", R"(
  { .param .b64 a0; .param .b64 a1; .param .b64 r;
    st.param.b64 [a0], 8; st.param.b64 [a1], 1048576;
    call (r), cudaGetParameterBuffer, (a0, a1); ld.param.b64 %t, [r]; }
  st.global.u64 [%q], %t;
)"));
  for (int round = 0; round < 30; ++round) {
    ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
    ASSERT_NE(Read(q_), 0U) << round;
  }
}

TEST_F(Dynamic, ErrorsHaveNamesAndTexts) {
  Load(Kernel("parent", CallOf("__cudaCDP2GetErrorString", {{"b32", "9"}}, true) + "st.global.u64 [%q], %t;\n" +
                            CallOf("cudaGetErrorName", {{"b32", "65"}}, true) + "st.global.u64 [%q+8], %t;\n" +
                            CallOf("__cudaCDP2GetErrorString", {{"b32", "-7"}}, true) + "st.global.u64 [%q+16], %t;\n" +
                            CallOf("__cudaCDP2GetErrorString", {{"b32", "0"}}, true) + "st.global.u64 [%q+24], %t;\n"));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  std::vector<CUdeviceptr> texts(4);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(texts.data(), q_, texts.size() * sizeof(CUdeviceptr)));
  EXPECT_EQ(ReadText(texts[0]), "invalid configuration argument");
  EXPECT_EQ(ReadText(texts[1]), "cudaErrorLaunchMaxDepthExceeded");
  EXPECT_EQ(ReadText(texts[2]), "unrecognized error code");
  EXPECT_EQ(ReadText(texts[3]), "no error");
}

TEST_F(Dynamic, WhatKernelsAskOfTheDevice) {
  Load(Kernel("parent",
              CallOf("__cudaCDP2GetDevice", {{"b64", "%p"}}) + Store(0) + "add.u64 %u, %p, 4;\n" +
                  CallOf("__cudaCDP2GetDeviceCount", {{"b64", "%u"}}) + Store(1) + "add.u64 %u, %p, 8;\n" +
                  CallOf("__cudaCDP2DeviceGetAttribute", {{"b64", "%u"}, {"b32", "16"}, {"b32", "0"}}) + Store(2) +
                  CallOf("__cudaCDP2DeviceGetAttribute", {{"b64", "%u"}, {"b32", "16"}, {"b32", "9"}}) + Store(3) +
                  "add.u64 %u, %p, 16;\n" + CallOf("__cudaCDP2Malloc", {{"b64", "%u"}, {"b64", "100"}}) + Store(4) +
                  "ld.global.u64 %t, [%p+16]; st.u32 [%t], %error;\n" + CallOf("__cudaCDP2Free", {{"b64", "%t"}}) +
                  Store(5) + CallOf("__cudaCDP2Free", {{"b64", "%t"}}) + Store(6) + "add.u64 %u, %p, 24;\n" +
                  CallOf("__cudaCDP2Malloc", {{"b64", "%u"}, {"b64", "1099511627776"}}) + Store(7)));
  ASSERT_CUDA(CUDA_SUCCESS, Run("parent"));
  const uint32_t expected[] = {0, 0, 0, 101, 0, 0, 1, 2};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(Read(q_ + 4 * i), expected[i]) << i;
  EXPECT_EQ(Read(p_), 0U);
  EXPECT_EQ(Read(p_ + 4), 2U);
  int processors = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(Read(p_ + 8), static_cast<uint32_t>(processors));
}

TEST_F(Dynamic, KernelsOfGraphsLaunchToo) {
  Load(Kernel("parent", Child("step", "1", "1", "3") + Child("step", "2", "1", "0")));
  CUgraph graph = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUgraphNode before = nullptr;
  for (int i = 0; i < 2; ++i) {
    void* pointers[] = {&p_, &q_, nullptr};
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.func = Function("parent");
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = pointers;
    CUgraphNode node = nullptr;
    ASSERT_CUDA(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph, &before, before != nullptr ? 1 : 0, &parameters));
    before = node;
  }
  CUgraphExec executable = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphInstantiate(&executable, graph, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphLaunch(executable, nullptr));
  uint32_t expected = 0;
  for (const uint32_t v : {2, 1, 2, 1}) expected = expected * 3 + v;
  EXPECT_EQ(Read(p_), expected);
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphExecDestroy(executable));
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
}

TEST_F(Dynamic, CallsWithOtherArgumentsAreIllegal) {
  // Four words where three belong.
  const std::string wrong = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b64 buffer) cudaGetParameterBufferV2(.param .b64 function, .param .align 4 .b8 grid[16],
    .param .align 4 .b8 block[12], .param .b32 shared);
.visible .entry parent()
{
  .reg .b64 %t;
  { .param .b64 a0; .param .align 4 .b8 a1[16]; .param .align 4 .b8 a2[12]; .param .b32 a3; .param .b64 r;
    call (r), cudaGetParameterBufferV2, (a0, a1, a2, a3); ld.param.b64 %t, [r]; }
  ret;
}
)";
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, wrong.c_str()));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("parent", 1, 1, nullptr));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_INSTRUCTION, cuCtxSynchronize());
}

}  // namespace
}  // namespace hawser::soft
