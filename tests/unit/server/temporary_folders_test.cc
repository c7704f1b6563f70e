// SPDX-License-Identifier: Apache-2.0
#include "server/temporary_folders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "server/remove_tree.h"

namespace hawser::server {
namespace {

namespace fs = std::filesystem;

class TemporaryFoldersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hawser-temporaries-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    base_ = folder;
    Begin();
  }
  void TearDown() override {
    folders_.reset();
    const wire::Fd base = OpenToEmpty(AT_FDCWD, base_.c_str());
    EXPECT_TRUE(EmptyFolder(base.get(), [] { return false; }).ok());
    ::rmdir(base_.c_str());
  }
  void Begin() {
    folders_.reset();  // The one before has removed what it was to remove.
    // However busy the machine is.
    folders_.emplace(
        base_, [this](const std::string& text) { complaints_.push_back(text); }, std::chrono::minutes(10),
        std::chrono::minutes(10));
  }
  TemporaryFolder Make() { return folders_->Make(::geteuid(), ::getegid()); }
  size_t Left() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(base_), fs::directory_iterator()));
  }

  std::string base_;
  std::vector<std::string> complaints_;
  std::optional<TemporaryFolders> folders_;
};

TEST_F(TemporaryFoldersTest, EachIsItsOwnersAlone) {
  const TemporaryFolder one = Make(), other = Make();
  EXPECT_NE(one.path, other.path);
  struct stat info {};
  ASSERT_EQ(::stat(one.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_EQ(info.st_uid, ::geteuid());
}

TEST_F(TemporaryFoldersTest, BelongsToTheWorkersUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  const TemporaryFolder folder = folders_->Make(65534, 65534);
  struct stat info {};
  ASSERT_EQ(::stat(folder.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534u);
  EXPECT_EQ(info.st_gid, 65534u);
}

TEST_F(TemporaryFoldersTest, ADiscardedOneGoesWithAllThatIsInIt) {
  TemporaryFolder folder = Make();
  const TemporaryFolder kept = Make();
  fs::create_directories(folder.path + "/a/b");
  fs::create_directories(folder.path + "/a/empty");
  std::ofstream(folder.path + "/a/b/file") << "text";
  std::ofstream(folder.path + "/moved-0") << "a name that what is moved could get";
  fs::create_directories(folder.path + "/moved-1/moved-2/moved-1");
  ASSERT_EQ(::mkfifo((folder.path + "/a/pipe").c_str(), 0600), 0);
  folders_->Discard(std::move(folder));
  Begin();
  EXPECT_EQ(complaints_, std::vector<std::string>());
  EXPECT_EQ(Left(), 1u);
  EXPECT_TRUE(fs::exists(kept.path));
}

TEST_F(TemporaryFoldersTest, LinksAreNotFollowed) {
  fs::create_directories(base_ + "/mine");
  std::ofstream(base_ + "/mine/file") << "text";
  ASSERT_EQ(::chmod((base_ + "/mine").c_str(), 0750), 0);
  TemporaryFolder folder = Make();
  fs::create_directory_symlink(base_ + "/mine", folder.path + "/link");
  fs::create_directories(folder.path + "/a");
  fs::create_directory_symlink(base_ + "/mine", folder.path + "/a/link");
  folders_->Discard(std::move(folder));
  Begin();
  EXPECT_EQ(Left(), 1u);
  EXPECT_TRUE(fs::exists(base_ + "/mine/file"));
  struct stat info {};
  ASSERT_EQ(::stat((base_ + "/mine").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
}

TEST_F(TemporaryFoldersTest, ShutFoldersAreOpened) {
  TemporaryFolder folder = Make();
  fs::create_directories(folder.path + "/a/b/c");
  for (const char* shut : {"/a/b/c", "/a/b", "/a", ""}) ASSERT_EQ(::chmod((folder.path + shut).c_str(), 0), 0);
  folders_->Discard(std::move(folder));
  Begin();
  EXPECT_EQ(complaints_, std::vector<std::string>());
  EXPECT_EQ(Left(), 0u);
}

// Deeper than a path is long, and than there are descriptors.
TEST_F(TemporaryFoldersTest, DepthDoesNotMatter) {
  TemporaryFolder folder = Make();
  wire::Fd at(::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 5000; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), "a-rather-long-name", 0700), 0) << depth;
    at = wire::Fd(::openat(at.get(), "a-rather-long-name", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid()) << depth;
  }
  folders_->Discard(std::move(folder));
  Begin();
  EXPECT_EQ(complaints_, std::vector<std::string>());
  EXPECT_EQ(Left(), 0u);
}

TEST_F(TemporaryFoldersTest, RemovingEndsWhenItIsTold) {
  TemporaryFolder folder = Make();
  for (int i = 0; i < 10; ++i) std::ofstream(folder.path + "/" + std::to_string(i)) << i;
  int asked = 0;
  EXPECT_FALSE(EmptyFolder(folder.lock.get(), [&] { return ++asked > 5; }).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 5);
}

TEST_F(TemporaryFoldersTest, WhatIsLeftBehindGoesNextTime) {
  const TemporaryFolder used = Make();
  TemporaryFolder stale = Make();
  std::ofstream(stale.path + "/file") << "text";
  ASSERT_EQ(::chmod(stale.path.c_str(), 0), 0);
  stale.lock.Reset();
  fs::create_directories(base_ + "/of-somebody-else");
  folders_->DiscardStale(::geteuid());
  Begin();
  EXPECT_FALSE(fs::exists(stale.path));
  EXPECT_TRUE(fs::exists(used.path));
  EXPECT_TRUE(fs::exists(base_ + "/of-somebody-else"));
}

TEST_F(TemporaryFoldersTest, WhereNoneCanBeMadeThatIsSaidOnce) {
  folders_.emplace(base_ + "/missing", [this](const std::string& text) { complaints_.push_back(text); });
  EXPECT_EQ(Make().path, "");
  EXPECT_EQ(Make().path, "");
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_NE(complaints_[0].find(base_ + "/missing"), std::string::npos) << complaints_[0];
  folders_->Discard({});
}

}  // namespace
}  // namespace hawser::server
