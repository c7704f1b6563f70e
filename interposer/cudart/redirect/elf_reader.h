// SPDX-License-Identifier: Apache-2.0
// Reads what redirection needs of an ELF file: headers, sections, symbols (System V ABI, chapters 4 and 5; 64-bit,
// little-endian, x86-64 only). The file is not trusted: every offset, size and count is checked before it is used, and
// nothing larger than fixed limits is read.
#ifndef HAWSER_INTERPOSER_CUDART_REDIRECT_ELF_READER_H_
#define HAWSER_INTERPOSER_CUDART_REDIRECT_ELF_READER_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::redirect {

/// Bytes by position. An implementation returns false for what is not wholly there.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  virtual bool Read(uint64_t offset, void* to, size_t size) const = 0;
};

/// An open file; does not own the descriptor.
class FileSource : public ByteSource {
 public:
  explicit FileSource(int descriptor) : descriptor_(descriptor) {}
  bool Read(uint64_t offset, void* to, size_t size) const override;

 private:
  int descriptor_;
};

/// Memory, which must outlive this.
class MemorySource : public ByteSource {
 public:
  MemorySource(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool Read(uint64_t offset, void* to, size_t size) const override;

 private:
  const uint8_t* data_;
  size_t size_;
};

struct ElfSymbol {
  std::string_view name;  ///< Points into the table that it came with.
  uint64_t value = 0;
  uint64_t size = 0;
  unsigned char type = 0;  ///< STT_...
  bool defined = false;
};

/// A symbol table with the names that its symbols point into.
struct ElfSymbols {
  std::string names;
  std::vector<ElfSymbol> symbols;
};

class ElfReader {
 public:
  /// Does not own the source.
  explicit ElfReader(const ByteSource& source) : source_(source) {}

  /// Reads the headers. False for what is no such file.
  bool Open();
  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  bool HasSection(std::string_view name) const;
  /// True when the names of the table of this type contain `name`: quick where ReadSymbols() would read megabytes of
  /// symbols that do not matter.
  bool NamesContain(uint32_t type, std::string_view name) const;
  /// The first table of this type (SHT_SYMTAB or SHT_DYNSYM). False when there is none, or when it is not sound.
  bool ReadSymbols(uint32_t type, ElfSymbols* symbols) const;

 private:
  static constexpr size_t kMaxHeaders = 4096;
  static constexpr uint64_t kMaxTable = uint64_t{256} << 20;

  /// The table of this type and the names of its symbols; false when there are none or when they are not sound.
  bool FindTable(uint32_t type, const Elf64_Shdr** table, const Elf64_Shdr** names) const;
  bool ReadSegments();
  bool ReadSections();

  const ByteSource& source_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::string section_names_;
};

}  // namespace hawser::redirect

#endif  // HAWSER_INTERPOSER_CUDART_REDIRECT_ELF_READER_H_
