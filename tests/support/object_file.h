// SPDX-License-Identifier: Apache-2.0
// Object files and archives as host compilers write them around device code, for tests: as little of each format as its
// readers need.
#ifndef HAWSER_TESTS_SUPPORT_OBJECT_FILE_H_
#define HAWSER_TESTS_SUPPORT_OBJECT_FILE_H_

#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::object_file {

using FileBytes = std::vector<std::byte>;

template <typename T>
void Append(FileBytes* to, const T& value) {
  const size_t at = to->size();
  to->resize(at + sizeof(value));
  std::memcpy(to->data() + at, &value, sizeof(value));
}

/// Not insert(): g++ 12 warns of it by mistake.
inline void AppendBytes(FileBytes* to, const FileBytes& bytes) {
  const size_t at = to->size();
  to->resize(at + bytes.size());
  if (!bytes.empty()) std::memcpy(to->data() + at, bytes.data(), bytes.size());
}

inline void AppendText(FileBytes* to, std::string_view text) {
  for (const char c : text) to->push_back(static_cast<std::byte>(c));
}

inline void AlignTo(FileBytes* bytes, size_t alignment) {
  bytes->resize((bytes->size() + alignment - 1) / alignment * alignment);
}

/// A fatbin with one PTX text (kind 1) or one entry of another kind, which is not read.
inline FileBytes MakeFatbin(const std::string& text, uint16_t kind = 1, uint32_t sm = 75) {
  FileBytes payload;
  AppendText(&payload, text);
  payload.push_back(std::byte{0});
  AlignTo(&payload, 8);
  FileBytes out;
  Append<uint32_t>(&out, 0xba55ed50);
  Append<uint16_t>(&out, 1);
  Append<uint16_t>(&out, 16);
  Append<uint64_t>(&out, 64 + payload.size());
  FileBytes header(64);
  const auto put = [&header](size_t at, auto value) { std::memcpy(header.data() + at, &value, sizeof(value)); };
  put(0x00, kind);
  put(0x02, uint16_t{0x0101});
  put(0x04, uint32_t{64});
  put(0x08, uint64_t{payload.size()});
  put(0x1a, uint16_t{8});
  put(0x1c, sm);
  put(0x28, uint64_t{0x11});
  AppendBytes(&out, header);
  AppendBytes(&out, payload);
  return out;
}

/// An object file with `content` in a section of that name.
inline FileBytes MakeObject(std::string_view section, const FileBytes& content) {
  FileBytes names;
  names.push_back(std::byte{0});
  const auto name_of_names = static_cast<uint32_t>(names.size());
  AppendText(&names, std::string_view(".shstrtab\0", 10));
  const auto name_of_section = static_cast<uint32_t>(names.size());
  AppendText(&names, section);
  names.push_back(std::byte{0});
  AlignTo(&names, 8);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof(header) + names.size() + (content.size() + 7) / 8 * 8;

  FileBytes out;
  Append(&out, header);
  Elf64_Shdr none{}, strings{}, code{};
  strings.sh_name = name_of_names;
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = out.size();
  strings.sh_size = names.size();
  AppendBytes(&out, names);
  code.sh_name = name_of_section;
  code.sh_type = SHT_PROGBITS;
  code.sh_offset = out.size();
  code.sh_size = content.size();
  AppendBytes(&out, content);
  AlignTo(&out, 8);
  Append(&out, none);
  Append(&out, strings);
  Append(&out, code);
  return out;
}

/// An archive of these members, with the index that `ar` writes first.
inline FileBytes MakeArchive(const std::vector<FileBytes>& members) {
  FileBytes out;
  AppendText(&out, "!<arch>\n");
  const auto add = [&out](const char* name, const FileBytes& member) {
    char header[61];
    std::snprintf(header, sizeof(header), "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644, member.size());
    AppendText(&out, std::string_view(header, 60));
    AppendBytes(&out, member);
    if (member.size() % 2 != 0) AppendText(&out, "\n");
  };
  add("/", FileBytes(5));
  for (const FileBytes& member : members) add("unit.o/", member);
  return out;
}

}  // namespace hawser::object_file

#endif  // HAWSER_TESTS_SUPPORT_OBJECT_FILE_H_
