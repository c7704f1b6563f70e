// SPDX-License-Identifier: Apache-2.0
#include "tools/install_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "bench/temporary_directory.h"

namespace hawser::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InstallLayoutTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& relative, const std::string& text = "") {
    const std::filesystem::path path = std::filesystem::path(directory_.path()) / relative;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  bench::TemporaryDirectory directory_;
};

TEST_F(InstallLayoutTest, FindsABuildTree) {
  const std::string library = Make("interposer/opencl/libhawser_opencl.so");
  Make("icd/hawser.icd", library + "\n");
  const std::string hawserd = Make("server/hawserd");
  const std::string worker = Make("bench/hawser-bench-opencl");
  const InstallLayout layout = FindInstallLayout(Make("tools/hawser"));
  EXPECT_EQ(layout.icd_directory, directory_.path() + "/icd");
  EXPECT_EQ(layout.client_library, library);
  EXPECT_EQ(layout.hawserd, hawserd);
  EXPECT_EQ(layout.bench_worker, worker);
  EXPECT_TRUE(CheckGuestSide(layout).ok());
}

TEST_F(InstallLayoutTest, FindsAnInstallation) {
  const std::string library = Make("lib/libhawser_opencl.so");
  Make("share/hawser/icd/hawser.icd", library);
  const std::string hawserd = Make("bin/hawserd");
  const std::string worker = Make("libexec/hawser/hawser-bench-opencl");
  const InstallLayout layout = FindInstallLayout(Make("bin/hawser"));
  EXPECT_EQ(layout.icd_directory, directory_.path() + "/share/hawser/icd");
  EXPECT_EQ(layout.client_library, library);
  EXPECT_EQ(layout.hawserd, hawserd);
  EXPECT_EQ(layout.bench_worker, worker);
}

TEST_F(InstallLayoutTest, FindsTheCudaLibraries) {
  Make("guest/libhawser_preload.so");
  Make("soft/libcuda.so.1");
  const InstallLayout built = FindInstallLayout(Make("tools/hawser"));
  EXPECT_EQ(built.cuda_guest_directory, directory_.path() + "/guest");
  EXPECT_EQ(built.cuda_soft_directory, directory_.path() + "/soft");
  EXPECT_TRUE(CheckSoftDevice(built).ok());
}

TEST_F(InstallLayoutTest, FindsTheCudaLibrariesBesideTheInstalledClientLibrary) {
  const std::string library = Make("lib/arch/libhawser_opencl.so");
  Make("share/hawser/icd/hawser.icd", library);
  Make("lib/arch/hawser/guest/libhawser_preload.so");
  Make("lib/arch/hawser/soft/libcuda.so.1");
  const InstallLayout layout = FindInstallLayout(Make("bin/hawser"));
  EXPECT_EQ(layout.cuda_guest_directory, directory_.path() + "/lib/arch/hawser/guest");
  EXPECT_EQ(layout.cuda_soft_directory, directory_.path() + "/lib/arch/hawser/soft");
}

TEST_F(InstallLayoutTest, SaysWhenTheSoftwareDeviceIsMissing) {
  Make("guest/libhawser_preload.so");
  EXPECT_THAT(CheckSoftDevice(FindInstallLayout(Make("tools/hawser"))).text(), HasSubstr("soft/libcuda.so.1"));
}

TEST_F(InstallLayoutTest, SaysWhenThePlatformFileIsMissing) {
  const InstallLayout layout = FindInstallLayout(Make("tools/hawser"));
  EXPECT_THAT(layout.icd_directory, IsEmpty());
  EXPECT_THAT(CheckGuestSide(layout).text(), HasSubstr("./hawser build"));
}

TEST_F(InstallLayoutTest, SaysWhichLibraryIsMissing) {
  Make("icd/hawser.icd", "/nowhere/libhawser_opencl.so\n");
  const InstallLayout layout = FindInstallLayout(Make("tools/hawser"));
  EXPECT_THAT(layout.client_library, IsEmpty());
  EXPECT_THAT(CheckGuestSide(layout).text(), HasSubstr("'/nowhere/libhawser_opencl.so'"));
}

}  // namespace
}  // namespace hawser::tools
