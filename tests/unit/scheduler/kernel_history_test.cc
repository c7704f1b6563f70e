// SPDX-License-Identifier: Apache-2.0

#include "scheduler/core/kernel_history.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hawser::scheduler {
namespace {

KernelKey Key(const std::string& kernel) { return KernelKey::Of("device", ProgramHash("source", "options"), kernel); }

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/hawser-history-XXXXXX";
    if (::mkdtemp(name) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string File() const { return path_ + "/history"; }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::string path_;
};

TEST(KernelKey, EveryPartCounts) {
  EXPECT_NE(Key("a"), Key("b"));
  EXPECT_EQ(Key("a"), Key("a"));
  EXPECT_NE(KernelKey::Of("d", "e", "f"), KernelKey::Of("de", "", "f"));
  EXPECT_NE(ProgramHash("ab", "c"), ProgramHash("a", "bc"));
}

TEST(KernelHistory, FollowsTheNewest) {
  KernelHistory history;
  EXPECT_EQ(history.Rate(Key("k")), 0);
  history.Learn(Key("k"), 0, 5);
  history.Learn(Key("k"), 5, 0);
  EXPECT_EQ(history.Rate(Key("k")), 0);
  history.Learn(Key("k"), 1000, 100);
  EXPECT_DOUBLE_EQ(history.Rate(Key("k")), 10);
  history.Learn(Key("k"), 2000, 100);
  EXPECT_DOUBLE_EQ(history.Rate(Key("k")), 13);
  for (int i = 0; i < 40; ++i) history.Learn(Key("k"), 2000, 100);
  EXPECT_NEAR(history.Rate(Key("k")), 20, 0.001);
}

TEST(KernelHistory, Estimates) {
  KernelHistory history;
  EXPECT_FALSE(history.Estimate(Key("k"), 50).has_value());
  history.Learn(Key("k"), 1000, 2'000'000);
  EXPECT_EQ(history.Estimate(Key("k"), 50), 100'000u);
  history.Learn(Key("third"), 3, 1000);
  EXPECT_EQ(history.Estimate(Key("third"), 1), 334u) << "a part must not be taken for shorter than it is";
  EXPECT_EQ(history.Estimate(Key("k"), UINT64_MAX), 1'000'000'000'000'000'000u);
}

TEST(KernelHistory, ForgetsWhatWasUsedLongestAgo) {
  KernelHistory history(3);
  for (const char* name : {"a", "b", "c"}) history.Learn(Key(name), 10, 1);
  EXPECT_GT(history.Rate(Key("a")), 0);
  history.Learn(Key("d"), 10, 1);
  EXPECT_EQ(history.size(), 3u);
  EXPECT_EQ(history.Rate(Key("b")), 0);
  EXPECT_GT(history.Rate(Key("a")), 0);
}

TEST(KernelHistory, KeptInAFile) {
  const Folder folder;
  KernelHistory first;
  EXPECT_TRUE(first.Load(folder.File()).ok());  // None yet.
  for (int i = 0; i < 100; ++i) first.Learn(Key(std::to_string(i)), 100 + i, 10);
  EXPECT_TRUE(first.changed());
  ASSERT_TRUE(first.Save(folder.File()).ok());
  EXPECT_FALSE(first.changed());
  EXPECT_EQ(folder.files(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(folder.File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  KernelHistory second;
  second.Learn(Key("7"), 5, 1);
  ASSERT_TRUE(second.Load(folder.File()).ok());
  EXPECT_EQ(second.size(), 100u);
  EXPECT_DOUBLE_EQ(second.Rate(Key("50")), 15);
  EXPECT_DOUBLE_EQ(second.Rate(Key("7")), 5);  // What was learnt here is newer.
  KernelHistory small(10);
  ASSERT_TRUE(small.Load(folder.File()).ok());
  EXPECT_EQ(small.size(), 10u);
  EXPECT_GT(small.Rate(Key("99")), 0);
}

TEST(KernelHistory, DamagedFilesAreNotUsed) {
  KernelHistory history;
  history.Learn(Key("k"), 100, 10);
  const std::string good = history.Encode();
  for (size_t size = 0; size < good.size(); ++size) {
    KernelHistory other;
    EXPECT_FALSE(other.Decode(wire::AsBytes(std::string_view(good).substr(0, size))).ok()) << size;
    EXPECT_EQ(other.size(), 0u);
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    KernelHistory other;
    EXPECT_FALSE(other.Decode(wire::AsBytes(bad)).ok()) << at;
    EXPECT_EQ(other.size(), 0u);
  }
  EXPECT_FALSE(KernelHistory().Decode(wire::AsBytes(good + "x")).ok());
}

TEST(KernelHistory, OddFiles) {
  const Folder folder;
  KernelHistory history;
  ASSERT_EQ(::symlink("/dev/zero", folder.File().c_str()), 0);
  EXPECT_FALSE(history.Load(folder.File()).ok());
  ASSERT_EQ(::unlink(folder.File().c_str()), 0);
  ASSERT_EQ(::mkfifo(folder.File().c_str(), 0600), 0);
  EXPECT_FALSE(history.Load(folder.File()).ok());  // And does not wait.
  history.Learn(Key("k"), 1, 1);
  EXPECT_FALSE(history.Save(folder.File() + "/nowhere/history").ok());
  EXPECT_TRUE(history.Save(folder.File()).ok());
  EXPECT_TRUE(KernelHistory().Load(folder.File()).ok());
}

}  // namespace
}  // namespace hawser::scheduler
