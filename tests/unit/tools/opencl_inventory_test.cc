// SPDX-License-Identifier: Apache-2.0
#include "tools/opencl_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hawser::tools {
namespace {

using ::testing::HasSubstr;

std::vector<PlatformEntry> Sample() {
  return {{"A platform",
           "a vendor",
           "OpenCL 3.0 x",
           {{"a device", "GPU", "OpenCL 3.0 y", "1.2.3", 16, 1500, uint64_t{8} << 30}}},
          {"Empty", "nobody", "OpenCL 1.2", {}}};
}

TEST(InventoryText, NamesPlatformsAndDevices) {
  EXPECT_EQ(InventoryText(Sample()),
            "Platform 0: A platform (OpenCL 3.0 x)\n"
            "  Device 0: a device\n"
            "    GPU, 16 compute units, 1500 MHz, 8.0 GiB, driver 1.2.3\n"
            "Platform 1: Empty (OpenCL 1.2)\n"
            "  no devices\n");
}

TEST(InventoryJson, HasTheSameFacts) {
  const auto json = InventoryJson(Sample());
  EXPECT_EQ(json.at("platforms").size(), 2u);
  EXPECT_EQ(json.at("platforms").at(0).at("devices").at(0).at("memory_bytes"), uint64_t{8} << 30);
}

TEST(ListPlatforms, WithoutAnyPlatformIsAnEmptyList) {
  // The loader reads its directory once per process, so this is the only test here that asks it.
  setenv("OCL_ICD_VENDORS", "/nonexistent-directory/", 1);
  auto platforms = ListPlatforms();
  ASSERT_TRUE(platforms.ok()) << platforms.status().text();
  EXPECT_TRUE(platforms->empty());
}

}  // namespace
}  // namespace hawser::tools
