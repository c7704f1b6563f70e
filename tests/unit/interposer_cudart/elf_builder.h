// SPDX-License-Identifier: Apache-2.0
// Small ELF files for tests: headers, named sections, symbol tables; no code.
#ifndef HAWSER_TESTS_UNIT_INTERPOSER_CUDART_ELF_BUILDER_H_
#define HAWSER_TESTS_UNIT_INTERPOSER_CUDART_ELF_BUILDER_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hawser::redirect::testing {

class ElfBuilder {
 public:
  ElfBuilder& Section(const std::string& name) {
    extra_.push_back(name);
    return *this;
  }
  ElfBuilder& Function(const std::string& name, uint64_t value, uint64_t size) {
    symbols_.push_back({name, value, size, true});
    return *this;
  }
  ElfBuilder& Export(const std::string& name, uint64_t value, uint64_t size) {
    dynamic_.push_back({name, value, size, true});
    return *this;
  }
  ElfBuilder& Import(const std::string& name) {
    dynamic_.push_back({name, 0, 0, false});
    return *this;
  }

  std::vector<uint8_t> Build() const {
    std::vector<uint8_t> file(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
    std::vector<Elf64_Shdr> sections(1);
    std::string names(1, '\0');
    const auto add = [&](const std::string& name, uint32_t type, const std::string& data, uint32_t link,
                         uint64_t entry) {
      Elf64_Shdr section{};
      section.sh_name = static_cast<uint32_t>(names.size());
      section.sh_type = type;
      section.sh_offset = file.size();
      section.sh_size = data.size();
      section.sh_link = link;
      section.sh_entsize = entry;
      names += name + '\0';
      file.insert(file.end(), data.begin(), data.end());
      sections.push_back(section);
    };
    const auto add_table = [&](const std::vector<Symbol>& from, const char* name, uint32_t type) {
      if (from.empty()) return;
      std::string strings(1, '\0');
      std::string table(sizeof(Elf64_Sym), '\0');
      for (const Symbol& symbol : from) {
        Elf64_Sym entry{};
        entry.st_name = static_cast<uint32_t>(strings.size());
        entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        entry.st_shndx = symbol.defined ? 1 : SHN_UNDEF;
        entry.st_value = symbol.value;
        entry.st_size = symbol.size;
        strings += symbol.name + '\0';
        table.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
      }
      add(std::string(name) + "str", SHT_STRTAB, strings, 0, 0);
      add(name, type, table, static_cast<uint32_t>(sections.size() - 1), sizeof(Elf64_Sym));
    };
    for (const std::string& name : extra_) add(name, SHT_PROGBITS, "data", 0, 0);
    add_table(dynamic_, ".dynsym", SHT_DYNSYM);
    add_table(symbols_, ".symtab", SHT_SYMTAB);
    add(".shstrtab", SHT_STRTAB, "", 0, 0);
    sections.back().sh_offset = file.size();
    sections.back().sh_size = names.size();
    file.insert(file.end(), names.begin(), names.end());
    while (file.size() % 8 != 0) file.push_back(0);

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    header.e_shoff = file.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections.size());
    header.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_filesz = segment.p_memsz = 0x10000;
    std::memcpy(file.data(), &header, sizeof(header));
    std::memcpy(file.data() + sizeof(header), &segment, sizeof(segment));
    const auto* table = reinterpret_cast<const uint8_t*>(sections.data());
    file.insert(file.end(), table, table + sections.size() * sizeof(Elf64_Shdr));
    return file;
  }

 private:
  struct Symbol {
    std::string name;
    uint64_t value;
    uint64_t size;
    bool defined;
  };
  std::vector<std::string> extra_;
  std::vector<Symbol> symbols_;
  std::vector<Symbol> dynamic_;
};

}  // namespace hawser::redirect::testing

#endif  // HAWSER_TESTS_UNIT_INTERPOSER_CUDART_ELF_BUILDER_H_
