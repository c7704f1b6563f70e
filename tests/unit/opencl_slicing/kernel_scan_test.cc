// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/slicing/kernel_scan.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::server::slicing {
namespace {

std::string Verdict(std::string_view source, std::string_view kernel = "k", std::string_view options = "") {
  const KernelTraits traits = ProgramTraits::Scan(source, options).Of(kernel);
  if (!traits.may_split) return "whole: " + traits.reason;
  return std::string(traits.needs_carry ? "carry" : "plain") + (traits.sees_local_size ? " grouped" : "");
}
bool IsWhole(std::string_view source, std::string_view kernel = "k") {
  return Verdict(source, kernel).substr(0, 5) == "whole";
}

constexpr std::string_view kMayWait = "whole: it may wait for another work-group";

TEST(KernelScan, PlainKernels) {
  EXPECT_EQ(Verdict("kernel void k(global int* a) { a[get_global_id(0)] = 1; }"), "plain");
  EXPECT_EQ(Verdict("kernel void k(global int* a, local int* s) { s[get_local_id(0)] = a[get_global_id(0)];"
                    "barrier(CLK_LOCAL_MEM_FENCE); }"),
            "plain grouped");
  EXPECT_EQ(Verdict("kernel void k(global int* a) { printf(\"%d\", a[0]); /* get_group_id */ }"), "plain");
}

TEST(KernelScan, WordsOfOtherLanguagesAreNames) {
  constexpr std::string_view kSource =
      "kernel void k(global int* template, int operator) { template[get_global_id(0)] = operator; }";
  EXPECT_EQ(Verdict(kSource), "plain");
  EXPECT_EQ(Verdict(kSource, "k", "-cl-std=CLC++").substr(0, 5), "whole");
}

TEST(KernelScan, EachBuiltInThatChanges) {
  for (const std::string name : {"get_group_id(0)", "get_num_groups(0)", "get_global_size(0)", "get_global_offset(0)",
                                 "get_global_linear_id()"}) {
    const std::string source = "kernel void k(global int* a) { a[get_global_id(0)] = " + name + "; }";
    EXPECT_EQ(Verdict(source).substr(0, 5), "carry") << name;
  }
}

TEST(KernelScan, ThroughHelpersMacrosAndVariables) {
  constexpr std::string_view kSource = R"(
    #define GROUP get_group_id
    #define INDIRECT(d) GROUP(d)
    int helper(int x);
    int deep(int x) { return helper(x); }
    int helper(int x) { return (int)INDIRECT(0) + x; }
    kernel void uses(global int* a) { a[get_global_id(0)] = deep(3); }
    kernel void k(global int* a) { a[get_global_id(0)] = 4; }
    kernel void calls_kernel(global int* a) { uses(a); }
  )";
  EXPECT_EQ(Verdict(kSource, "uses").substr(0, 5), "carry");
  EXPECT_EQ(Verdict(kSource, "calls_kernel").substr(0, 5), "carry");
  EXPECT_EQ(Verdict(kSource, "k"), "plain");
}

TEST(KernelScan, BuildOptionsDefine) {
  constexpr std::string_view kSource = "kernel void k(global int* a) { a[get_global_id(0)] = WHERE; }";
  EXPECT_EQ(Verdict(kSource, "k", "-DWHERE=get_global_id(0)"), "plain");
  EXPECT_EQ(Verdict(kSource, "k", "-D WHERE=get_num_groups(0)").substr(0, 5), "carry");
  EXPECT_EQ(Verdict(kSource, "k", "-DWHERE=1 -cl-fast-relaxed-math -cl-std=CL1.2 -I include -w"), "plain");
  for (const std::string_view options : {"-DWHERE=\"1\"", "-x spir", "-cl-std=CLC++", "-D", "-DWHERE=1 -mad", "-D=3"}) {
    EXPECT_TRUE(!ProgramTraits::Scan(kSource, options).Of("k").may_split) << options;
  }
}

TEST(KernelScan, BothBranchesOfAnIfCount) {
  EXPECT_EQ(Verdict("#ifdef X\n#define S get_global_size(0)\n#else\n#define S 3\n#endif\n"
                    "kernel void k(global int* a) { a[0] = S; }"),
            "carry");
  // A function whose head stands twice: the braces do not match, so everything may be everywhere.
  constexpr std::string_view kTwoHeads =
      "#ifdef X\nkernel void k(global int* a) {\n#else\nkernel void k(global float* a) {\n"
      "#endif\n a[0] = 1; }\nkernel void other(global int* a) { a[0] = get_num_groups(0); }";
  EXPECT_EQ(Verdict(kTwoHeads, "k").substr(0, 5), "carry");
}

TEST(KernelScan, MacrosThatMakeKernels) {
  constexpr std::string_view kSource = R"(
    #define MAKE(T) kernel void k_##T(global T* a) { a[get_global_id(0)] = get_group_id(0); }
    MAKE(int)
    MAKE(float)
  )";
  EXPECT_EQ(Verdict(kSource, "k_int").substr(0, 5), "carry");
  // A name that is put together is not in the text.
  EXPECT_EQ(Verdict("#define G(x) get_##x(0)\nkernel void k(global int* a) { a[0] = G(group_id); }").substr(0, 5),
            "carry");
  EXPECT_EQ(Verdict("#define HEAD kernel void k(global int* a) {\nHEAD a[0] = get_group_id(0); }").substr(0, 5),
            "carry");
  EXPECT_EQ(Verdict("#define k real\nkernel void k(global int* a) { a[0] = get_group_id(0); }", "real").substr(0, 5),
            "carry");
}

TEST(KernelScan, WhatIsNotUnderstoodIsWhole) {
  EXPECT_TRUE(IsWhole("#include \"x.h\"\nkernel void k(global int* a) { a[0] = 1; }"));
  EXPECT_TRUE(IsWhole("kernel void k(global int* a) { asm(\"nop\"); }"));
  EXPECT_TRUE(IsWhole("kernel void k(global int* a) { a[0] = __builtin_amdgcn_workgroup_id_x(); }"));
  EXPECT_TRUE(IsWhole("kernel void k(global int* a) { a[0] = _Z12get_group_idj(0); }"));
  EXPECT_TRUE(IsWhole("kernel void k(global int* a) { a[0] = 1; } /* no end"));
  EXPECT_FALSE(ProgramTraits::Unknown("a binary").Of("k").may_split);
  EXPECT_EQ(ProgramTraits::Unknown("a binary").Of("k").reason, "a binary");
}

TEST(KernelScan, WhenThePreludeMayNotBeUsed) {
  const auto may_carry = [](std::string_view source, std::string_view options = "") {
    return ProgramTraits::Scan(source, options).may_carry();
  };
  EXPECT_TRUE(may_carry("kernel void k(global int* a) { a[0] = get_group_id(0) + get_work_dim(); }"));
  EXPECT_TRUE(may_carry("#define G get_group_id\nkernel void k(global int* a) { a[0] = G(0); }"));
  EXPECT_TRUE(may_carry("kernel void k(global int* a) { return get_group_id(0) ? a[0] : a[1]; }"));
  EXPECT_TRUE(may_carry("#define G(d) get_group_id(d)\nkernel void k(global int* a) { a[0] = G(0); }"));
  EXPECT_FALSE(may_carry("kernel void k(global int* a, uint d) { a[0] = get_group_id(d); }"));
  EXPECT_FALSE(may_carry("#undef get_group_id\nkernel void k(global int* a) { a[0] = get_group_id(0); }"));
  EXPECT_FALSE(may_carry("#ifndef get_group_id\n#endif\nkernel void k(global int* a) { a[0] = get_group_id(0); }"));
  EXPECT_FALSE(may_carry("kernel void k(global int* a) { int get_group_id = 3; a[0] = get_group_id; }"));
  EXPECT_FALSE(may_carry("size_t get_global_linear_id() { return 0; }\nkernel void k(global int* a) { a[0] = 1; }"));
  EXPECT_FALSE(may_carry("#define S(x) #x\nkernel void k(global int* a) { printf(S(get_group_id)); }"));
  EXPECT_FALSE(may_carry("kernel void k(global int* a) { a[0] = s.get_group_id(0); }"));
  EXPECT_FALSE(may_carry("kernel void k(global int* a) { a[0] = get_group_id(0); }", "-Dget_group_id=f"));
  // Kernels that need no prelude are split all the same.
  EXPECT_EQ(Verdict("#undef get_group_id\nkernel void k(global int* a) { a[0] = 1; }"), "plain");
  EXPECT_TRUE(IsWhole("#undef get_group_id\nkernel void k(global int* a) { a[0] = get_group_id(0); }"));
}

TEST(KernelScan, WaitsForOtherGroups) {
  const auto body = [](const std::string& text) {
    return "kernel void k(global int* f, volatile global int* v, int n) { " + text + " }";
  };
  for (const std::string text : {
           "atomic_inc(f); while (atomic_add(f, 0) < n);",
           "while (atomic_cmpxchg(f, 1, 0) != 1) {}",
           "while (atomic_xchg(f, 1)) ;",
           "while (v[0] < n);",
           "while (*v < n);",
           "do { } while (*(volatile global int*)f < n);",
           "for (;;) { if (atomic_load(f) == n) break; }",
           "for (int i = 0; atomic_or(f, 0) < n; ++i) {}",
           "for (int i = 0; i < n; ++i) { if (v[0]) break; }",
           "int done = 0; while (!done) { int x = atomic_max(f, 0); if (x > 3) done = 1; }",
           "int done = 0; for (int i = 0; i < done; ++i) { done = atomic_max(f, 0); }",
           "again: if (v[0] < n) goto again;",
           "int x; while (f[0] == 0) mem_fence(CLK_GLOBAL_MEM_FENCE);",
           "while (f[0] == 0) barrier(CLK_GLOBAL_MEM_FENCE);",
           "int x; do { x = *v; } while (atomic_cmpxchg(v, x, x) != x || x < n);",
           "while (atomic_cmpxchg(f, n, n + 1) != n);",
           "int e = 0; while (!atomic_compare_exchange_strong((global atomic_int*)f, &e, 1)) e = 0;",
           "while (1) { if (n) while (v[0]) ; }",
           "while (f[0] != n) barrier(CLK_LOCAL_MEM_FENCE);",
           "while (f[get_group_id(0)] != n) ;",
           "do { barrier(CLK_LOCAL_MEM_FENCE); if (*f == n) break; } while (1);",
       }) {
    EXPECT_EQ(Verdict(body(text)), kMayWait) << text;
  }
  // Through helpers, macros and types.
  EXPECT_EQ(Verdict("int peek(volatile global int* p) { return *p; }\n"
                    "kernel void k(global int* f) { while (peek(f) == 0) ; }"),
            kMayWait);
  EXPECT_EQ(Verdict("void wait(volatile global int* p) { while (*p == 0) ; }\n"
                    "kernel void k(global int* f) { wait(f); }"),
            kMayWait);
  EXPECT_EQ(Verdict("#define PEEK(p) atomic_add(p, 0)\nkernel void k(global int* f) { while (PEEK(f) == 0) ; }"),
            kMayWait);
  EXPECT_EQ(Verdict("#define SPIN(c) while (c)\nkernel void k(global int* f) { SPIN(atomic_add(f, 0) == 0) ; }"),
            kMayWait);
  EXPECT_EQ(Verdict("#define SPIN(p) do { } while (atomic_add(p, 0) == 0)\nkernel void k(global int* f) { SPIN(f); }"),
            kMayWait);
  EXPECT_EQ(
      Verdict("typedef volatile global int* flag;\nkernel void k(global int* f) { flag p = (flag)f; while (!*p) ; }"),
      kMayWait);
  EXPECT_EQ(Verdict("#define V volatile\nkernel void k(V global int* f) { while (!*f) ; }"), kMayWait);
  EXPECT_EQ(Verdict("int add(global int* f) { return atomic_inc(f); }\n"
                    "kernel void k(global int* f) { while (add(f) < 5) ; }"),
            kMayWait);
  // Only the kernel that does it.
  EXPECT_EQ(Verdict("kernel void spins(global int* f) { while (atomic_add(f, 0) == 0) ; }\n"
                    "kernel void k(global int* f) { f[get_global_id(0)] = 1; }"),
            "plain");
}

TEST(KernelScan, WhatDoesNotWait) {
  const auto body = [](const std::string& text) {
    return "kernel void k(global int* f, volatile global int* v, int n) { int i = 0; " + text + " }";
  };
  for (const std::string text : {
           "while (i < n) { atomic_inc(&f[i]); i += 64; }",
           "while (i < n) { if (f[i]) atomic_add(f, 1); else (void)atomic_inc(f); ++i; }",
           "for (int j = 0; j < n; ++j) { int at = atomic_inc(f); v[at] = j; }",
           "if (atomic_inc(f) == n - 1) { for (int j = 0; j < n; ++j) f[1] += f[j]; }",
           "for (int j = f[0]; j < f[1]; ++j) f[2] += j;",
           "for (;;) { if (i++ > n) break; f[i] = 0; }",
           "int old = v[0], was; do { was = old; old = atomic_cmpxchg(v, was, was + 1); } while (was != old);",
           "while (i < n) { barrier(CLK_LOCAL_MEM_FENCE); ++i; }",
           "do { barrier(CLK_LOCAL_MEM_FENCE); } while (f[i++] == n);",
           "while (f[0] != n) { step(f); }",
           "do { f[0] = 1; } while (0);",
           "int e = 0; while (!atomic_compare_exchange_weak((global atomic_int*)f, &e, e + 1)) ;",
           "volatile local int s[4]; while (s[0] < n) ++s[0];",
           "atomic_store((global atomic_int*)f, 1); while (i < n) ++i;",
       }) {
    EXPECT_EQ(Verdict(body(text)).substr(0, 5), "plain") << text << " -> " << Verdict(body(text));
  }
  // The atomic addition of floats that everybody copies.
  constexpr std::string_view kAdd = R"(
    inline void AtomicAdd(volatile global float* source, const float operand) {
      union { unsigned int u; float f; } next, prev;
      do {
        prev.f = *source;
        next.f = prev.f + operand;
      } while (atomic_cmpxchg((volatile global unsigned int*)source, prev.u, next.u) != prev.u);
    }
    kernel void k(global float* sum, int n) { int i = 0; while (i < n) { AtomicAdd(&sum[i], 1.0f); ++i; } }
  )";
  EXPECT_EQ(Verdict(kAdd), "plain");
  EXPECT_EQ(Verdict("#define ADD(p, x) do { atomic_add(p, x); } while (0)\n"
                    "kernel void k(global int* f, int n) { int i = 0; while (i++ < n) ADD(f, 1); }"),
            "plain");
}

TEST(KernelScan, OtherReasonsToRunWhole) {
  EXPECT_EQ(Verdict("kernel void k(queue_t q) { enqueue_marker(q, 0, 0, 0); }"),
            "whole: it may enqueue kernels itself");
  EXPECT_EQ(Verdict("kernel void k(read_only pipe int p) { int x; read_pipe(p, &x); }"), "whole: it may use pipes");
}

TEST(KernelScan, HostileTextsEnd) {
  std::string deep = "kernel void k(global int* a) { ";
  for (int i = 0; i < 100000; ++i) deep += "if (1) ";
  EXPECT_EQ(Verdict(deep + "while (a[0]) a[0] = 0; }"), "plain");
  EXPECT_TRUE(IsWhole("void f(volatile global int* v) { for (;;) " + deep.substr(32) +
                      "v[0]; }\nkernel void k(global int* a) { f(a); }"));
  std::string loops = "kernel void k(volatile global int* a) { ";
  for (int i = 0; i < 20000; ++i) loops += "for (;a[0];) ";
  EXPECT_TRUE(IsWhole(loops + "; }"));
  std::string same;
  for (int i = 0; i < 20000; ++i) same += "#define A A A A\n";
  EXPECT_TRUE(IsWhole(same + "kernel void k(global int* a) { A }"));
  std::string chain;
  for (int i = 0; i < 20000; ++i)
    chain += "int f" + std::to_string(i) + "() { return f" + std::to_string(i + 1) + "(); }\n";
  chain += "int f20000() { return get_group_id(0); }\n";
  EXPECT_EQ(Verdict(chain + "kernel void k(global int* a) { a[0] = f0(); }").substr(0, 5), "carry");
  EXPECT_EQ(Verdict("kernel void k(global int* a) { )(][}{ }").substr(0, 5), "plain");
}

TEST(KernelScan, CheapQuestion) {
  EXPECT_FALSE(MayNeedCarry("kernel void k(global int* a) { a[get_global_id(0)] = 1; }"));
  EXPECT_TRUE(MayNeedCarry("kernel void k(global int* a) { a[0] = get_num_groups(0); }"));
  EXPECT_TRUE(MayNeedCarry("#define G(x) get_##x(0)"));
  EXPECT_TRUE(MayNeedCarry("get_gro\\\nup_id"));
}

}  // namespace
}  // namespace hawser::server::slicing
