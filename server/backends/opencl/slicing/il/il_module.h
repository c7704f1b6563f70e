// SPDX-License-Identifier: Apache-2.0
// A program in intermediate language (SPIR-V), taken apart into its instructions.
//
// SPIRV-Tools reads the bytes: it knows the grammar, refuses what breaks it, and tells ids from literals. That is all
// that is checked: types may not fit and names may mean nothing, so users look up what they rely on. Instructions that
// SPIRV-Tools does not know make a module unreadable, which is the wanted answer: unknown means whole.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_MODULE_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/status.h"

namespace hawser::server::slicing {

/// One instruction. Views its module.
struct IlInstruction {
  uint16_t opcode = 0;
  uint32_t type = 0;                 ///< Id of the result's type; 0: none.
  uint32_t result = 0;               ///< Id; 0: none.
  std::span<const uint32_t> words;   ///< All of it, from the opcode on, in the host's byte order.
  std::span<const uint32_t> inputs;  ///< The ids that it names, in order, without type and result.
};

/// A module of the Kernel execution environment. Threading: none; const use from many threads.
class IlModule {
 public:
  /// Reads a module in either byte order. Fails, with the reason, for what is none, for more than `kMostWords`, and for
  /// ids beyond SPIR-V's own limit.
  static wire::Result<IlModule> Parse(std::span<const std::byte> bytes);

  static constexpr size_t kMostWords = size_t{32} << 20;
  /// The first id that may not be used (SPIR-V 2.17, universal limits).
  static constexpr uint32_t kMostIds = 0x3fffff;
  static constexpr size_t kHeaderWords = 5;

  size_t size() const { return records_.size(); }
  IlInstruction at(size_t index) const;
  /// Ids are below this.
  uint32_t bound() const { return header_[3]; }
  /// 0x00010000 is 1.0, 0x00010400 is 1.4.
  uint32_t version() const { return header_[1]; }
  std::span<const uint32_t> header() const { return header_; }

  IlModule(IlModule&&) = default;
  IlModule& operator=(IlModule&&) = default;
  IlModule(const IlModule&) = delete;
  IlModule& operator=(const IlModule&) = delete;

 private:
  friend struct IlReader;
  struct Record {
    uint32_t first_word = 0, words = 0, first_input = 0, inputs = 0;
    uint32_t type = 0, result = 0;
    uint16_t opcode = 0;
  };

  IlModule() = default;

  std::vector<uint32_t> header_;
  std::vector<uint32_t> words_;
  std::vector<uint32_t> inputs_;
  std::vector<Record> records_;
};

/// The text of a literal string that begins at `words[0]`, at most to its end.
std::string_view IlText(std::span<const uint32_t> words);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_MODULE_H_
