// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by the tests are cached in a folder of their own, which is gone afterwards.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  std::string folder = (std::filesystem::temp_directory_path() / "hawser-kernels-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  ::setenv("POCL_CACHE_DIR", folder.c_str(), 1);
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}
