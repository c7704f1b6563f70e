// SPDX-License-Identifier: Apache-2.0
#include "tools/admin/kernel_name.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::tools {
namespace {

TEST(KernelName, WhatIsNotMangledStays) {
  EXPECT_EQ(KernelName(""), "");
  EXPECT_EQ(KernelName("vadd"), "vadd");
  EXPECT_EQ(KernelName("_Z"), "_Z");
  EXPECT_EQ(KernelName("_ZERO"), "_ZERO");
  EXPECT_EQ(KernelName("_Z0v"), "_Z0v");
}

TEST(KernelName, ParametersAreLeftAway) {
  EXPECT_EQ(KernelName("_Z4vaddPKfS0_Pfi"), "vadd");
  EXPECT_EQ(KernelName("_ZL4vaddv"), "vadd");
}

TEST(KernelName, Namespaces) {
  EXPECT_EQ(KernelName("_ZN6linear4fast6matmulEPKf"), "linear::fast::matmul");
  EXPECT_EQ(KernelName("_ZN12_GLOBAL__N_14spinEv"), "(anonymous namespace)::spin");
  EXPECT_EQ(KernelName("_ZN36_INTERNAL_0a1b2c3d_4_spin_cu_deadbee4spinEv"), "(anonymous namespace)::spin");
  EXPECT_EQ(KernelName("_ZSt4copyv"), "std::copy");
}

TEST(KernelName, TemplateArguments) {
  EXPECT_EQ(KernelName("_Z7reduce6IfLj512ELb1EEvPT_S1_j"), "reduce6<float, 512, true>");
  EXPECT_EQ(KernelName("_Z4scanILin3EEvv"), "scan<-3>");
  EXPECT_EQ(KernelName("_Z4sortIN3lib4LessIiEEPKhEvv"), "sort<lib::Less<int>, const unsigned char*>");
  EXPECT_EQ(KernelName("_Z1fIDhRxOyEvv"), "f<half, long long&, unsigned long long&&>");
  EXPECT_EQ(KernelName("_Z1gIL4Mode2EEvv"), "g<(Mode)2>");
  EXPECT_EQ(KernelName("_Z3mapIJidEEvDpT_"), "map<int, double>");
  EXPECT_EQ(KernelName("_ZN2at6vectorIfE4fillEv"), "at::vector<float>::fill");
}

TEST(KernelName, WhatIsNotUnderstoodIsLeftOut) {
  EXPECT_EQ(KernelName("_Z1fIZ4mainEUlvE_Evv"), "f<…>");
  EXPECT_EQ(KernelName("_Z1fIiS_Evv"), "f<int, …>");
  EXPECT_EQ(KernelName("_ZN1aIXadL_Z1bvEEE1cEv"), "a<…>");
}

TEST(KernelName, NamesThatWereCut) {
  EXPECT_EQ(KernelName("_Z10matrixMu"), "matrixMu…");
  EXPECT_EQ(KernelName("_ZN6linear4fas"), "linear::fas…");
  EXPECT_EQ(KernelName("_ZN6linear"), "linear::…");
  EXPECT_EQ(KernelName("_Z6reduceIfLj5"), "reduce<float, …>");
  EXPECT_EQ(KernelName("_Z6reduceI"), "reduce<…>");
  EXPECT_EQ(KernelName("_Z99999999999999999999999a"), "a…");
}

/// Depth and length are bounded, whoever wrote the name.
TEST(KernelName, UnfriendlyNames) {
  const std::string deep(100'000, 'P');
  EXPECT_LT(KernelName("_Z1fI" + deep + "iEvv").size(), 100U);
  EXPECT_LT(KernelName("_Z1fI" + std::string(100'000, 'J')).size(), 100U);
  std::string nested = "_Z1f";
  for (int i = 0; i < 10'000; ++i) nested += "I1a";
  EXPECT_LT(KernelName(nested).size(), 200U);
  for (size_t length = 0; length < 40; ++length) {
    EXPECT_FALSE(KernelName(std::string("_ZN2at6vectorIfJPKiLb1EEE4fillIN1a1bEEEv").substr(0, length) + "x").empty());
  }
}

}  // namespace
}  // namespace hawser::tools
