// SPDX-License-Identifier: Apache-2.0
// Which launches may never run in parts, whatever their kernels are.
#include "server/backends/cuda/kernel_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/backends/cuda/sliced_kernels.h"
#include "tests/unit/backend_cuda/fake_driver.h"

namespace hawser::server::cuda_backend {
namespace {

using testing::ElementsAre;

CUlaunchAttribute Of(CUlaunchAttributeID id) {
  CUlaunchAttribute attribute{};
  attribute.id = id;
  return attribute;
}
CUlaunchAttribute Cooperative(int value) {
  CUlaunchAttribute attribute = Of(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  attribute.value.cooperative = value;
  return attribute;
}
CUlaunchAttribute Dependent(int value) {
  CUlaunchAttribute attribute = Of(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  attribute.value.programmaticStreamSerializationAllowed = value;
  return attribute;
}
CUlaunchAttribute Clusters(unsigned x, unsigned y, unsigned z) {
  CUlaunchAttribute attribute = Of(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  attribute.value.clusterDim.x = x;
  attribute.value.clusterDim.y = y;
  attribute.value.clusterDim.z = z;
  return attribute;
}
bool MayBeParted(std::vector<CUlaunchAttribute> attributes) {
  KernelLaunch launch;
  launch.extended = true;
  launch.attributes = std::move(attributes);
  return launch.AttributesAllowParts();
}

TEST(LaunchAttributes, ThoseThatAskForNothingAllowParts) {
  EXPECT_TRUE(MayBeParted({}));
  EXPECT_TRUE(MayBeParted({Of(CU_LAUNCH_ATTRIBUTE_PRIORITY)}));
  EXPECT_TRUE(MayBeParted({Of(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW), Of(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)}));
  EXPECT_TRUE(MayBeParted({Cooperative(0), Dependent(0), Clusters(1, 1, 1)}));
}

TEST(LaunchAttributes, BlocksThatRunAtOnceStayTogether) {
  EXPECT_FALSE(MayBeParted({Cooperative(1)}));
  EXPECT_FALSE(MayBeParted({Of(CU_LAUNCH_ATTRIBUTE_PRIORITY), Cooperative(1)})) << "all of them count";
}

TEST(LaunchAttributes, ClustersStayTogether) {
  EXPECT_FALSE(MayBeParted({Clusters(2, 1, 1)}));
  EXPECT_FALSE(MayBeParted({Clusters(1, 2, 1)}));
  EXPECT_FALSE(MayBeParted({Clusters(1, 1, 2)}));
  EXPECT_FALSE(MayBeParted({Of(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)}));
}

TEST(LaunchAttributes, WhatOverlapsWithItsNeighboursStaysWhole) {
  EXPECT_FALSE(MayBeParted({Dependent(1)}));
  // The event would come with the first part already.
  EXPECT_FALSE(MayBeParted({Of(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)}));
  EXPECT_FALSE(MayBeParted({Of(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)}));
}

TEST(LaunchAttributes, WhatIsNotKnownStaysWhole) {
  EXPECT_FALSE(MayBeParted({Of(static_cast<CUlaunchAttributeID>(63))}));
}

class SlicedKernelsTest : public testing::Test {
 protected:
  std::shared_ptr<KernelFacts> Kernel(std::shared_ptr<ModuleCode> code) const {
    auto kernel = std::make_shared<KernelFacts>();
    kernel->name = "add";
    kernel->code = std::move(code);
    return kernel;
  }

  FakeDriver driver_;
  const DriverTable table_ = driver_.table();
  std::vector<std::string> log_;
  SlicedKernels sliced_{&table_, [this](std::string_view level, const std::string& text) {
                          log_.push_back(std::string(level) + " " + text);
                        }};
};

TEST_F(SlicedKernelsTest, AKernelWithoutPtxRunsWhole) {
  // As cubins have none; and what was linked from several.
  const std::shared_ptr<KernelFacts> kernel = Kernel(std::make_shared<ModuleCode>());
  for (const bool wait : {true, false, true}) EXPECT_EQ(sliced_.Find(kernel, nullptr, /*one_row=*/true, wait), nullptr);
  EXPECT_TRUE(kernel->whole);
  EXPECT_FALSE(sliced_.IsMaking(*kernel, nullptr, /*one_row=*/true)) << "nobody waits for a copy that will not come";
  EXPECT_THAT(log_, ElementsAre("info kernel 'add' runs whole: its module was not loaded from one PTX text"));
  const std::shared_ptr<KernelFacts> without_code = Kernel(nullptr);
  EXPECT_EQ(sliced_.Find(without_code, nullptr, /*one_row=*/true, true), nullptr);
  EXPECT_TRUE(without_code->whole);
}

TEST_F(SlicedKernelsTest, AKernelWhosePtxIsNotUnderstoodRunsWhole) {
  auto code = std::make_shared<ModuleCode>();
  auto text = std::make_shared<std::vector<std::byte>>(5, std::byte{'x'});
  code->text = std::make_shared<cuda_slicing::ModuleText>(cuda_slicing::ModuleText::Bytes(text), /*in_fatbin=*/false);
  const std::shared_ptr<KernelFacts> kernel = Kernel(code);
  EXPECT_EQ(sliced_.Find(kernel, nullptr, /*one_row=*/true, true), nullptr);
  EXPECT_EQ(sliced_.Find(kernel, nullptr, /*one_row=*/true, true), nullptr);
  EXPECT_TRUE(kernel->whole);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0], testing::StartsWith("info kernel 'add' runs whole: its module's PTX is not understood"));
}

}  // namespace
}  // namespace hawser::server::cuda_backend
