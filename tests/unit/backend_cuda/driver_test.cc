// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "server/backends/cuda/driver_choice.h"
#include "tests/unit/backend_cuda/fake_driver.h"

namespace hawser::server::cuda_backend {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

TEST(LoadDriver, SaysWhyALibraryIsNoDriver) {
  const Result<LoadedDriver> absent = LoadDriver("/nowhere/libcuda.so.1");
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.status().text().find("/nowhere/libcuda.so.1"), std::string::npos);
  // A library that is there and has none of the functions.
  const Result<LoadedDriver> other = LoadDriver("libc.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().text().find("lacks"), std::string::npos) << other.status().text();
  EXPECT_NE(other.status().text().find("cuMemAlloc_v2"), std::string::npos) << "exact names: " << other.status().text();
}

/// Places for the software device, and what loading each library gives.
class ChooseDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hawser-drivers-XXXXXX";
    folder_ = ::mkdtemp(name);
    soft_ = folder_ + "/libcuda.so.1";
    std::ofstream(soft_) << "only its presence counts";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<ChosenDriver> Choose(CudaDevice device, const std::string& driver = "") {
    WorkerSettings settings;
    settings.cuda_device = device;
    settings.cuda_driver = driver;
    return ChooseDriver(settings, {soft_}, [&](const std::string& library) -> Result<LoadedDriver> {
      asked_.push_back(library);
      const auto at = libraries_.find(library);
      if (at == libraries_.end()) return Status(Code::kInvalid, "there is no " + library);
      LoadedDriver loaded;
      loaded.table = fake_.table();
      loaded.path = library;
      loaded.version = 13000;
      if (at->second == "no device") {
        loaded.table.cuInit = [](unsigned) { return CUDA_ERROR_NO_DEVICE; };
      } else if (at->second == "zero") {
        loaded.table.cuDeviceGetCount = [](int* count) {
          *count = 0;
          return CUDA_SUCCESS;
        };
      }
      return loaded;
    });
  }

  FakeDriver fake_;
  std::string folder_, soft_;
  std::map<std::string, std::string> libraries_;
  std::vector<std::string> asked_;
};

TEST_F(ChooseDriverTest, AutoTakesNvidiasWhereItWorks) {
  libraries_ = {{"libcuda.so.1", ""}, {soft_, ""}};
  const Result<ChosenDriver> chosen = Choose(CudaDevice::kAuto);
  ASSERT_TRUE(chosen.ok()) << chosen.status().text();
  EXPECT_FALSE(chosen.value().soft);
  EXPECT_EQ(asked_, std::vector<std::string>{"libcuda.so.1"}) << "the software device is not even loaded";
  EXPECT_EQ(chosen.value().summary, "Fake, driver 13.0");
}

TEST_F(ChooseDriverTest, AutoTakesTheSoftwareDeviceOtherwiseAndSaysWhy) {
  libraries_ = {{"libcuda.so.1", "no device"}, {soft_, ""}};
  Result<ChosenDriver> chosen = Choose(CudaDevice::kAuto);
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(chosen->soft);
  EXPECT_NE(chosen->why.find("cuInit"), std::string::npos) << chosen->why;
  libraries_ = {{"libcuda.so.1", "zero"}, {soft_, ""}};
  chosen = Choose(CudaDevice::kAuto);
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(chosen->soft);
  libraries_ = {{soft_, ""}};
  chosen = Choose(CudaDevice::kAuto);
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(chosen->soft);
}

TEST_F(ChooseDriverTest, WhatIsNamedIsNotReplacedByAnother) {
  libraries_ = {{soft_, ""}};
  EXPECT_FALSE(Choose(CudaDevice::kNvidia).ok());
  libraries_ = {{"libcuda.so.1", ""}};
  EXPECT_FALSE(Choose(CudaDevice::kSoft).ok());
  libraries_ = {{"libcuda.so.1", ""}, {soft_, ""}};
  asked_.clear();
  ASSERT_TRUE(Choose(CudaDevice::kSoft).ok());
  EXPECT_EQ(asked_, std::vector<std::string>{soft_}) << "NVIDIA's is not even loaded";
}

TEST_F(ChooseDriverTest, APathWinsOverTheDevice) {
  libraries_ = {{"/opt/libcuda.so.1", ""}, {soft_, ""}};
  Result<ChosenDriver> chosen = Choose(CudaDevice::kSoft, "/opt/libcuda.so.1");
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->driver.path, "/opt/libcuda.so.1");
  EXPECT_FALSE(chosen->soft);
  chosen = Choose(CudaDevice::kAuto, soft_);
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(chosen->soft) << "it is the software device, however it was named";
}

TEST_F(ChooseDriverTest, WithoutAnyDriverBothReasonsAreTold) {
  libraries_ = {{"libcuda.so.1", "no device"}};
  const Result<ChosenDriver> chosen = Choose(CudaDevice::kAuto);
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.status().text().find("cuInit"), std::string::npos);
  EXPECT_NE(chosen.status().text().find(soft_), std::string::npos);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
