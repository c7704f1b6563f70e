// SPDX-License-Identifier: Apache-2.0
// Which kernels have which static .shared variables, and that the ones that a kernel has do not lie on each other.
#include "softcuda/exec/shared_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/softcuda_exec/body.h"

namespace hawser::exec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::map<std::string, uint32_t> SharedOf(Device& device) {
  std::map<std::string, uint32_t> bytes;
  for (const KernelInfo& info : device.program().kernels()) bytes[info.name] = info.static_shared_bytes;
  return bytes;
}

/// A kernel without parameters that executes `body`.
std::string Plain(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + "() { .reg .b32 %r<4>; .reg .b64 %d<4>; " + body + " ret; }\n";
}

// ptxas 13.0 says 40960, 20480 and 20480 of these.
TEST(SharedLayout, KernelsHaveWhatTheyAndTheirFunctionsName) {
  Device device(0);
  ASSERT_EQ(device.Load({kHead + ".shared .align 8 .b8 b0[20480];\n.shared .align 8 .b8 b1[20480];\n" +
                         ".shared .align 8 .b8 b2[20480];\n.shared .align 8 .b8 unused[300000];\n" +
                         ".func f() { .reg .b32 %r<2>; ld.shared.u32 %r1, [b2]; ret; }\n" +
                         Plain("k0", "ld.shared.u32 %r1, [b0+60]; call f;") +
                         Plain("k1", "mov.u64 %d1, b1; ld.shared.u32 %r1, [%d1];") +
                         Plain("k2", "ld.shared.u32 %r1, [b2+60];") + Plain("k3", "mov.u32 %r1, 1;")}),
            "");
  EXPECT_EQ(SharedOf(device),
            (std::map<std::string, uint32_t>{{"k0", 40960}, {"k1", 20480}, {"k2", 20480}, {"k3", 0}}));
}

TEST(SharedLayout, AVariableLiesAtOnePlaceForAll) {
  Device device(0);
  // One function stores to a variable of its own and to one of the module's; both kernels have others beside them.
  const std::string kernel =
      "(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %d; ld.param.u64 %d, [out]; mov.u32 %r1, 1; "
      "st.shared.u32 [OWN], %r1; call f; ld.shared.u32 %r2, [OWN]; st.global.u32 [%d], %r2; "
      "ld.shared.u32 %r3, [common]; st.global.u32 [%d+4], %r3; ret; }\n";
  const auto with = [&](const std::string& name, const std::string& own) {
    std::string text = ".visible .entry " + name + kernel;
    for (size_t at = 0; (at = text.find("OWN")) != std::string::npos;) text.replace(at, 3, own);
    return text;
  };
  ASSERT_EQ(device.Load({kHead + ".shared .align 4 .u32 mine;\n.shared .align 16 .b8 yours[4096];\n" +
                         ".shared .align 4 .u32 common;\n" +
                         ".func f() { .shared .align 8 .b64 inside; .reg .b32 %r; .reg .b64 %e; mov.u32 %r, 7; " +
                         "st.shared.u32 [common], %r; mov.u64 %e, -1; st.shared.u64 [inside], %e; ret; }\n" +
                         with("one", "mine") + with("other", "yours+2048")}),
            "");
  const uint64_t out = device.Allocate(8);
  for (const char* const name : {"one", "other"}) {
    ASSERT_TRUE(device.Run(name, {1, 1, 1}, {1, 1, 1}, Arguments().Add(out)).ok());
    EXPECT_THAT(device.Download<uint32_t>(out, 2), ElementsAre(1, 7)) << name;
  }
  EXPECT_LE(SharedOf(device)["one"], 24u);
  EXPECT_LE(SharedOf(device)["other"], 4096u + 16u);
}

TEST(SharedLayout, APointerMayLeadToAnyFunctionButToNoKernel) {
  Device device(0);
  ASSERT_EQ(device.Load({kHead + ".shared .b8 s[64];\n.shared .b8 of_kernel[1024];\n" +
                         ".func f() { .reg .b32 %r<2>; ld.shared.u32 %r1, [s]; ret; }\n" +
                         Plain("launched", "ld.shared.u32 %r1, [of_kernel];") +
                         Plain("pointer",
                               "mov.u64 %d1, f; mov.u64 %d2, launched; p: .callprototype _ (); "
                               "call %d1, (), p;")}),
            "");
  EXPECT_EQ(SharedOf(device), (std::map<std::string, uint32_t>{{"launched", 1024}, {"pointer", 64}}));
}

TEST(SharedLayout, FunctionsMayCallEachOther) {
  Device device(0);
  ASSERT_EQ(
      device.Load({kHead + ".shared .b8 s[64];\n.func g();\n.func f() { call g; ret; }\n" +
                   ".func g() { .reg .b32 %r<2>; ld.shared.u32 %r1, [s]; call f; ret; }\n" + Plain("k", "call f;")}),
      "");
  EXPECT_EQ(SharedOf(device)["k"], 64u);
}

// Every kernel calls every function: so many names that they are not followed one by one.
TEST(SharedLayout, ThereIsABoundToWhatIsFollowed) {
  Device device(0);
  std::string text = kHead, calls, uses;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = std::to_string(i);
    text += ".shared .align 4 .u32 s" + name + ";\n";
    uses += "ld.shared.u32 %r1, [s" + name + "];";
  }
  text += ".func f() { .reg .b32 %r<2>; " + uses + " ret; }\n";
  for (int i = 0; i < 9000; ++i) text += Plain("k" + std::to_string(i), "call f;");
  ASSERT_EQ(device.Load({text}), "");
  EXPECT_EQ(device.program().kernels().front().static_shared_bytes, 8000u);
  EXPECT_EQ(device.program().kernels().back().static_shared_bytes, 8000u);
}

// ptxas 13.0, whole program: "Unresolved extern variable 'buffer' in whole program compilation, ignoring extern
// qualifier"; 64 bytes of shared memory.
TEST(SharedLayout, AModuleAloneDefinesWhatItDeclares) {
  Device device(0);
  const std::string text = kHead + ".extern .shared .align 8 .b8 buffer[64];\n.extern .global .u32 value;\n" +
                           ".extern .global .u32 unused;\n" +
                           ".visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %d; mov.u32 %r1, 5; "
                           "st.shared.u32 [buffer+60], %r1; ld.global.u32 %r2, [value]; ld.param.u64 %d, [out]; "
                           "st.global.u32 [%d], %r2; ret; }\n";
  ASSERT_EQ(device.Load({text}), "");
  EXPECT_EQ(SharedOf(device)["k"], 64u);
  EXPECT_EQ(device.program().FindSymbol("unused"), -1);
  const uint64_t out = device.Upload<uint32_t>({9});
  ASSERT_TRUE(device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(out)).ok());
  EXPECT_EQ(device.Download<uint32_t>(out, 1)[0], 0u);
  // Of several somebody should.
  EXPECT_THAT(device.Load({text, kHead + Plain("other", "")}), HasSubstr("'buffer'"));
  EXPECT_EQ(
      device.Load({text, kHead + ".visible .shared .align 8 .b8 buffer[64];\n.visible .global .u32 value = 3;\n"}), "");
  const uint64_t again = device.Allocate(4);
  ASSERT_TRUE(device.Run("k", {1, 1, 1}, {1, 1, 1}, Arguments().Add(again)).ok());
  EXPECT_EQ(device.Download<uint32_t>(again, 1)[0], 3u);
  // A size that nobody knows cannot be defined.
  EXPECT_THAT(device.Load({kHead + ".extern .global .b8 open[];\n" + Plain("k", "ld.global.u32 %r1, [open];")}),
              HasSubstr("'open'"));
}

}  // namespace
}  // namespace hawser::exec
