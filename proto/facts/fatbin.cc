// SPDX-License-Identifier: Apache-2.0
#include "proto/facts/fatbin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace hawser::fatbin {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint16_t kFatbinVersion = 1;
constexpr size_t kFatbinHeaderBytes = 16;
constexpr size_t kEntryHeaderBytes = 64;

constexpr uint64_t kFlagDebug = 0x2;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint64_t kFlagExact = 0x100000;
constexpr uint64_t kFlagFamily = 0x200000;

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// True when all of [offset, offset + size) lies within `limit` bytes.
bool Fits(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

/// The bytes of `magic` at `from`, looked at one by one up to the first that differs.
bool HasMagic(const unsigned char* from, size_t limit, uint32_t magic) {
  unsigned char expected[sizeof(magic)];
  std::memcpy(expected, &magic, sizeof(magic));
  for (size_t i = 0; i < sizeof(magic); ++i) {
    if (i >= limit || from[i] != expected[i]) return false;
  }
  return true;
}

/// PTX begins with comments, blanks and the directive .version; other text is not taken for it.
bool LooksLikePtx(const unsigned char* text, size_t limit) {
  size_t i = 0;
  for (;;) {
    while (i < limit && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r')) ++i;
    if (i >= limit || text[i] != '/') break;
    if (i + 1 >= limit) return false;
    if (text[i + 1] == '/') {
      while (i < limit && text[i] != '\n' && text[i] != 0) ++i;
    } else if (text[i + 1] == '*') {
      i += 2;
      while (i < limit && text[i] != 0 && !(text[i] == '*' && i + 1 < limit && text[i + 1] == '/')) ++i;
      if (i >= limit || text[i] == 0) return false;
      i += 2;
    } else {
      return false;
    }
  }
  return i < limit && text[i] == '.';
}

ImageKind IdentifyWithin(const void* image, size_t limit) {
  const auto* const bytes = static_cast<const unsigned char*>(image);
  uint32_t elf_magic;
  std::memcpy(&elf_magic, ELFMAG, SELFMAG);
  if (HasMagic(bytes, limit, kWrapperMagic)) return ImageKind::kWrapper;
  if (HasMagic(bytes, limit, kFatbinMagic)) return ImageKind::kFatbin;
  if (HasMagic(bytes, limit, elf_magic)) return ImageKind::kElf;
  if (LooksLikePtx(bytes, limit)) return ImageKind::kPtx;
  return ImageKind::kUnknown;
}

Status TooLong(const char* what) {
  return {Code::kInvalid, std::string(what) + " claims to be longer than the bytes that are there; it is damaged"};
}

/// How far the tables, sections and segments of an ELF file reach.
Result<size_t> ElfBytes(const std::byte* data, size_t limit) {
  if (limit < sizeof(Elf64_Ehdr)) return TooLong("a cubin");
  const auto header = Load<Elf64_Ehdr>(data);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Status(Code::kInvalid, "an ELF image that is not 64-bit little-endian is no cubin");
  }
  uint64_t end = sizeof(Elf64_Ehdr);
  const auto extend = [&](uint64_t offset, uint64_t size) {
    if (!Fits(offset, size, limit)) return false;
    end = std::max(end, offset + size);
    return true;
  };
  if (header.e_shnum != 0) {
    if (header.e_shentsize != sizeof(Elf64_Shdr) ||
        !extend(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) {
      return TooLong("a cubin's section table");
    }
    for (size_t i = 0; i < header.e_shnum; ++i) {
      const auto section = Load<Elf64_Shdr>(data + header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
      if (!extend(section.sh_offset, section.sh_size)) return TooLong("a cubin's section");
    }
  }
  if (header.e_phnum != 0) {
    if (header.e_phentsize != sizeof(Elf64_Phdr) ||
        !extend(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) {
      return TooLong("a cubin's segment table");
    }
    for (size_t i = 0; i < header.e_phnum; ++i) {
      const auto segment = Load<Elf64_Phdr>(data + header.e_phoff + i * sizeof(Elf64_Phdr));
      if (!extend(segment.p_offset, segment.p_filesz)) return TooLong("a cubin's segment");
    }
  }
  return static_cast<size_t>(end);
}

Result<size_t> FatbinBytes(const std::byte* data, size_t limit) {
  if (limit < kFatbinHeaderBytes) return TooLong("a fatbin");
  const auto version = Load<uint16_t>(data + 4);
  const auto header = Load<uint16_t>(data + 6);
  const auto rest = Load<uint64_t>(data + 8);
  if (version != kFatbinVersion || header < kFatbinHeaderBytes) {
    return Status(Code::kInvalid, "a fatbin of version " + std::to_string(version) + "; only version 1 is known");
  }
  if (!Fits(header, rest, limit)) return TooLong("a fatbin");
  return static_cast<size_t>(header + rest);
}

/// A text inside an entry's header, without trailing zero bytes; empty when it does not lie there.
std::string_view HeaderText(std::span<const std::byte> header, uint64_t offset, uint64_t size) {
  if (offset < kEntryHeaderBytes || !Fits(offset, size, header.size())) return {};
  std::string_view text(reinterpret_cast<const char*>(header.data()) + offset, static_cast<size_t>(size));
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  return text;
}

}  // namespace

ImageKind Identify(const void* image) {
  return image == nullptr ? ImageKind::kUnknown : IdentifyWithin(image, kMaxImageBytes);
}

ImageKind Identify(std::span<const std::byte> image) { return IdentifyWithin(image.data(), image.size()); }

Result<size_t> ImageBytes(const void* image, size_t limit) {
  limit = std::min(limit, kMaxImageBytes);
  const auto* const data = static_cast<const std::byte*>(image);
  switch (image == nullptr ? ImageKind::kUnknown : IdentifyWithin(image, limit)) {
    case ImageKind::kFatbin:
      return FatbinBytes(data, limit);
    case ImageKind::kElf:
      return ElfBytes(data, limit);
    case ImageKind::kPtx: {
      const size_t length = ::strnlen(static_cast<const char*>(image), limit);
      if (length == limit) return Status(Code::kInvalid, "PTX text does not end with a zero byte");
      return length + 1;
    }
    case ImageKind::kWrapper:
      return Status(Code::kInvalid, "a wrapper has no size of its own; take the images that it points to");
    case ImageKind::kUnknown:
      break;
  }
  return Status(Code::kInvalid, "the image is neither a fatbin, nor a cubin, nor PTX");
}

Result<Wrapper> ReadWrapper(const void* image) {
  if (Identify(image) != ImageKind::kWrapper) return Status(Code::kInvalid, "the image is no fatbin wrapper");
  const auto* const data = static_cast<const std::byte*>(image);
  Wrapper wrapper;
  wrapper.version = Load<uint32_t>(data + 4);
  if (wrapper.version != 1 && wrapper.version != 2) {
    return Status(Code::kInvalid, "a fatbin wrapper of version " + std::to_string(wrapper.version) +
                                      "; only versions 1 and 2 are known");
  }
  wrapper.fatbin = Load<const void*>(data + 8);
  if (wrapper.version == 1) return wrapper;
  wrapper.parts = Load<const void* const*>(data + 16);
  if (wrapper.parts == nullptr) return wrapper;
  while (wrapper.part_count < kMaxParts && wrapper.parts[wrapper.part_count] != nullptr) ++wrapper.part_count;
  if (wrapper.part_count == kMaxParts) return Status(Code::kInvalid, "a fatbin wrapper's list of images has no end");
  return wrapper;
}

std::string Entry::Describe() const {
  std::string text;
  switch (kind) {
    case EntryKind::kPtx:
      text = "PTX " + std::to_string(major) + "." + std::to_string(minor);
      break;
    case EntryKind::kElf:
      text = "cubin";
      break;
    case EntryKind::kLtoIr:
      text = "LTO code";
      break;
    default:
      text = "kind " + std::to_string(static_cast<unsigned>(kind));
  }
  if (sm == 0) return text;
  text += " for sm_" + std::to_string(sm);
  if (target == Target::kExact) text += 'a';
  if (target == Target::kFamily) text += 'f';
  return text;
}

Entry CubinFacts(std::span<const std::byte> elf) {
  constexpr uint16_t kCudaMachine = 190;
  Entry facts;
  facts.kind = EntryKind::kElf;
  if (elf.size() < sizeof(Elf64_Ehdr)) return facts;
  const auto header = Load<Elf64_Ehdr>(elf.data());
  if (header.e_machine != kCudaMachine) return facts;
  // Where the architecture is depends on the version of the format: 8 since CUDA 13, 7 before.
  const bool newer = header.e_ident[EI_ABIVERSION] >= 8;
  facts.sm = newer ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
  return facts;
}

Status Reader::Start() {
  if (!HasMagic(reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size(), kFatbinMagic)) {
    return {Code::kInvalid, "the image is no fatbin"};
  }
  const Result<size_t> size = FatbinBytes(bytes_.data(), bytes_.size());
  if (!size.ok()) return size.status();
  at_ = Load<uint16_t>(bytes_.data() + 6);
  end_ = size.value();
  return {};
}

Result<bool> Reader::Next(Entry* entry) {
  if (end_ - at_ < kEntryHeaderBytes) {  // Nothing, or padding.
    at_ = end_;
    return false;
  }
  const std::byte* const raw = bytes_.data() + at_;
  const uint64_t header_bytes = Load<uint32_t>(raw + 0x04);
  const auto stored = Load<uint64_t>(raw + 0x08);
  if (header_bytes < kEntryHeaderBytes || !Fits(at_, header_bytes, end_) || !Fits(at_ + header_bytes, stored, end_)) {
    at_ = end_;
    return TooLong("an entry of a fatbin");
  }
  const std::span<const std::byte> header(raw, static_cast<size_t>(header_bytes));
  Entry found;
  found.kind = static_cast<EntryKind>(Load<uint16_t>(raw));
  found.minor = Load<uint16_t>(raw + 0x18);
  found.major = Load<uint16_t>(raw + 0x1a);
  found.sm = Load<uint32_t>(raw + 0x1c);
  found.flags = Load<uint64_t>(raw + 0x28);
  found.debug = (found.flags & kFlagDebug) != 0;
  if ((found.flags & kFlagExact) != 0) {
    found.target = Target::kExact;
  } else if ((found.flags & kFlagFamily) != 0) {
    found.target = Target::kFamily;
  }
  found.name = HeaderText(header, Load<uint32_t>(raw + 0x20), Load<uint32_t>(raw + 0x24));
  if (const uint64_t block = Load<uint32_t>(raw + 0x14); block != 0 && Fits(block, 8, header_bytes)) {
    found.options = HeaderText(header, Load<uint32_t>(raw + block), Load<uint32_t>(raw + block + 4));
  }
  found.payload = bytes_.subspan(at_ + header.size(), static_cast<size_t>(stored));
  found.unpacked_bytes = stored;
  if ((found.flags & (kFlagLz4 | kFlagZstd)) != 0) {
    found.compression = (found.flags & kFlagLz4) != 0 ? Compression::kLz4 : Compression::kZstd;
    const uint64_t compressed = Load<uint32_t>(raw + 0x10);
    if (compressed != 0 && compressed <= stored) found.payload = found.payload.first(static_cast<size_t>(compressed));
    found.unpacked_bytes = Load<uint64_t>(raw + 0x38);
  }
  at_ += header.size() + static_cast<size_t>(stored);
  *entry = found;
  return true;
}

}  // namespace hawser::fatbin
