// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "interposer/opencl/extension_filter.h"
#include "interposer/opencl/objects.h"

namespace hawser::ocl {
namespace {

TEST(ExtensionFilter, KeepsLanguageFeaturesAndDropsHostFunctions) {
  EXPECT_TRUE(ExtensionWorksRemotely("cl_khr_fp64"));
  EXPECT_TRUE(ExtensionWorksRemotely("cl_khr_icd"));
  EXPECT_TRUE(ExtensionWorksRemotely("cl_khr_subgroup_shuffle"));
  EXPECT_FALSE(ExtensionWorksRemotely("cl_khr_command_buffer"));
  EXPECT_FALSE(ExtensionWorksRemotely("cl_khr_gl_sharing"));
  EXPECT_FALSE(ExtensionWorksRemotely("cl_intel_unified_shared_memory"));
  EXPECT_FALSE(ExtensionWorksRemotely("cl_pocl_content_size"));
  EXPECT_FALSE(ExtensionWorksRemotely(""));
  EXPECT_FALSE(ExtensionWorksRemotely("cl_khr_fp6"));
  EXPECT_FALSE(ExtensionWorksRemotely("cl_khr_fp640"));
}

TEST(ExtensionFilter, KeepsOrderAndBlanks) {
  EXPECT_EQ(FilterExtensionList("cl_khr_icd  cl_khr_command_buffer cl_khr_fp64   cl_khr_spir"),
            "cl_khr_icd cl_khr_fp64   cl_khr_spir");
  EXPECT_EQ(FilterExtensionList("cl_khr_command_buffer cl_khr_fp64 "), "cl_khr_fp64");
  EXPECT_EQ(FilterExtensionList(" "), "");
  EXPECT_EQ(FilterExtensionList(""), "");
}

TEST(ExtensionFilter, AListThatLosesNothingIsUnchanged) {
  const char* list = "cl_khr_byte_addressable_store cl_khr_global_int32_base_atomics   cl_khr_fp64";
  EXPECT_EQ(FilterExtensionList(list), list);
}

TEST(ExtensionFilter, VersionsAgreeWithTheList) {
  cl_name_version entries[3] = {};
  std::strcpy(entries[0].name, "cl_khr_command_buffer");
  std::strcpy(entries[1].name, "cl_khr_fp64");
  entries[1].version = CL_MAKE_VERSION(1, 0, 0);
  std::memset(entries[2].name, 'x', sizeof(entries[2].name));  // No final 0.
  const auto kept = FilterExtensionVersions(std::as_bytes(std::span(entries)));
  ASSERT_EQ(kept.size(), sizeof(cl_name_version));
  EXPECT_EQ(std::memcmp(kept.data(), &entries[1], sizeof(cl_name_version)), 0);
}

TEST(ExtensionFilter, VersionsOfOddLengthGiveNone) {
  const std::vector<std::byte> odd(sizeof(cl_name_version) + 1);
  EXPECT_TRUE(FilterExtensionVersions(odd).empty());
  EXPECT_TRUE(FilterExtensionVersions({}).empty());
}

TEST(ExtensionFilter, FindsWholeNames) {
  EXPECT_TRUE(HasExtension("cl_khr_a cl_khr_b", "cl_khr_b"));
  EXPECT_FALSE(HasExtension("cl_khr_ab", "cl_khr_a"));
  EXPECT_FALSE(HasExtension("", "cl_khr_a"));
}

}  // namespace
}  // namespace hawser::ocl
