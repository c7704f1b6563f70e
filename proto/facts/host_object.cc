// SPDX-License-Identifier: Apache-2.0
#include "proto/facts/host_object.h"

#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>

#include "proto/facts/fatbin.h"

namespace hawser::fatbin {
namespace {

using Bytes = std::span<const std::byte>;
using wire::Code;
using wire::Result;
using wire::Status;

constexpr std::string_view kArchive = "!<arch>\n";
constexpr size_t kAlignment = 8;  // Of fatbins in their section.

template <typename T>
bool Read(Bytes file, uint64_t at, T* value) {
  if (at > file.size() || file.size() - at < sizeof(T)) return false;
  std::memcpy(value, file.data() + at, sizeof(T));
  return true;
}

bool Part(Bytes file, uint64_t at, uint64_t size, Bytes* part) {
  if (at > file.size() || size > file.size() - at) return false;
  *part = file.subspan(at, size);
  return true;
}

std::string_view TextAt(Bytes strings, uint64_t at) {
  if (at >= strings.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(strings.data()) + at;
  return {begin, ::strnlen(begin, strings.size() - at)};
}

Status Damaged(const char* what) { return {Code::kInvalid, std::string("the object file is damaged: ") + what}; }

/// Fatbins one behind the other, with zeros between them.
Status ReadSection(Bytes section, std::vector<Bytes>* found) {
  size_t at = 0;
  while (section.size() - at >= kAlignment) {
    const Bytes rest = section.subspan(at);
    if (Identify(rest) != ImageKind::kFatbin) {
      uint64_t word = 0;
      std::memcpy(&word, rest.data(), sizeof(word));
      if (word != 0) return Damaged("what is in its section is no fatbin");
      at += kAlignment;
      continue;
    }
    const Result<size_t> size = ImageBytes(rest.data(), rest.size());
    if (!size.ok()) return size.status();
    if (found->size() >= kMaxObjectFatbins) return {Code::kInvalid, "the file holds too many fatbins"};
    found->push_back(rest.first(size.value()));
    at += (size.value() + kAlignment - 1) / kAlignment * kAlignment;
    if (at > section.size()) break;
  }
  return Status::Ok();
}

bool IsObject(Bytes file) {
  Elf64_Ehdr header;
  return Read(file, 0, &header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB;
}

Status ReadObject(Bytes file, std::vector<Bytes>* found) {
  Elf64_Ehdr header;
  if (!Read(file, 0, &header)) return Damaged("it is too short");
  if (header.e_shnum == 0) return Status::Ok();
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return Damaged("its section headers have another size");
  const auto section = [&](uint64_t index, Elf64_Shdr* entry) {
    return header.e_shoff <= file.size() && Read(file, header.e_shoff + index * sizeof(Elf64_Shdr), entry);
  };
  Elf64_Shdr entry;
  Bytes names;
  if (!section(header.e_shstrndx, &entry) || !Part(file, entry.sh_offset, entry.sh_size, &names)) {
    return Damaged("it has no section names");
  }
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    if (!section(i, &entry)) return Damaged("a section header lies outside of it");
    const std::string_view name = TextAt(names, entry.sh_name);
    if (entry.sh_type != SHT_PROGBITS || (name != ".nv_fatbin" && name != "__nv_relfatbin")) continue;
    Bytes content;
    if (!Part(file, entry.sh_offset, entry.sh_size, &content)) return Damaged("a section lies outside of it");
    if (Status status = ReadSection(content, found); !status.ok()) return status;
  }
  return Status::Ok();
}

/// A decimal number with blanks behind it.
bool ReadNumber(std::string_view text, uint64_t* number) {
  *number = 0;
  const size_t end = text.find(' ');
  const std::string_view digits = text.substr(0, end);
  if (digits.empty()) return false;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return false;
    *number = *number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return true;
}

Status ReadArchive(Bytes file, std::vector<Bytes>* found) {
  struct Header {
    char name[16], date[12], owner[6], group[6], mode[8], size[10], end[2];
  };
  static_assert(sizeof(Header) == 60);
  Status damaged(Code::kInvalid, "the archive is damaged");
  for (uint64_t at = kArchive.size(); at < file.size();) {
    Header header;
    uint64_t size = 0;
    Bytes member;
    if (!Read(file, at, &header) || std::memcmp(header.end, "`\n", 2) != 0 ||
        !ReadNumber({header.size, sizeof(header.size)}, &size) || !Part(file, at + sizeof(header), size, &member)) {
      return damaged;
    }
    if (IsObject(member)) {
      if (Status status = ReadObject(member, found); !status.ok()) return status;
    }
    at += sizeof(header) + size + size % 2;
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<Bytes>> FindFatbins(Bytes file) {
  std::vector<Bytes> found;
  Status status;
  if (file.size() >= kArchive.size() && std::memcmp(file.data(), kArchive.data(), kArchive.size()) == 0) {
    status = ReadArchive(file, &found);
  } else if (IsObject(file)) {
    status = ReadObject(file, &found);
  } else {
    return Status(Code::kInvalid, "it is neither an object file nor an archive");
  }
  if (!status.ok()) return status;
  if (found.empty()) return Status(Code::kInvalid, "it holds no device code");
  return found;
}

}  // namespace hawser::fatbin
