// SPDX-License-Identifier: Apache-2.0
#include "proto/facts/host_object.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/support/object_file.h"

namespace hawser::fatbin {
namespace {

using hawser::object_file::FileBytes;
using hawser::object_file::MakeArchive;
using hawser::object_file::MakeFatbin;
using hawser::object_file::MakeObject;

constexpr char kText[] = ".version 8.0\n.target sm_75\n.address_size 64\n";

bool Same(std::span<const std::byte> a, const FileBytes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string Why(const FileBytes& file) {
  const auto found = FindFatbins(file);
  return found.ok() ? "found " + std::to_string(found.value().size()) : std::string(found.status().text());
}

TEST(FindFatbins, OfAnObjectFile) {
  const FileBytes fatbin = MakeFatbin(kText);
  for (const char* section : {".nv_fatbin", "__nv_relfatbin"}) {
    const FileBytes file = MakeObject(section, fatbin);
    const auto found = FindFatbins(file);
    ASSERT_TRUE(found.ok()) << found.status().text();
    ASSERT_EQ(found.value().size(), 1u);
    EXPECT_TRUE(Same(found.value()[0], fatbin));
  }
  EXPECT_EQ(Why(MakeObject(".text", fatbin)), "it holds no device code");
}

TEST(FindFatbins, SeveralInOneSection) {
  const FileBytes first = MakeFatbin(kText);
  const FileBytes second = MakeFatbin(std::string(kText) + "// another\n");
  FileBytes both = first;
  both.resize(both.size() + 24);  // As the linker aligns them.
  object_file::AppendBytes(&both, second);
  both.resize(both.size() + 8);
  const FileBytes file = MakeObject(".nv_fatbin", both);
  const auto found = FindFatbins(file);
  ASSERT_TRUE(found.ok()) << found.status().text();
  ASSERT_EQ(found.value().size(), 2u);
  EXPECT_TRUE(Same(found.value()[0], first));
  EXPECT_TRUE(Same(found.value()[1], second));
}

TEST(FindFatbins, OfAnArchive) {
  const FileBytes first = MakeFatbin(kText);
  const FileBytes second = MakeFatbin(std::string(kText) + "// 1");
  FileBytes odd = MakeObject(".text", FileBytes(3));
  odd.push_back(std::byte{0});  // Of odd length: the next member begins one byte later.
  const FileBytes file =
      MakeArchive({MakeObject("__nv_relfatbin", first), odd, FileBytes(7), MakeObject("__nv_relfatbin", second)});
  const auto found = FindFatbins(file);
  ASSERT_TRUE(found.ok()) << found.status().text();
  ASSERT_EQ(found.value().size(), 2u);
  EXPECT_TRUE(Same(found.value()[0], first));
  EXPECT_TRUE(Same(found.value()[1], second));
  EXPECT_EQ(Why(MakeArchive({})), "it holds no device code");
}

TEST(FindFatbins, SaysWhatIsWrong) {
  EXPECT_EQ(Why({}), "it is neither an object file nor an archive");
  EXPECT_EQ(Why(FileBytes(100)), "it is neither an object file nor an archive");
  FileBytes zero(32);
  zero[9] = std::byte{1};
  EXPECT_EQ(Why(MakeObject(".nv_fatbin", zero)), "the object file is damaged: what is in its section is no fatbin");
  FileBytes archive = MakeArchive({MakeObject("__nv_relfatbin", MakeFatbin(kText))});
  archive.pop_back();
  EXPECT_EQ(Why(archive), "the archive is damaged");
}

TEST(FindFatbins, ReachesNoFurtherThanTheFile) {
  const FileBytes whole = MakeArchive({MakeObject("__nv_relfatbin", MakeFatbin(kText))});
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own, so that a sanitizer sees what lies behind it.
    const FileBytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(FindFatbins(cut).ok()) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    FileBytes changed = whole;
    changed[at] ^= std::byte{0xff};
    const auto found = FindFatbins(changed);
    if (!found.ok()) continue;
    for (const auto& fatbin : found.value()) {
      EXPECT_GE(fatbin.data(), changed.data());
      EXPECT_LE(fatbin.data() + fatbin.size(), changed.data() + changed.size()) << at;
    }
  }
}

}  // namespace
}  // namespace hawser::fatbin
