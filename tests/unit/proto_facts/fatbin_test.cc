// SPDX-License-Identifier: Apache-2.0
#include "proto/facts/fatbin.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace hawser::fatbin {
namespace {

constexpr char kPtx[] = ".version 8.0\n.target sm_75\n.address_size 64\n";

void Put(std::vector<std::byte>* to, size_t at, const void* value, size_t size) {
  if (to->size() < at + size) to->resize(at + size);
  std::memcpy(to->data() + at, value, size);
}
template <typename T>
void Put(std::vector<std::byte>* to, size_t at, T value) {
  Put(to, at, &value, sizeof(value));
}

struct Spec {
  uint16_t kind = 1;
  uint32_t sm = 75;
  uint64_t flags = 0x11;
  std::string payload = kPtx;
  uint32_t compressed = 0;
  uint64_t unpacked = 0;
  std::string name;
  std::string options;
};

std::vector<std::byte> MakeFatbin(const std::vector<Spec>& specs) {
  std::vector<std::byte> out(16);
  for (const Spec& spec : specs) {
    std::vector<std::byte> header(64);
    Put<uint16_t>(&header, 0x00, spec.kind);
    Put<uint16_t>(&header, 0x02, 0x0101);
    Put<uint32_t>(&header, 0x10, spec.compressed);
    Put<uint16_t>(&header, 0x1a, 8);
    Put<uint32_t>(&header, 0x1c, spec.sm);
    Put<uint64_t>(&header, 0x28, spec.flags);
    Put<uint64_t>(&header, 0x38, spec.unpacked);
    if (!spec.name.empty()) {
      Put<uint32_t>(&header, 0x20, static_cast<uint32_t>(header.size()));
      Put<uint32_t>(&header, 0x24, static_cast<uint32_t>(spec.name.size()));
      Put(&header, header.size(), spec.name.data(), spec.name.size());
      header.resize((header.size() + 7) / 8 * 8);
    }
    if (!spec.options.empty()) {
      const auto block = static_cast<uint32_t>(header.size());
      Put<uint32_t>(&header, 0x14, block);
      Put<uint32_t>(&header, block, block + 8);
      Put<uint32_t>(&header, block + 4, static_cast<uint32_t>(spec.options.size()));
      Put(&header, block + 8, spec.options.data(), spec.options.size());
      header.resize((header.size() + 7) / 8 * 8);
    }
    Put<uint32_t>(&header, 0x04, static_cast<uint32_t>(header.size()));
    const uint64_t stored = (spec.payload.size() + 7) / 8 * 8;
    Put<uint64_t>(&header, 0x08, stored);
    out.insert(out.end(), header.begin(), header.end());
    const size_t at = out.size();
    out.resize(at + stored);
    std::memcpy(out.data() + at, spec.payload.data(), spec.payload.size());
  }
  Put<uint32_t>(&out, 0, 0xba55ed50);
  Put<uint16_t>(&out, 4, 1);
  Put<uint16_t>(&out, 6, 16);
  Put<uint64_t>(&out, 8, out.size() - 16);
  return out;
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Cubin(unsigned char version, uint32_t flags, uint16_t machine = 190) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = version;
  header.e_machine = machine;
  header.e_flags = flags;
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

std::string DescribeCubin(const std::string& file) {
  return CubinFacts(std::as_bytes(std::span(file.data(), file.size()))).Describe();
}

TEST(FatbinCubin, SaysWhatItIsFor) {
  EXPECT_EQ(DescribeCubin(Cubin(8, 0x6004b04)), "cubin for sm_75");
  EXPECT_EQ(DescribeCubin(Cubin(8, 0x6007902)), "cubin for sm_121");
  EXPECT_EQ(DescribeCubin(Cubin(7, 0x5a055a)), "cubin for sm_90") << "as before CUDA 13";
  EXPECT_EQ(DescribeCubin(Cubin(8, 0x6004b04, EM_X86_64)), "cubin") << "another machine's";
  EXPECT_EQ(DescribeCubin(Cubin(8, 0x6004b04).substr(0, 63)), "cubin") << "cut short";
}

TEST(FatbinIdentify, TellsTheKindsApart) {
  const auto fatbin = MakeFatbin({{}});
  EXPECT_EQ(Identify(fatbin.data()), ImageKind::kFatbin);
  EXPECT_EQ(Identify(kPtx), ImageKind::kPtx);
  EXPECT_EQ(Identify("// made by\n /* hand * / */ \r\n\t.version 8.0"), ImageKind::kPtx);
  EXPECT_EQ(Identify("\177ELF\2\1\1"), ImageKind::kElf);
  EXPECT_EQ(Identify("hello"), ImageKind::kUnknown);
  EXPECT_EQ(Identify(""), ImageKind::kUnknown);
  EXPECT_EQ(Identify("/* no end"), ImageKind::kUnknown);
  EXPECT_EQ(Identify(static_cast<const void*>(nullptr)), ImageKind::kUnknown);
  EXPECT_EQ(Identify(std::span(fatbin).first(3)), ImageKind::kUnknown);
}

TEST(FatbinSize, OfTextCountsItsZeroByte) {
  const auto size = ImageBytes(kPtx);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size.value(), sizeof(kPtx));
  EXPECT_FALSE(ImageBytes(kPtx, sizeof(kPtx) - 1).ok());
}

TEST(FatbinSize, OfAFatbinIsWhatItsHeaderSays) {
  const auto fatbin = MakeFatbin({{}, {}});
  const auto size = ImageBytes(fatbin.data());
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size.value(), fatbin.size());
  EXPECT_FALSE(ImageBytes(fatbin.data(), fatbin.size() - 1).ok());
}

TEST(FatbinSize, OfAnElfFileReachesToItsLastPart) {
  std::vector<std::byte> elf(64 + 64 + 100);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = 64;
  header.e_shnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = 128;
  section.sh_size = 90;
  Put(&elf, 0, header);
  Put(&elf, 64, section);
  auto size = ImageBytes(elf.data());
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size.value(), 218U);
  EXPECT_FALSE(ImageBytes(elf.data(), 217).ok());

  section.sh_offset = ~uint64_t{0} - 8;  // Would wrap around.
  Put(&elf, 64, section);
  EXPECT_FALSE(ImageBytes(elf.data()).ok());
  section.sh_type = SHT_NOBITS;  // Takes no room in the file.
  Put(&elf, 64, section);
  size = ImageBytes(elf.data());
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size.value(), 128U);
}

TEST(FatbinWrapper, OfVersionOneHasOneImage) {
  struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 1;
    const void* data = "image";
    const void* extra = nullptr;
  } raw;
  EXPECT_EQ(Identify(&raw), ImageKind::kWrapper);
  const auto wrapper = ReadWrapper(&raw);
  ASSERT_TRUE(wrapper.ok());
  EXPECT_EQ(wrapper.value().fatbin, raw.data);
  EXPECT_EQ(wrapper.value().part_count, 0U);
  EXPECT_FALSE(ImageBytes(&raw).ok());
  raw.version = 3;
  EXPECT_FALSE(ReadWrapper(&raw).ok());
}

TEST(FatbinWrapper, OfVersionTwoListsTheTranslationUnits) {
  const void* const parts[] = {"one", "two", nullptr};
  struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 2;
    const void* data = "linked";
    const void* extra = nullptr;
  } raw;
  raw.extra = parts;
  const auto wrapper = ReadWrapper(&raw);
  ASSERT_TRUE(wrapper.ok());
  ASSERT_EQ(wrapper.value().part_count, 2U);
  EXPECT_EQ(wrapper.value().parts[1], parts[1]);
  EXPECT_FALSE(ReadWrapper("text").ok());
}

TEST(FatbinReader, ReadsEveryField) {
  Spec packed;
  packed.kind = 2;
  packed.sm = 90;
  packed.flags = 0x108013;
  packed.payload = "zstdzstdz";
  packed.compressed = 9;
  packed.unpacked = 4000;
  packed.name = "source.cu";
  packed.options = " -g --opt";
  const auto bytes = MakeFatbin({{}, packed});
  Reader reader(bytes);
  ASSERT_TRUE(reader.Start().ok());
  Entry entry;
  auto more = reader.Next(&entry);
  ASSERT_TRUE(more.ok() && more.value());
  EXPECT_EQ(entry.kind, EntryKind::kPtx);
  EXPECT_EQ(entry.major, 8);
  EXPECT_EQ(entry.sm, 75U);
  EXPECT_EQ(entry.target, Target::kPlain);
  EXPECT_EQ(entry.compression, Compression::kNone);
  EXPECT_FALSE(entry.debug);
  EXPECT_EQ(entry.unpacked_bytes, entry.payload.size());
  EXPECT_EQ(Text(entry.payload).substr(0, sizeof(kPtx) - 1), kPtx);
  EXPECT_EQ(entry.Describe(), "PTX 8.0 for sm_75");
  more = reader.Next(&entry);
  ASSERT_TRUE(more.ok() && more.value());
  EXPECT_EQ(entry.kind, EntryKind::kElf);
  EXPECT_EQ(entry.target, Target::kExact);
  EXPECT_EQ(entry.compression, Compression::kZstd);
  EXPECT_TRUE(entry.debug);
  EXPECT_EQ(Text(entry.payload), "zstdzstdz");
  EXPECT_EQ(entry.unpacked_bytes, 4000U);
  EXPECT_EQ(entry.name, "source.cu");
  EXPECT_EQ(entry.options, " -g --opt");
  EXPECT_EQ(entry.Describe(), "cubin for sm_90a");
  more = reader.Next(&entry);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(more.value());
}

TEST(FatbinReader, StopsAtAnEntryThatDoesNotFit) {
  auto bytes = MakeFatbin({{}});
  Put<uint64_t>(&bytes, 16 + 8, ~uint64_t{0} - 63);  // With the header's size this wraps around to 0.
  Reader reader(bytes);
  ASSERT_TRUE(reader.Start().ok());
  Entry entry;
  EXPECT_FALSE(reader.Next(&entry).ok());
  const auto after = reader.Next(&entry);
  ASSERT_TRUE(after.ok());
  EXPECT_FALSE(after.value());
}

TEST(FatbinReader, RefusesWhatIsNoFatbinOrCut) {
  auto bytes = MakeFatbin({{}});
  EXPECT_FALSE(Reader(std::span(bytes).first(15)).Start().ok());
  EXPECT_FALSE(Reader(std::span(bytes).first(bytes.size() - 1)).Start().ok());
  Put<uint16_t>(&bytes, 4, 2);
  EXPECT_FALSE(Reader(bytes).Start().ok());
  EXPECT_FALSE(Reader(std::as_bytes(std::span(kPtx))).Start().ok());
}

}  // namespace
}  // namespace hawser::fatbin
