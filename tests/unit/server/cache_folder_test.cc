// SPDX-License-Identifier: Apache-2.0
#include "server/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace hawser::server {
namespace {

class CacheFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hawser-caches-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static mode_t ModeOf(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  std::string folder_;
};

TEST_F(CacheFolderTest, TheDefaultIsTheUsersOrTheSystems) {
  EXPECT_EQ(DefaultCache("images", 1000, "/a/cache", "/home/u"), "/a/cache/hawser/images");
  EXPECT_EQ(DefaultCache("images", 1000, nullptr, "/home/u"), "/home/u/.cache/hawser/images");
  EXPECT_EQ(DefaultCache("images", 1000, "", "/home/u"), "/home/u/.cache/hawser/images");
  EXPECT_EQ(DefaultCache("images", 1000, "relative", "/home/u"), "/home/u/.cache/hawser/images");
  EXPECT_EQ(DefaultCache("images", 0, nullptr, "/root"), "/var/cache/hawser/images");
  EXPECT_EQ(DefaultCache("images", 1000, nullptr, nullptr), "");
  EXPECT_EQ(DefaultCache("images", 1000, nullptr, ""), "");
}

TEST_F(CacheFolderTest, IsMadeForItsOwnerAlone) {
  const std::string wanted = folder_ + "/hawser/images";
  ASSERT_TRUE(MakeCache(wanted, ::geteuid(), ::getegid()).ok());
  EXPECT_EQ(ModeOf(wanted), 0700u);
  EXPECT_TRUE(MakeCache(wanted, ::geteuid(), ::getegid()).ok()) << "it is there already";
}

TEST_F(CacheFolderTest, WhatIsInTheWayIsNamed) {
  std::ofstream(folder_ + "/file") << "no folder";
  EXPECT_NE(MakeCache(folder_ + "/file", ::geteuid(), ::getegid()).text().find("/file"), std::string::npos);
  EXPECT_FALSE(MakeCache(folder_ + "/file/images", ::geteuid(), ::getegid()).ok());
}

TEST_F(CacheFolderTest, BelongsToTheWorkersUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  const std::string wanted = folder_ + "/images";
  ASSERT_TRUE(MakeCache(wanted, 65534, 65534).ok());
  struct stat info {};
  ASSERT_EQ(::stat(wanted.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534u);
  EXPECT_TRUE(MakeCache(wanted, 65534, 65534).ok());
  EXPECT_FALSE(MakeCache(wanted, 65533, 65533).ok()) << "another's";
}

TEST_F(CacheFolderTest, ComplainsOnce) {
  std::vector<std::string> said;
  CacheFolder cache("modules are not kept on disk", [&](const std::string& text) { said.push_back(text); });
  EXPECT_EQ(cache.Use("", ::geteuid(), ::getegid()), "");
  EXPECT_TRUE(said.empty()) << "none is wanted";
  std::ofstream(folder_ + "/file") << "no folder";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cache.Use(folder_ + "/file/images", ::geteuid(), ::getegid()), "");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("modules are not kept on disk: "), std::string::npos);
  // A configuration that was read again may name another.
  EXPECT_EQ(cache.Use(folder_ + "/images", ::geteuid(), ::getegid()), folder_ + "/images");
  EXPECT_EQ(said.size(), 1u);
}

}  // namespace
}  // namespace hawser::server
