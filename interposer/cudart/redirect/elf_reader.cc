// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/elf_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hawser::redirect {
namespace {

// The name at `offset`; empty when it does not end inside the table.
std::string_view NameAt(const std::string& names, uint64_t offset) {
  if (offset >= names.size()) return {};
  const size_t end = names.find('\0', offset);
  return end == std::string::npos ? std::string_view() : std::string_view(names).substr(offset, end - offset);
}

}  // namespace

bool FileSource::Read(uint64_t offset, void* to, size_t size) const {
  auto* bytes = static_cast<char*>(to);
  while (size > 0) {
    if (offset > static_cast<uint64_t>(INT64_MAX)) return false;
    const ssize_t got = pread(descriptor_, bytes, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool MemorySource::Read(uint64_t offset, void* to, size_t size) const {
  if (offset > size_ || size > size_ - offset) return false;
  if (size != 0) std::memcpy(to, data_ + offset, size);
  return true;
}

bool ElfReader::Open() {
  if (!source_.Read(0, &header_, sizeof(header_))) return false;
  if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB) return false;
  if (header_.e_machine != EM_X86_64) return false;
  if (header_.e_type != ET_EXEC && header_.e_type != ET_DYN) return false;
  return ReadSegments() && ReadSections();
}

bool ElfReader::ReadSegments() {
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 || header_.e_phnum > kMaxHeaders) return false;
  segments_.resize(header_.e_phnum);
  return source_.Read(header_.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr));
}

bool ElfReader::ReadSections() {
  // A file may have been stripped of all sections: that is sound.
  if (header_.e_shnum == 0) return true;
  if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shnum > kMaxHeaders) return false;
  sections_.resize(header_.e_shnum);
  if (!source_.Read(header_.e_shoff, sections_.data(), sections_.size() * sizeof(Elf64_Shdr))) return false;
  if (header_.e_shstrndx >= sections_.size()) return false;
  const Elf64_Shdr& names = sections_[header_.e_shstrndx];
  constexpr uint64_t kMaxNames = 1 << 20;
  if (names.sh_type != SHT_STRTAB || names.sh_size > kMaxNames) return false;
  section_names_.resize(names.sh_size);
  return source_.Read(names.sh_offset, section_names_.data(), section_names_.size());
}

bool ElfReader::HasSection(std::string_view name) const {
  for (const Elf64_Shdr& section : sections_) {
    if (NameAt(section_names_, section.sh_name) == name) return true;
  }
  return false;
}

bool ElfReader::FindTable(uint32_t type, const Elf64_Shdr** table, const Elf64_Shdr** names) const {
  *table = nullptr;
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != type) continue;
    *table = &section;
    break;
  }
  if (*table == nullptr || (*table)->sh_entsize != sizeof(Elf64_Sym) || (*table)->sh_link >= sections_.size()) {
    return false;
  }
  *names = &sections_[(*table)->sh_link];
  if ((*names)->sh_type != SHT_STRTAB) return false;
  // The ends are tried before anything is allocated: a file can claim any size.
  for (const Elf64_Shdr* section : {*table, *names}) {
    char last = 0;
    if (section->sh_size == 0 || section->sh_size > kMaxTable || section->sh_offset > UINT64_MAX - section->sh_size ||
        !source_.Read(section->sh_offset + section->sh_size - 1, &last, 1)) {
      return false;
    }
  }
  return true;
}

bool ElfReader::NamesContain(uint32_t type, std::string_view name) const {
  const Elf64_Shdr* table = nullptr;
  const Elf64_Shdr* names = nullptr;
  if (!FindTable(type, &table, &names)) return false;
  // In pieces that overlap by less than the name, so that it is found across their borders and never twice.
  constexpr size_t kPiece = 64 << 10;
  std::string piece;
  for (uint64_t at = 0; at < names->sh_size;) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(names->sh_size - at, kPiece));
    piece.resize(size);
    if (!source_.Read(names->sh_offset + at, piece.data(), size)) return false;
    if (std::string_view(piece).find(name) != std::string_view::npos) return true;
    if (at + size == names->sh_size) break;
    at += size - std::min(size - 1, name.size() - 1);
  }
  return false;
}

bool ElfReader::ReadSymbols(uint32_t type, ElfSymbols* symbols) const {
  const Elf64_Shdr* table_section = nullptr;
  const Elf64_Shdr* names_section = nullptr;
  if (!FindTable(type, &table_section, &names_section)) return false;
  const Elf64_Shdr& table = *table_section;
  const Elf64_Shdr& names = *names_section;
  symbols->names.resize(names.sh_size);
  if (!source_.Read(names.sh_offset, symbols->names.data(), symbols->names.size())) return false;
  std::vector<Elf64_Sym> raw(table.sh_size / sizeof(Elf64_Sym));
  if (!source_.Read(table.sh_offset, raw.data(), raw.size() * sizeof(Elf64_Sym))) return false;
  symbols->symbols.clear();
  symbols->symbols.reserve(raw.size());
  for (const Elf64_Sym& entry : raw) {
    symbols->symbols.push_back({NameAt(symbols->names, entry.st_name), entry.st_value, entry.st_size,
                                static_cast<unsigned char>(ELF64_ST_TYPE(entry.st_info)), entry.st_shndx != SHN_UNDEF});
  }
  return true;
}

}  // namespace hawser::redirect
