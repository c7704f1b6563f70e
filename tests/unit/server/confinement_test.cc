// SPDX-License-Identifier: Apache-2.0
#include "server/worker/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "server/worker/sandbox.h"
#include "tests/support/in_child.h"

namespace hawser::server {
namespace {

using test::InChild;

int ErrorOfOpening(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

class ConfinementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LandlockVersion() == 0) GTEST_SKIP() << "this kernel has no Landlock";
    char folder[] = "/tmp/hawser-confined-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    for (const char* name : {"/one", "/other"}) std::filesystem::create_directory(folder_ + name);
    std::ofstream(folder_ + "/other/file") << "theirs";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string folder_;
};

TEST_F(ConfinementTest, OnlyWhatIsBelowItsPlacesChanges) {
  const int result = InChild([&] {
    auto confined = Confine({{"/dev/null"}, {folder_ + "/one", folder_ + "/missing"}});
    if (!confined.ok() || !*confined) return 1;
    const std::string theirs = folder_ + "/other/file", own = folder_ + "/one/file";
    if (ErrorOfOpening(theirs, O_WRONLY) != EACCES) return 2;
    if (ErrorOfOpening(folder_ + "/other/new", O_WRONLY | O_CREAT) != EACCES) return 3;
    if (::unlink(theirs.c_str()) == 0 || errno != EACCES) return 4;
    if (ErrorOfOpening(theirs, O_RDONLY) != 0) return 5;
    if (ErrorOfOpening(own, O_WRONLY | O_CREAT) != 0 || ErrorOfOpening(own, O_WRONLY | O_TRUNC) != 0) return 6;
    if (::mkdir((folder_ + "/one/deep").c_str(), 0700) != 0) return 7;
    if (::rename(own.c_str(), (folder_ + "/one/deep/file").c_str()) != 0 && LandlockVersion() >= 2) return 8;
    if (::rename((folder_ + "/one/deep").c_str(), (folder_ + "/other/deep").c_str()) == 0) return 9;
    if (ErrorOfOpening("/dev/null", O_WRONLY | O_TRUNC) != 0) return 10;
    if (ErrorOfOpening("/dev/zero", O_WRONLY) != EACCES) return 11;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(ConfinementTest, OthersOfTheSameUserAreOutOfReach) {
  const std::string parent = "/proc/" + std::to_string(::getpid());
  const int result = InChild([&] {
    if (ErrorOfOpening(parent + "/environ", O_RDONLY) != 0) return 1;
    // With root's capabilities some kernels let it read on.
    if (!DropPrivileges({}).ok()) return 8;
    auto confined = Confine({});
    if (!confined.ok() || !*confined) return 2;
    if (ErrorOfOpening(parent + "/environ", O_RDONLY) != EACCES) return 3;
    if (ErrorOfOpening(parent + "/mem", O_RDWR) != EACCES) return 4;
    char target[16];
    if (::readlink((parent + "/fd/0").c_str(), target, sizeof(target)) >= 0) return 5;
    if (LandlockVersion() >= 6 && (::kill(::getppid(), 0) == 0 || errno != EPERM)) return 6;
    // What it starts is its own, and as confined.
    return InChild([&] { return ErrorOfOpening(parent + "/mem", O_RDWR) == EACCES ? 0 : 7; });
  });
  EXPECT_EQ(result, 0);
}

TEST_F(ConfinementTest, ItsThreadsCanBeNamedAlsoAfterAChangeOfTheUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change its user";
  const int result = InChild([] {
    WorkerSettings settings;
    settings.server_pid = ::getppid();
    settings.run_as_uid = settings.run_as_gid = 65534;
    if (!DropPrivileges(settings).ok()) return 1;
    auto confined = Confine(PlacesOf(settings));
    if (!confined.ok() || !*confined) return 2;
    return ErrorOfOpening("/proc/self/task/" + std::to_string(::getpid()) + "/comm", O_WRONLY) == 0 ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
}

TEST_F(ConfinementTest, PlacesAreTheSessionsOwn) {
  const int result = InChild([&] {
    ::setenv("TMPDIR", (folder_ + "/temporary").c_str(), 1);
    for (const char* name : {"POCL_CACHE_DIR", "CUDA_CACHE_PATH", "HAWSER_OPENCL_SPLIT_HISTORY"}) ::unsetenv(name);
    ::setenv("HOME", (folder_ + "/home").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (folder_ + "/drivers/mine").c_str(), 1);
    ::setenv("HAWSER_CUDA_SPLIT_HISTORY", (folder_ + "/speeds/mine").c_str(), 1);
    WorkerSettings settings;
    settings.api = wire::Api::kCuda;
    settings.tenant = "mine";
    settings.cuda_cache = folder_ + "/images";
    settings.writable = "/more:/and/more:";
    const WritablePlaces places = PlacesOf(settings);
    const auto has = [&](const std::string& folder) {
      return std::find(places.folders.begin(), places.folders.end(), folder) != places.folders.end();
    };
    const std::string modules = folder_ + "/images/" + TenantFolderName("mine");
    for (const std::string& folder : {folder_ + "/drivers/mine", modules, folder_ + "/speeds", folder_ + "/temporary",
                                      std::string("/more"), std::string("/and/more")}) {
      if (!has(folder)) return 1;
    }
    if (places.folders.size() != 7) return 2;  // And /dev/shm.
    ::unsetenv("TMPDIR");
    if (PlacesOf(settings).folders.size() != 6) return 5;  // Not everybody's instead.
    if (has(folder_ + "/images") || has(folder_ + "/home/.cache") || has("")) return 3;
    struct stat info {};
    if (::stat(modules.c_str(), &info) != 0 || (info.st_mode & 07777) != 0700) return 4;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(Confinement, NotWhereTheDriverSharesThroughProc) {
  WorkerSettings settings;
  EXPECT_TRUE(CanBeConfined(settings));
  settings.api = wire::Api::kCuda;
  settings.cuda_device = CudaDevice::kSoft;
  EXPECT_FALSE(CanBeConfined(settings));
  settings.run_as_uid = 65534;
  EXPECT_TRUE(CanBeConfined(settings)) << "it cannot share as another user in any case";
}

}  // namespace
}  // namespace hawser::server
