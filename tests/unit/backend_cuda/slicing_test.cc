// SPDX-License-Identifier: Apache-2.0
// Which kernels may run in parts, and the text of those that do.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/backends/cuda/slicing/guard.h"
#include "server/backends/cuda/slicing/module_text.h"
#include "server/backends/cuda/slicing/scan.h"
#include "server/backends/cuda/slicing/variables.h"
#include "wire/codec.h"

namespace hawser::server::cuda_slicing {
namespace {

using Module = std::shared_ptr<const ptx::Module>;

Module Parse(const std::string& text) {
  auto module = ptx::Parse(text);
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.status().text());
  return module.ok() ? *module : nullptr;
}

std::string Head(const char* version = "8.0", const char* target = "sm_90") {
  return std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n";
}

/// A kernel "k" with this body, registers of all kinds, and a pointer in %rd1.
std::string Kernel(const std::string& body, const std::string& directives = "") {
  return ".visible .entry k(.param .u64 k_pointer, .param .u32 k_count)\n" + directives +
         "{\n.reg .pred %p<9>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n"
         "ld.param.u64 %rd1, [k_pointer];\nld.param.u32 %r1, [k_count];\n" +
         body + "\nret;\n}\n";
}

std::string Why(const std::string& text, const char* kernel = "k") {
  const Module module = Parse(text);
  return module == nullptr ? "not parsed" : WhyWhole(*module, kernel);
}
std::string WhyBody(const std::string& body) { return Why(Head() + Kernel(body)); }

constexpr const char* kWaits = "a loop may wait for another block";

TEST(CudaSlicingScan, OrdinaryKernelsMayBeSplit) {
  EXPECT_EQ(WhyBody("st.global.u32 [%rd1], %r1;"), "");
  EXPECT_EQ(WhyBody("bar.sync 0;\nmov.u32 %r2, %nctaid.x;\nst.global.u32 [%rd1], %r2;"), "");
  EXPECT_EQ(WhyBody("red.global.add.u32 [%rd1], %r1;"), "");
  // A grid stride.
  EXPECT_EQ(WhyBody("mov.u32 %r2, 0;\n$L:\nld.global.u32 %r3, [%rd1];\nadd.s32 %r2, %r2, 1;\n"
                    "setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra $L;"),
            "");
  // A histogram whose sums nobody looks at.
  EXPECT_EQ(WhyBody("mov.u32 %r2, 0;\n$L:\natom.global.add.u32 %r3, [%rd1], 1;\nadd.s32 %r2, %r2, 1;\n"
                    "setp.lt.u32 %p1, %r2, %r1;\n@%p1 bra $L;"),
            "");
  // "The last block does the rest": an atomic decides, but in no loop.
  EXPECT_EQ(WhyBody("atom.global.inc.u32 %r3, [%rd1], %r1;\nsetp.eq.u32 %p1, %r3, %r1;\n@!%p1 bra $E;\n"
                    "st.global.u32 [%rd1+4], %r1;\n$E:"),
            "");
  // The sum of floats by compare and exchange.
  EXPECT_EQ(WhyBody("ld.global.u32 %r2, [%rd1];\n$L:\nmov.b32 %f1, %r2;\nadd.f32 %f2, %f1, %f1;\nmov.b32 %r4, %f2;\n"
                    "atom.global.cas.b32 %r5, [%rd1], %r2, %r4;\nsetp.ne.s32 %p1, %r5, %r2;\nmov.u32 %r2, %r5;\n"
                    "@%p1 bra $L;"),
            "");
  // What a block's own threads tell each other.
  EXPECT_EQ(WhyBody("mov.u32 %r2, 0;\n$L:\nld.volatile.shared.u32 %r3, [%r2];\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra $L;"),
            "");
}

TEST(CudaSlicingScan, LoopsThatWaitForOtherBlocksAreFound) {
  const auto loop = [](const std::string& look) {
    return WhyBody("$L:\n" + look + "\nsetp.lt.u32 %p1, %r3, %r1;\n@%p1 bra $L;");
  };
  EXPECT_EQ(loop("ld.volatile.global.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("ld.volatile.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("ld.acquire.gpu.global.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("ld.relaxed.gpu.global.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("ld.global.cv.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("atom.global.add.u32 %r3, [%rd1], 0;"), kWaits);
  EXPECT_EQ(loop("atom.global.exch.b32 %r3, [%rd1], 1;"), kWaits);
  EXPECT_EQ(loop("atom.acquire.gpu.global.cas.b32 %r3, [%rd1], 1, 2;"), kWaits);
  EXPECT_EQ(loop("membar.gl;\nld.global.u32 %r3, [%rd1];"), kWaits);
  // Through several registers, and through memory.
  EXPECT_EQ(loop("ld.volatile.global.u32 %r5, [%rd1];\nadd.s32 %r6, %r5, 1;\nmov.u32 %r3, %r6;"), kWaits);
  EXPECT_EQ(loop("ld.volatile.global.u32 %r5, [%rd1];\nst.global.u32 [%rd1+8], %r5;\nbar.sync 0;\nld.global.u32 %r3, "
                 "[%rd1+8];"),
            kWaits);
  // Sleeping is for those who wait, whatever they look at.
  EXPECT_EQ(loop("nanosleep.u32 100;\nld.global.u32 %r3, [%rd1];"), kWaits);
  // A loop whose blocks do not lie in order.
  EXPECT_EQ(WhyBody("bra $B;\n$A:\nld.volatile.global.u32 %r3, [%rd1];\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra $E;\n$B:\n"
                    "bra $A;\n$E:"),
            kWaits);
}

TEST(CudaSlicingScan, WhatThreadsOfABlockTellEachOtherIsFollowed) {
  const auto loop = [](const std::string& tell) {
    return WhyBody("$L:\nld.volatile.global.u32 %r2, [%rd1];\nsetp.ne.u32 %p2, %r2, 0;\n" + tell + "\n@!%p1 bra $L;");
  };
  // __syncthreads_or(), __syncthreads_count(), votes.
  EXPECT_EQ(loop("barrier.cta.red.or.pred %p1, 0, %p2;"), kWaits);
  EXPECT_EQ(loop("bar.red.and.pred %p1, 0, %p2;"), kWaits);
  EXPECT_EQ(loop("barrier.cta.red.popc.u32 %r3, 0, %p2;\nsetp.ne.u32 %p1, %r3, 0;"), kWaits);
  EXPECT_EQ(loop("vote.sync.any.pred %p1, %p2, 0xffffffff;"), kWaits);
  // Shared memory, by atomics.
  const std::string shared = "mov.u32 %r5, 0;\n";
  EXPECT_EQ(loop(shared + "st.shared.u32 [%r5], %r2;\natom.shared.add.u32 %r3, [%r5], 0;\nsetp.ne.u32 %p1, %r3, 0;"),
            kWaits);
  EXPECT_EQ(loop(shared + "atom.shared.exch.b32 %r4, [%r5], %r2;\nld.shared.u32 %r3, [%r5];\nsetp.ne.u32 %p1, %r3, 0;"),
            kWaits);
  EXPECT_EQ(loop(shared + "red.shared.max.u32 [%r5], %r2;\nld.shared.u32 %r3, [%r5];\nsetp.ne.u32 %p1, %r3, 0;"),
            kWaits);
  // A barrier that tells nothing.
  EXPECT_EQ(loop("bar.sync 0;\nadd.s32 %r6, %r6, 1;\nsetp.gt.u32 %p1, %r6, 9;"), "");
}

TEST(CudaSlicingScan, PlacesInQueuesDecideAboutNothing) {
  // for (i ..) if (in[i]) out[atomicAdd(count, 1)] = i; and the same that keeps the place.
  const auto loop = [](const std::string& store, const std::string& barrier = "") {
    return WhyBody(
        "$L:\nld.global.u32 %r2, [%rd1];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra $N;\natom.global.add.u32 %r3, [%rd1+8], "
        "1;\n"
        "mad.wide.u32 %rd2, %r3, 4, %rd1;\n" +
        store + "\n$N:\n" + barrier +
        "add.s64 %rd1, %rd1, 4;\nadd.s32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, %r1;\n@%p1 bra $L;");
  };
  EXPECT_EQ(loop("st.global.u32 [%rd2], %r6;"), "");
  EXPECT_EQ(loop("st.global.u32 [%rd2], %r6;", "bar.sync 0;\n"), "");
  EXPECT_EQ(loop("st.global.u32 [%rd1], %r3;"), "");
  // Others may read it behind a barrier; and what is the thread's own is where compilers keep what has no register.
  EXPECT_EQ(loop("st.global.u32 [%rd1], %r3;", "bar.sync 0;\n"), kWaits);
  EXPECT_EQ(loop("st.local.u32 [%rd8], %r3;\nld.local.u32 %r6, [%rd8];"), kWaits);
}

TEST(CudaSlicingScan, WhatHasTheScopeOfABlockIsOfTheBlock) {
  // Groups of several warps meet like this, in shared memory by addresses of any memory.
  const auto loop = [](const std::string& look) {
    return WhyBody("$L:\n" + look + "\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra $L;");
  };
  EXPECT_EQ(loop("ld.acquire.cta.u32 %r3, [%rd1];"), "");
  EXPECT_EQ(loop("atom.or.acq_rel.cta.b32 %r3, [%rd1], 0;"), "");
  EXPECT_EQ(loop("ld.acquire.sys.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("ld.volatile.u32 %r3, [%rd1];"), kWaits);
  EXPECT_EQ(loop("fence.acq_rel.cta;\nld.u32 %r3, [%rd1];"), kWaits);
}

TEST(CudaSlicingScan, ACompareAndExchangeMayBeALoad) {
  const auto loop = [](const std::string& exchange) {
    return WhyBody("mov.u32 %r2, 0;\n$L:\n" + exchange +
                   "\nsetp.gt.s32 %p1, %r1, %r3;\nmov.u32 %r2, %r3;\n@%p1 bra $L;");
  };
  EXPECT_EQ(loop("atom.global.cas.b32 %r3, [%rd1], %r2, %r2;"), kWaits);
  EXPECT_EQ(loop("mov.b32 %r5, %r2;\natom.global.cas.b32 %r3, [%rd1], %r5, %r2;"), kWaits);
  // The greatest of all: what has been exchanged is seen in the next round.
  EXPECT_EQ(loop("atom.global.cas.b32 %r3, [%rd1], %r2, %r1;"), "");
  EXPECT_EQ(loop("mov.b32 %r5, %r2;\natom.global.cas.b32 %r3, [%rd1], %r5, %r1;"), "");
}

TEST(CudaSlicingScan, LoopsThatOnlyReadAgainWait) {
  const std::string test = "setp.ne.u32 %p1, %r3, %r1;\n@%p1 bra $L;";
  EXPECT_EQ(WhyBody("$L:\nbar.sync 0;\nld.global.u32 %r3, [%rd1];\n" + test), kWaits);
  EXPECT_EQ(WhyBody("$L:\nld.u32 %r3, [%rd1+8];\n" + test), kWaits);
  EXPECT_EQ(WhyBody("$L:\nadd.s64 %rd2, %rd1, 8;\nld.global.u32 %r2, [%rd2];\nadd.s32 %r3, %r2, 1;\n" + test), kWaits);
  // By shared memory, and within another loop, whose rounds differ.
  EXPECT_EQ(WhyBody("mov.u32 %r5, 0;\n$L:\nld.global.u32 %r2, [%rd1];\nst.shared.u32 [%r5], %r2;\nbar.sync 0;\n"
                    "ld.shared.u32 %r3, [%r5];\n" +
                    test),
            kWaits);
  EXPECT_EQ(WhyBody("mov.u32 %r2, 0;\n$O:\nadd.s64 %rd1, %rd1, 4;\n$L:\nld.global.u32 %r3, [%rd1];\nbar.sync 0;\n" +
                    test + "\nadd.s32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, %r1;\n@%p2 bra $O;"),
            kWaits);
  // The bound is read again, the place is another one, or what it reads is what it writes.
  EXPECT_EQ(WhyBody("mov.u32 %r2, 0;\n$L:\nadd.s32 %r2, %r2, 1;\nld.global.u32 %r1, [%rd1];\nsetp.lt.u32 %p1, %r2, "
                    "%r1;\n@%p1 bra $L;"),
            "");
  EXPECT_EQ(WhyBody("$L:\nld.global.u64 %rd1, [%rd1];\nsetp.ne.u64 %p1, %rd1, 0;\n@%p1 bra $L;"), "");
  EXPECT_EQ(WhyBody("$L:\nld.global.u32 %r2, [%rd1];\nadd.s32 %r3, %r2, -1;\nst.global.u32 [%rd1], %r3;\n" + test), "");
  EXPECT_EQ(WhyBody("mov.u32 %r5, 0;\n$L:\nld.shared.u32 %r2, [%r5];\nadd.s32 %r6, %r6, 1;\nst.shared.u32 [%r5], %r6;\n"
                    "ld.global.u32 %r7, [%rd1];\nadd.s32 %r3, %r2, %r7;\n" +
                    test),
            "");
}

TEST(CudaSlicingScan, FunctionsThatCallEachOtherAreALoop) {
  const auto module = [](const std::string& look, const std::string& again) {
    return Head() +
           ".func one(.param .b64 where);\n.func two(.param .b64 where)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n.reg "
           ".pred %p1;\n" +
           "ld.param.u64 %rd1, [where];\n" + look +
           "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra $E;\n{\n.param .b64 a;\nst.param.b64 [a], %rd1;\n" +
           "call.uni one, (a);\n}\n$E:\nret;\n}\n.func one(.param .b64 where)\n{\n.reg .b64 %rd<3>;\n" +
           "ld.param.u64 %rd1, [where];\n{\n" + ".param .b64 a;\nst.param.b64 [a], %rd1;\n" + again + "}\nret;\n}\n" +
           Kernel("{\n.param .b64 a;\nst.param.b64 [a], %rd1;\ncall.uni two, (a);\n}");
  };
  EXPECT_EQ(Why(module("ld.volatile.u32 %r1, [%rd1];\n", "call.uni two, (a);\n")), kWaits);
  EXPECT_EQ(Why(module("ld.volatile.u32 %r1, [%rd1];\n", "")), "");
  EXPECT_EQ(Why(module("ld.u32 %r1, [%rd1];\n", "call.uni two, (a);\n")), "");
}

TEST(CudaSlicingScan, AFunctionThatLooksAtOthersMayBeHowALoopWaits) {
  const std::string poll =
      ".func (.param .b32 out) look(.param .b64 where)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"
      "ld.param.u64 %rd1, [where];\nld.volatile.u32 %r1, [%rd1];\nst.param.b32 [out], %r1;\nret;\n}\n";
  const std::string call =
      "{\n.param .b64 a;\n.param .b32 b;\nst.param.b64 [a], %rd1;\ncall.uni (b), look, (a);\nld.param.b32 %r3, "
      "[b];\n}\n";
  EXPECT_EQ(Why(Head() + poll + Kernel("$L:\n" + call + "setp.ne.u32 %p1, %r3, 0;\n@%p1 bra $L;")), kWaits);
  EXPECT_EQ(Why(Head() + poll + Kernel(call)), "");
}

TEST(CudaSlicingScan, ClustersAreNeverSplit) {
  EXPECT_EQ(WhyBody("barrier.cluster.arrive;"), "it knows of clusters");
  EXPECT_EQ(WhyBody("mov.u32 %r2, %cluster_ctarank;"), "it knows of clusters");
  EXPECT_EQ(WhyBody("mov.u32 %r2, %clusterid.x;"), "it knows of clusters");
  EXPECT_EQ(WhyBody("mapa.u64 %rd2, %rd1, %r1;"), "it knows of clusters");
  EXPECT_EQ(Why(Head() + Kernel("", ".explicitcluster\n.reqnctapercluster 2, 1, 1\n")), "it knows of clusters");
  EXPECT_EQ(Why(Head() + Kernel("", ".maxclusterrank 4\n")), "it knows of clusters");
}

TEST(CudaSlicingScan, DependentLaunchesAreNeverSplit) {
  EXPECT_EQ(WhyBody("griddepcontrol.wait;"), "it is launched together with what comes behind it");
  EXPECT_EQ(WhyBody("griddepcontrol.launch_dependents;"), "it is launched together with what comes behind it");
}

TEST(CudaSlicingScan, WhoAsksForTimeOrPlaceIsNeverSplit) {
  EXPECT_EQ(WhyBody("mov.u32 %r2, %clock;"), "it asks for the time");
  EXPECT_EQ(WhyBody("mov.u64 %rd2, %clock64;"), "it asks for the time");
  EXPECT_EQ(WhyBody("mov.u64 %rd2, %globaltimer;"), "it asks for the time");
  EXPECT_EQ(WhyBody("mov.u32 %r2, %smid;"), "it asks on which multiprocessor it runs");
  EXPECT_EQ(WhyBody("mov.u32 %r2, %nsmid;"), "it asks on which multiprocessor it runs");
  EXPECT_EQ(WhyBody("mov.u64 %rd2, %gridid;"), "it asks for the number of its grid");
  EXPECT_EQ(WhyBody("mov.b32 %r2, %envreg2;"), "it reads what the driver alone knows");
  // In a function that it calls too.
  const std::string function = ".func where()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, %smid;\nret;\n}\n";
  EXPECT_EQ(Why(Head() + function + Kernel("call.uni where;")), "it asks on which multiprocessor it runs");
  EXPECT_EQ(Why(Head() + function + Kernel("")), "");
}

TEST(CudaSlicingScan, VariablesOfTheModuleAreNoReasonButReferencesAre) {
  const std::string variable = ".visible .global .align 4 .u32 sum;\n";
  EXPECT_EQ(Why(Head() + variable + Kernel("red.global.add.u32 [sum], 1;")), "");
  EXPECT_EQ(Why(Head() + variable + Kernel("")), "");
  EXPECT_EQ(Why(Head() + ".const .align 4 .u32 factor = 3;\n" + Kernel("ld.const.u32 %r2, [factor];")), "");
  EXPECT_EQ(
      Why(Head() + ".global .texref image;\n" + Kernel("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];")),
      "it uses a texture reference of its module");
  // Messages are only read; shared memory is of the block.
  EXPECT_EQ(Why(Head() + ".global .align 1 .b8 $str[3] = {72, 105, 0};\n" + Kernel("mov.u64 %rd2, $str;")), "");
  EXPECT_EQ(Why(Head() + ".extern .shared .align 16 .b8 room[];\n" + Kernel("mov.u32 %r2, room;")), "");
  // A flag of the module is waited for like any other.
  EXPECT_EQ(Why(Head() + variable +
                Kernel("$L:\nld.volatile.global.u32 %r3, [sum];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra $L;")),
            kWaits);
}

TEST(CudaSlicingScan, FunctionsThatAreCalledByTheirAddressesMayBeOtherModules) {
  const std::string call =
      "{\n.param .b64 a;\nst.param.b64 [a], %rd1;\nproto: .callprototype _ (.param .b64 p);\n"
      "call %rd1, (a), proto;\n}";
  EXPECT_EQ(WhyBody(call), "it calls functions by their addresses");
}

TEST(CudaSlicingScan, AddressesOfFunctionsWouldBeThoseOfTheCopy) {
  // Another kernel, which runs whole, would call them.
  const std::string function = ".func twice()\n{\nret;\n}\n";
  EXPECT_EQ(Why(Head() + function + Kernel("mov.u64 %rd2, twice;\nst.global.u64 [%rd1], %rd2;")),
            "it takes the address of a function");
  EXPECT_EQ(Why(Head() + function + Kernel("call.uni twice;")), "");
}

TEST(CudaSlicingScan, WhatIsElsewhereIsNotKnown) {
  EXPECT_EQ(Why(Head() + ".extern .func other();\n" + Kernel("call.uni other;")),
            "it calls what is not in its module's text");
  EXPECT_EQ(Why(Head() + Kernel(""), "nobody"), "it is not in its module's text");
  const std::string print =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n" +
      Kernel(
          "{\n.param .b64 f;\n.param .b64 a;\n.param .b32 r;\nst.param.b64 [f], %rd1;\nst.param.b64 [a], %rd1;\n"
          "call.uni (r), vprintf, (f, a);\n}");
  EXPECT_EQ(Why(Head() + print), "");
}

TEST(CudaSlicingScan, TheGuardsParametersMustFit) {
  const auto text = [](const char* version, const char* target, int bytes) {
    return Head(version, target) + ".entry k(.param .align 8 .b8 block[" + std::to_string(bytes) + "])\n{\nret;\n}\n";
  };
  EXPECT_EQ(Why(text("8.0", "sm_90", 4336)), "");
  EXPECT_EQ(Why(text("8.0", "sm_90", 4337)), "it has too many parameters");
  EXPECT_EQ(Why(text("8.1", "sm_90", 32000)), "");
  EXPECT_EQ(Why(text("8.1", "sm_60", 32000)), "it has too many parameters");
  EXPECT_EQ(Why(text("8.1", "sm_90", 32752)), "it has too many parameters");
}

TEST(CudaSlicingGuard, TheKernelKeepsItsParametersAndGetsTwo) {
  const Module module = Parse(Head() +
                              ".visible .entry other(.param .u64 a)\n.maxntid 64, 1, 1\n{\nret;\n}\n"
                              ".visible .entry k(\n.param .u64 a, // } {\n.param .u8 b\n)\n.pragma \"nounroll\";\n"
                              "{\n.reg .b32 %r<2>;\n$L: mov.u32 %r1, %ctaid.x;\nret;\n}\n"
                              ".weak .entry last()\n{\n{\nret;\n}\n}\n.global .u32 v;\n");
  ASSERT_NE(module, nullptr);
  auto guarded = Rewrite(*module, "k", Way::kGuard);
  ASSERT_TRUE(guarded.ok()) << guarded.status().text();
  const Module rewritten = Parse(guarded->text);
  ASSERT_NE(rewritten, nullptr);
  ASSERT_EQ(rewritten->functions.size(), 1u);
  const ptx::Function& kernel = rewritten->functions[0];
  EXPECT_EQ(kernel.name, "k");
  EXPECT_EQ(kernel.linkage, ptx::Linkage::kVisible);
  ASSERT_EQ(kernel.parameter_count, 4u);
  EXPECT_EQ(kernel.variables[kernel.parameters[1]].name, "b");
  // The guard's two exits come first.
  ASSERT_GT(kernel.instructions.size(), 12u);
  EXPECT_EQ(kernel.instructions[12].op, "exit");
  EXPECT_EQ(kernel.instructions[13].op, "exit");
  EXPECT_EQ(kernel.instructions[14].op, "mov.u32");
  EXPECT_EQ(rewritten->variables.size(), 0u);  // The module's are used where they are.
  auto layout = LayoutOf(*module, module->functions[1]);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->own_bytes, 9u);
  EXPECT_EQ(layout->added_offset, 16u);
  EXPECT_EQ(layout->total_bytes, 32u);
}

TEST(CudaSlicingGuard, KernelsWithoutParametersGetThem) {
  for (const char* header : {".entry k", ".entry k()", ".visible .entry k( )"}) {
    const Module module = Parse(Head() + header + "\n{\nret;\n}\n");
    ASSERT_NE(module, nullptr) << header;
    auto guarded = Rewrite(*module, "k", Way::kGuard);
    ASSERT_TRUE(guarded.ok()) << header;
    const Module rewritten = Parse(guarded->text);
    ASSERT_NE(rewritten, nullptr) << header << "\n" << guarded->text;
    EXPECT_EQ(rewritten->functions[0].parameter_count, 2u);
  }
}

TEST(CudaSlicingOffset, TheKernelNamesPlacesThatItFindsOut) {
  const Module module = Parse(Head() + Kernel("mov.u32 %r2, %ctaid.x; // %ctaid.y\nmov.u32 %r3, %nctaid.z;\n"
                                              "mov.b32 %r4, %ctaid.y;"));
  ASSERT_NE(module, nullptr);
  EXPECT_TRUE(MayOffset(*module, "k"));
  auto text = Rewrite(*module, "k", Way::kOffset);
  ASSERT_TRUE(text.ok());
  const Module rewritten = Parse(text->text);
  ASSERT_NE(rewritten, nullptr) << text->text;
  const ptx::Function& kernel = rewritten->functions[0];
  ASSERT_EQ(kernel.parameter_count, 6u);
  // Where it runs is asked once, at the start.
  uint32_t asked = 0;
  for (const ptx::Operand& operand : kernel.operands) asked += operand.kind == ptx::OperandKind::kSpecial ? 1 : 0;
  EXPECT_EQ(asked, 1u);
  EXPECT_NE(
      text->text.find("mov.u32 %r2, %__hawser_x; // %ctaid.y\nmov.u32 %r3, %__hawser_nz;\nmov.b32 %r4, %__hawser_y;"),
      std::string::npos);
}

TEST(CudaSlicingOffset, ALaunchOfOneRowNeedsNoDivision) {
  const Module module =
      Parse(Head() + Kernel("mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %nctaid.y;\nmov.u32 %r4, %ctaid.y;"));
  ASSERT_NE(module, nullptr);
  auto text = Rewrite(*module, "k", Way::kRow);
  ASSERT_TRUE(text.ok());
  const Module rewritten = Parse(text->text);
  ASSERT_NE(rewritten, nullptr) << text->text;
  EXPECT_EQ(rewritten->functions[0].parameter_count, 6u) << "as in other launches";
  EXPECT_NE(text->text.find("mov.u32 %r2, %__hawser_x;\nmov.u32 %r3, %nctaid.y;\nmov.u32 %r4, %ctaid.y;"),
            std::string::npos);
  EXPECT_EQ(text->text.find("div"), std::string::npos);
  EXPECT_EQ(text->text.find("[__hawser_nx]"), std::string::npos) << "only for who asks how long the row is";
}

TEST(CudaSlicingOffset, WhoAsksHowLongTheRowIsIsToldOfTheLaunch) {
  const Module module = Parse(Head() + Kernel("mov.u32 %r2, %nctaid.x;"));
  ASSERT_NE(module, nullptr);
  auto text = Rewrite(*module, "k", Way::kRow);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(Parse(text->text), nullptr) << text->text;
  EXPECT_NE(text->text.find("ld.param.u32 %__hawser_nx, [__hawser_nx];"), std::string::npos);
  EXPECT_NE(text->text.find("mov.u32 %r2, %__hawser_nx;"), std::string::npos);
}

TEST(CudaSlicingOffset, OthersMustNotAskForPlaces) {
  const auto may = [](const std::string& text) {
    const Module module = Parse(text);
    return module != nullptr && MayOffset(*module, "k");
  };
  const std::string function = ".func where()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, %ctaid.x;\nret;\n}\n";
  EXPECT_FALSE(may(Head() + function + Kernel("call.uni where;")));
  EXPECT_TRUE(may(Head() + function + Kernel("")));
  EXPECT_FALSE(may(Head() + Kernel("mad.lo.s32 %r2, %ctaid.x, %r1, %r1;")));
  EXPECT_TRUE(may(Head() + Kernel("mov.u32 %r2, %ntid.x;")));
  EXPECT_FALSE(may(Head() + Kernel("mov.u32 %r2, %smid;")));
}

/// The copy's only kernel, whose variables are `names`.
Module CopyOf(const std::string& text, const std::vector<std::string>& names, std::string* copied = nullptr) {
  const Module module = Parse(text);
  if (module == nullptr) return nullptr;
  auto copy = Rewrite(*module, "k", Way::kGuard);
  EXPECT_TRUE(copy.ok()) << (copy.ok() ? "" : copy.status().text());
  if (!copy.ok()) return nullptr;
  EXPECT_EQ(copy->variables, names) << copy->text;
  if (copied != nullptr) *copied = copy->text;
  return Parse(copy->text);
}

TEST(CudaSlicingVariables, TheCopyFindsThemInItsTable) {
  std::string text;
  const Module copy =
      CopyOf(Head() +
                 ".visible .global .align 4 .u32 unused[100];\n.const .align 4 .u32 factors[4] = {1, 2, 3, 4};\n"
                 ".visible .global .align 8 .u64 sums[8] = {generic(unused), 0};\n" +
                 Kernel("red.global.add.u32 [sums+4], 1;\n@%p1 ld.const.u32 %r2, [factors+8];\n"
                        "mov.u64 %rd2, factors;\nadd.s64 %rd2, %rd2, 4;\nld.const.u32 %r3, [%rd2];\n"
                        "cvta.const.u64 %rd3, %rd2;\nmov.u64 %rd4, sums+16;\n$L:ld.global.u64 %rd5, sums[1];"),
             {"sums", "factors"}, &text);
  ASSERT_NE(copy, nullptr) << text;
  ASSERT_EQ(copy->variables.size(), 1u) << text;
  EXPECT_EQ(copy->variables[0].name, kVariableTable);
  EXPECT_EQ(copy->variables[0].space, ptx::Space::kConst);
  EXPECT_EQ(copy->variables[0].linkage, ptx::Linkage::kVisible);
  EXPECT_EQ(copy->variables[0].size, 16u);
  const auto has = [&](const std::string& what) {
    EXPECT_NE(text.find(what), std::string::npos) << what << "\nin\n" << text;
  };
  has("[__hawser_variables+0]; add.s64 %__hawser_v, %__hawser_v, 4; red.global.add.u32 [%__hawser_v], 1; }");
  // The predicate stays with its instruction; the table is read whether it holds or not.
  has("[__hawser_variables+8]; add.s64 %__hawser_v, %__hawser_v, 8; @%p1 ld.global.u32 %r2, [%__hawser_v]; }");
  has("[__hawser_variables+8]; mov.u64 %rd2, %__hawser_v; }");
  // What comes from such an address is read as other memory too.
  has("\nld.global.u32 %r3, [%rd2];");
  has("\ncvta.global.u64 %rd3, %rd2;");
  has("add.s64 %__hawser_v, %__hawser_v, 16; mov.u64 %rd4, %__hawser_v; }");
  has("$L:{ .reg .b64 %__hawser_v;");
  has("add.s64 %__hawser_v, %__hawser_v, 8; ld.global.u64 %rd5, [%__hawser_v]; }");
}

TEST(CudaSlicingVariables, FunctionsThatAreCalledFindThemToo) {
  std::string text;
  const Module copy = CopyOf(Head() +
                                 ".global .align 4 .u32 count;\n.global .align 4 .u32 never;\n"
                                 ".func tell();\n.func idle();\n"
                                 ".func tell()\n{\nred.global.add.u32 [count], 1;\nret;\n}\n"
                                 ".func idle()\n{\nred.global.add.u32 [never], 1;\nret;\n}\n" +
                                 Kernel("call.uni tell;"),
                             {"count"}, &text);
  ASSERT_NE(copy, nullptr) << text;
  // What it cannot reach is not compiled again, nor are variables that only that would use.
  ASSERT_EQ(copy->functions.size(), 2u) << text;
  EXPECT_EQ(copy->functions[0].name, "tell");
  EXPECT_EQ(text.find("never"), std::string::npos);
}

TEST(CudaSlicingVariables, ModulesWithoutConstantsKeepTheirLoads) {
  std::string text;
  const Module copy = CopyOf(Head() + ".global .align 1 .b8 $str[3] = {72, 105, 0};\n.global .align 4 .u32 gone;\n" +
                                 Kernel("ld.const.u32 %r2, [%rd1];\nmov.u64 %rd2, $str;"),
                             {}, &text);
  ASSERT_NE(copy, nullptr) << text;
  EXPECT_NE(text.find("\nld.const.u32 %r2, [%rd1];"), std::string::npos);
  ASSERT_EQ(copy->variables.size(), 1u) << text;
  EXPECT_EQ(copy->variables[0].name, "$str");
}

TEST(CudaSlicingVariables, WhatCannotBeReplacedIsNotCopied) {
  const auto refused = [](const std::string& text) {
    const Module module = Parse(text);
    return module != nullptr && !Rewrite(*module, "k", Way::kGuard).ok();
  };
  const std::string variable = ".global .align 4 .u32 sum;\n";
  EXPECT_FALSE(refused(Head() + variable + Kernel("st.global.u32 [sum], %r1;")));
  EXPECT_TRUE(refused(Head() + variable + Kernel("mov.b64 %rd2, {sum, sum};")));
  EXPECT_TRUE(refused(Head() + ".const .align 4 .u32 c;\n" + Kernel("mov.u64 %rd2, c;\nisspacep.const %p1, %rd2;")));
  EXPECT_TRUE(refused(Head() + ".const .align 4 .u32 c;\n" + Kernel("prefetch.const.tensormap [%rd1];")));
  EXPECT_TRUE(refused(Head() + ".global .align 1 .b8 $str[2] = {72, 0}, plain[4];\n" + Kernel("mov.u64 %rd2, $str;")));
}

TEST(CudaSlicingGuard, TextsWithOurNamesAreLeftAlone) {
  const Module module = Parse(Head() + ".entry k()\n{\n.reg .b32 %__hawser_a0;\nret;\n}\n");
  ASSERT_NE(module, nullptr);
  EXPECT_FALSE(Rewrite(*module, "k", Way::kGuard).ok());
}

TEST(CudaSlicingGuard, AnUnknownKernelIsAnError) {
  const Module module = Parse(Head() + ".entry k()\n{\nret;\n}\n");
  ASSERT_NE(module, nullptr);
  EXPECT_FALSE(Rewrite(*module, "nobody", Way::kGuard).ok());
}

TEST(CudaSlicingText, PtxIsTakenAsItIs) {
  const std::string text = Head() + ".entry k()\n{\nret;\n}\n";
  const wire::Bytes bytes = wire::AsBytes(text);
  ModuleText module(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()), false);
  ASSERT_TRUE(module.Parsed().ok());
  EXPECT_EQ((*module.Parsed())->functions.size(), 1u);
  // No entry of a fatbin.
  ModuleText broken(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()), true);
  EXPECT_FALSE(broken.Parsed().ok());
  EXPECT_FALSE(broken.Parsed().ok());
}

}  // namespace
}  // namespace hawser::server::cuda_slicing
