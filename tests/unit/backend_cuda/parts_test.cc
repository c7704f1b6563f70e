// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "memmgr/ledger.h"
#include "server/backends/cuda/address_ranges.h"
#include "server/backends/cuda/disposals.h"
#include "server/backends/cuda/gate.h"
#include "server/backends/cuda/image_choice.h"
#include "server/backends/cuda/image_store.h"
#include "server/backends/cuda/memory_map.h"
#include "server/worker_settings.h"

namespace hawser::server::cuda_backend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// --- MemoryMap

MemoryRange Range(uint64_t address, uint64_t size) {
  MemoryRange range;
  range.address = address;
  range.size = size;
  return range;
}

TEST(MemoryMap, HoldsWhatIsInsideAndNothingElse) {
  MemoryMap map;
  ASSERT_TRUE(map.Add(Range(1000, 100)));
  EXPECT_TRUE(map.Holds(1000, 100));
  EXPECT_TRUE(map.Holds(1099, 1));
  EXPECT_FALSE(map.Holds(999, 1));
  EXPECT_FALSE(map.Holds(1000, 101));
  EXPECT_FALSE(map.Holds(1100, 1));
  EXPECT_FALSE(map.Holds(1050, UINT64_MAX));
  EXPECT_FALSE(map.Holds(UINT64_MAX, 2));
}

TEST(MemoryMap, NeighboursCountAsOneAndGapsDoNot) {
  MemoryMap map;
  ASSERT_TRUE(map.Add(Range(1000, 100)));
  ASSERT_TRUE(map.Add(Range(1100, 100)));
  ASSERT_TRUE(map.Add(Range(1201, 100)));
  EXPECT_TRUE(map.Holds(1050, 150));
  EXPECT_FALSE(map.Holds(1050, 152));
}

TEST(MemoryMap, RefusesWhatOverlapsOrWrapsAround) {
  MemoryMap map;
  ASSERT_TRUE(map.Add(Range(1000, 100)));
  EXPECT_FALSE(map.Add(Range(1099, 10)));
  EXPECT_FALSE(map.Add(Range(990, 11)));
  EXPECT_FALSE(map.Add(Range(1000, 100)));
  EXPECT_FALSE(map.Add(Range(UINT64_MAX - 5, 10)));
  EXPECT_FALSE(map.Add(Range(2000, 0)));
  EXPECT_TRUE(map.Add(Range(990, 10)));
}

TEST(MemoryMap, RegionsAreCheckedToTheirLastRow) {
  MemoryMap map;
  ASSERT_TRUE(map.Add(Range(1000, 100)));
  EXPECT_TRUE(map.HoldsRegion(1000, 10, 10, 10, 1, 0));
  EXPECT_TRUE(map.HoldsRegion(1000, 10, 3, 45, 1, 0));
  EXPECT_FALSE(map.HoldsRegion(1000, 11, 3, 45, 1, 0));
  EXPECT_FALSE(map.HoldsRegion(1000, 1, UINT64_MAX, UINT64_MAX, 1, 0));
  EXPECT_TRUE(map.HoldsRegion(0, 0, 5, 5, 5, 5)) << "nothing is touched";
}

// --- ledger

TEST(Ledger, HoldsTheLimitAndCounts) {
  memmgr::LocalLedger ledger(100);
  EXPECT_TRUE(ledger.Reserve(60));
  EXPECT_FALSE(ledger.Reserve(41));
  EXPECT_TRUE(ledger.Reserve(40));
  ledger.Commit(60);
  ledger.Cancel(40);
  EXPECT_EQ(ledger.counters().held, 60u);
  EXPECT_EQ(ledger.counters().reserved, 0u);
  ledger.Release(60);
  EXPECT_EQ(ledger.counters().held, 0u);
  EXPECT_EQ(ledger.counters().peak, 60u);
  EXPECT_FALSE(ledger.Reserve(UINT64_MAX));
}

TEST(Ledger, ALimitFromOutsideCountsAtOnceAndWhatIsHeldIsShown) {
  std::atomic<uint64_t> limit{0}, shown{0};
  memmgr::LocalLedger ledger(&limit, 100, &shown);
  EXPECT_TRUE(ledger.Reserve(100));
  ledger.Commit(100);
  EXPECT_EQ(shown, 100u);
  EXPECT_FALSE(ledger.Reserve(1)) << "the limit that was given with it";
  limit = 150;
  EXPECT_TRUE(ledger.Reserve(50));
  limit = 50;
  EXPECT_FALSE(ledger.Reserve(1));
  ledger.Release(100);
  EXPECT_EQ(shown, 0u);
}

TEST(Ledger, ManyThreadsNeverTakeMoreThanThereIs) {
  memmgr::LocalLedger ledger(1000);
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        if (ledger.Reserve(1)) ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1000u);
}

TEST(Ledger, WithoutALimitSumsThatWrapAroundAreRefused) {
  memmgr::LocalLedger ledger(0);
  EXPECT_TRUE(ledger.Reserve(UINT64_MAX - 10));
  EXPECT_FALSE(ledger.Reserve(11));
}

// --- Gates

TEST(Gates, OpenByNumberAndByContext) {
  Gates gates;
  int one = 0, two = 0;
  const auto [a, gate_a] = gates.New(&one);
  const auto [b, gate_b] = gates.New(&two);
  EXPECT_TRUE(gates.Open(a));
  gate_a->Wait();
  EXPECT_FALSE(gates.Open(12345));
  std::thread waiter([gate = gate_b] { gate->Wait(); });
  gates.OpenAll(&two);
  waiter.join();
  gates.Forget(a);
  gates.Forget(b);
  EXPECT_EQ(gates.size(), 0u);
}

// --- AddressRanges

TEST(AddressRanges, TellsWhatIsNewAndLarge) {
  const AddressRanges before = AddressRanges::FromMaps(
      "10000000-20000000 r--p 00000000 00:00 0 \n"
      "nonsense\n"
      "7f0000000000-7f0010000000 rw-p 00000000 00:00 0 [heap]\n");
  ASSERT_EQ(before.ranges().size(), 2u);
  const AddressRanges after = AddressRanges::FromMaps(
      "10000000-20000000 r--p 0 00:00 0\n"
      "20000000-20001000 rw-p 0 00:00 0\n"    // Joins the one before: 4 KiB are new.
      "200000000-300000000 ---p 0 00:00 0\n"  // A reservation,
      "300000000-300001000 rw-p 0 00:00 0\n"  // of which a part is in use.
      "7f0000000000-7f0020000000 rw-p 0 00:00 0\n");
  const AddressRanges fresh = after.Without(before);
  ASSERT_EQ(fresh.ranges().size(), 2u);
  EXPECT_EQ(fresh.ranges()[0].begin, 0x200000000u);
  EXPECT_EQ(fresh.ranges()[0].end, 0x300001000u);
  EXPECT_EQ(fresh.ranges()[1].begin, 0x7f0010000000u);
  EXPECT_EQ(fresh.ranges()[1].end, 0x7f0020000000u);
}

// --- which image

OfferedImage Offer(OfferedImage::Kind kind, uint32_t sm, uint64_t flags = 0, uint32_t group = 0) {
  OfferedImage image;
  image.form = OfferedImage::Form::kFatbinEntry;
  image.kind = kind;
  image.sm = sm;
  image.flags = flags;
  image.group = group;
  return image;
}
constexpr auto kPtx = OfferedImage::Kind::kPtx;
constexpr auto kElf = OfferedImage::Kind::kElf;
constexpr auto kLto = OfferedImage::Kind::kLto;

TEST(ImageChoice, TakesTheHighestPtxNotAboveTheDevice) {
  const std::vector<OfferedImage> offered{Offer(kPtx, 75), Offer(kPtx, 90), Offer(kPtx, 120)};
  EXPECT_THAT(ChooseImages(offered, {90, true}), ElementsAre(1));
  EXPECT_THAT(ChooseImages(offered, {89, true}), ElementsAre(0));
  EXPECT_THAT(ChooseImages(offered, {70, true}), IsEmpty());
}

TEST(ImageChoice, PrefersCodeThatIsReadyWhereTheDeviceRunsIt) {
  const std::vector<OfferedImage> offered{Offer(kPtx, 90), Offer(kElf, 86), Offer(kElf, 80), Offer(kElf, 90)};
  EXPECT_THAT(ChooseImages(offered, {90, true}), ElementsAre(3));
  EXPECT_THAT(ChooseImages(offered, {90, false}), ElementsAre(0)) << "the software device runs PTX alone";
  EXPECT_THAT(ChooseImages(offered, {89, true}), ElementsAre(1)) << "the highest of its own family";
  EXPECT_THAT(ChooseImages({Offer(kElf, 80)}, {90, true}), IsEmpty()) << "of another family";
}

TEST(ImageChoice, MachineCodesSourceIsThePtxBesideIt) {
  const auto source = [](const std::vector<OfferedImage>& offered) {
    constexpr DeviceTarget kDevice{90, true};
    return ChooseSource(offered, ChooseImages(offered, kDevice), kDevice);
  };
  EXPECT_EQ(source({Offer(kElf, 90), Offer(kPtx, 75), Offer(kPtx, 90), Offer(kPtx, 120)}), 2u);
  EXPECT_EQ(source({Offer(kPtx, 75), Offer(kElf, 90)}), 0u);
  EXPECT_EQ(source({Offer(kElf, 90)}), std::nullopt);
  EXPECT_EQ(source({Offer(kElf, 90), Offer(kPtx, 100)}), std::nullopt) << "not for this device";
  EXPECT_EQ(source({Offer(kPtx, 90)}), std::nullopt) << "it is the text itself";
  // Of several units each has a part.
  EXPECT_EQ(source({Offer(kElf, 90, 0, 1), Offer(kPtx, 90, 0, 1)}), std::nullopt);
  OfferedImage plain = Offer(kElf, 90);
  plain.form = OfferedImage::Form::kPlain;
  EXPECT_EQ(source({plain, Offer(kPtx, 90)}), std::nullopt) << "they are not of one fatbin";
}

TEST(ImageChoice, CodeForOneArchitectureOrFamilyAloneGoesNowhereElse) {
  EXPECT_THAT(ChooseImages({Offer(kPtx, 90, 0x100000)}, {100, true}), IsEmpty());
  EXPECT_THAT(ChooseImages({Offer(kPtx, 90, 0x100000)}, {90, true}), ElementsAre(0));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 100, 0x200000)}, {103, true}), ElementsAre(0));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 100, 0x200000)}, {120, true}), IsEmpty());
}

TEST(ImageChoice, OfTheSameNumberAGpuTakesWhatWasMadeForItAndTheSoftwareDeviceWhatIsForAll) {
  constexpr uint64_t kExact = 0x100000, kFamily = 0x200000;
  EXPECT_THAT(ChooseImages({Offer(kPtx, 90, kExact), Offer(kPtx, 90)}, {90, false}), ElementsAre(1));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 90), Offer(kPtx, 90, kExact)}, {90, false}), ElementsAre(0));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 100, kFamily), Offer(kPtx, 100)}, {103, true}), ElementsAre(0));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 100, kFamily), Offer(kPtx, 100)}, {103, false}), ElementsAre(1));
  EXPECT_THAT(ChooseImages({Offer(kElf, 90, kExact), Offer(kElf, 90)}, {90, true}), ElementsAre(0));
  EXPECT_THAT(ChooseImages({Offer(kElf, 90), Offer(kElf, 90, kExact)}, {90, true}), ElementsAre(1));
  EXPECT_THAT(ChooseImages({Offer(kElf, 100, kFamily), Offer(kElf, 100, kExact)}, {100, true}), ElementsAre(1));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 89), Offer(kPtx, 90, kExact)}, {90, false}), ElementsAre(1)) << "newer first";
  EXPECT_THAT(ChooseImages({Offer(kPtx, 90), Offer(kElf, 90, kExact)}, {90, true}), ElementsAre(1)) << "ready first";
  EXPECT_THAT(ChooseImages({Offer(kPtx, 90, kExact, 1), Offer(kPtx, 90, 0, 1)}, {90, false}), ElementsAre(1))
      << "of a translation unit too";
}

TEST(ImageChoice, LeavesPlainImagesToTheDriver) {
  OfferedImage cubin = Offer(kElf, 120, 0x100000);
  cubin.form = OfferedImage::Form::kPlain;
  EXPECT_THAT(ChooseImages({cubin}, {90, true}), ElementsAre(0))
      << "the guest says what it is for; that is not checked";
  EXPECT_THAT(ChooseImages({cubin}, {90, false}), IsEmpty()) << "no machine code runs there";
  EXPECT_EQ(DescribeImages({cubin}), "cubin for sm_120a");
}

TEST(ImageChoice, LinksTheUnitsWhereNoWholeImageFits) {
  const std::vector<OfferedImage> offered{Offer(kElf, 90), Offer(kPtx, 75, 0, 1), Offer(kPtx, 75, 0, 2),
                                          Offer(kElf, 90, 0, 2)};
  EXPECT_THAT(ChooseImages(offered, {90, true}), ElementsAre(0));
  EXPECT_THAT(ChooseImages(offered, {90, false}), ElementsAre(1, 2));
  EXPECT_THAT(ChooseImages({Offer(kPtx, 75, 0, 1), Offer(kElf, 80, 0, 2)}, {90, true}), IsEmpty())
      << "one unit has no code for the device";
  EXPECT_THAT(ChooseImages({Offer(kPtx, 75, 0, 1), Offer(kElf, 75, 0, 2)}, {90, false}), ElementsAre(0))
      << "as the toolkit's own device library for a device that runs PTX alone";
}

TEST(ImageChoice, NeverTakesIntermediateCode) {
  EXPECT_THAT(ChooseImages({Offer(kLto, 90)}, {90, true}), IsEmpty());
  EXPECT_EQ(DescribeImages({Offer(kLto, 90), Offer(kElf, 90, 0x100000)}), "LTO IR for sm_90, cubin for sm_90a");
}

// --- ImageStore

class ImageStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hawser-images-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  ImageStore Store(const std::string& tenant, uint64_t disk = 1u << 20, uint64_t memory = 1u << 20) {
    ImageStore::Options options;
    options.directory = folder_;
    options.tenant = tenant;
    options.disk = disk;
    options.memory = memory;
    return ImageStore(options, [this](const std::string& text) { log_ += text; });
  }
  static std::vector<std::byte> Bytes(const std::string& text) {
    const wire::Bytes bytes = wire::AsBytes(text);
    return {bytes.begin(), bytes.end()};
  }
  static wire::Sha256Digest Hash(const std::string& text) { return wire::Sha256Of(wire::AsBytes(text)); }

  std::string folder_;
  std::string log_;
};

TEST_F(ImageStoreTest, TheNextProcessOfTheTenantFindsWhatWasPut) {
  ASSERT_TRUE(Store("alice").Put(Hash("code"), Bytes("code")).ok());
  ImageStore later = Store("alice");
  EXPECT_TRUE(later.Has(Hash("code")));
  const Image image = later.Get(Hash("code"));
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(*image, Bytes("code"));
}

TEST_F(ImageStoreTest, AnotherTenantFindsNothing) {
  ASSERT_TRUE(Store("alice").Put(Hash("code"), Bytes("code")).ok());
  ImageStore other = Store("bob");
  EXPECT_FALSE(other.Has(Hash("code")));
  EXPECT_EQ(other.Get(Hash("code")), nullptr);
  EXPECT_NE(TenantFolderName("a.b"), TenantFolderName("a_b"));
  EXPECT_EQ(TenantFolderName("../x").find('/'), std::string::npos);
}

TEST_F(ImageStoreTest, BytesThatAreNotWhatTheirHashSaysAreRefused) {
  ImageStore store = Store("alice");
  EXPECT_FALSE(store.Put(Hash("code"), Bytes("evil")).ok());
  EXPECT_FALSE(store.Has(Hash("code")));
}

TEST_F(ImageStoreTest, AFileThatWasChangedIsNotBelievedAndRemoved) {
  ImageStore store = Store("alice");
  ASSERT_TRUE(store.Put(Hash("code"), Bytes("code")).ok());
  const std::string path = store.folder() + "/" + wire::HexOf(Hash("code"));
  std::ofstream(path) << "evil";
  ImageStore later = Store("alice");
  EXPECT_EQ(later.Get(Hash("code")), nullptr);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ImageStoreTest, LinksAreNotFollowed) {
  ImageStore store = Store("alice");
  std::ofstream(folder_ + "/target") << "code";
  std::filesystem::create_symlink(folder_ + "/target", store.folder() + "/" + wire::HexOf(Hash("code")));
  EXPECT_FALSE(store.Has(Hash("code")));
  EXPECT_EQ(store.Get(Hash("code")), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/target"));
}

TEST_F(ImageStoreTest, AFolderThatOthersCanUseIsNotUsed) {
  const std::string folder = folder_ + "/" + TenantFolderName("alice");
  std::filesystem::create_directory(folder);
  ::chmod(folder.c_str(), 0777);
  ImageStore store = Store("alice");
  EXPECT_EQ(store.folder(), "");
  EXPECT_NE(log_.find("only this worker's user"), std::string::npos);
  ASSERT_TRUE(store.Put(Hash("code"), Bytes("code")).ok()) << "in memory";
  EXPECT_NE(store.Get(Hash("code")), nullptr);
}

TEST_F(ImageStoreTest, WhatWasNotUsedForLongestMakesRoom) {
  ImageStore store = Store("alice", 3000, 0);
  const std::string a(1000, 'a'), b(1000, 'b'), c(1000, 'c'), d(1000, 'd');
  timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ASSERT_TRUE(store.Put(Hash(a), Bytes(a)).ok());
  ASSERT_TRUE(store.Put(Hash(b), Bytes(b)).ok());
  ASSERT_TRUE(store.Put(Hash(c), Bytes(c)).ok());
  ::utimensat(AT_FDCWD, (store.folder() + "/" + wire::HexOf(Hash(b))).c_str(), long_ago, 0);
  ASSERT_TRUE(store.Put(Hash(d), Bytes(d)).ok());
  ImageStore later = Store("alice");
  EXPECT_TRUE(later.Has(Hash(a)));
  EXPECT_FALSE(later.Has(Hash(b)));
  EXPECT_TRUE(later.Has(Hash(c)));
  EXPECT_TRUE(later.Has(Hash(d)));
}

TEST_F(ImageStoreTest, MemoryIsBounded) {
  ImageStore::Options options;
  options.memory = 2500;
  ImageStore store(options, [](const std::string&) {});
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const std::string text(1000, letter);
    ASSERT_TRUE(store.Put(Hash(text), Bytes(text)).ok());
  }
  EXPECT_LE(store.memory_used(), 2500u);
  EXPECT_TRUE(store.Has(Hash(std::string(1000, 'd'))));
  EXPECT_FALSE(store.Has(Hash(std::string(1000, 'a'))));
}

// --- Disposals

TEST(Disposals, FreeInOrderOnAThreadOfTheirOwn) {
  const DriverTable driver{};
  Disposals disposals(&driver);
  Gate gate;
  std::vector<int> freed;
  std::thread::id where;
  disposals.Add(nullptr, [&] {
    gate.Wait();  // The caller is not held up.
    freed.push_back(1);
    where = std::this_thread::get_id();
  });
  disposals.Add(nullptr, [&] { freed.push_back(2); });
  gate.Open();
  disposals.Drain();
  EXPECT_THAT(freed, ElementsAre(1, 2));
  EXPECT_NE(where, std::this_thread::get_id());
  disposals.Drain();  // Nothing is left.
}

TEST(Disposals, EndWhenAllIsFreed) {
  const DriverTable driver{};
  std::atomic<int> freed{0};
  {
    Disposals disposals(&driver);
    for (int i = 0; i < 100; ++i) disposals.Add(nullptr, [&] { freed.fetch_add(1); });
  }
  EXPECT_EQ(freed.load(), 100);
}

}  // namespace
}  // namespace hawser::server::cuda_backend
