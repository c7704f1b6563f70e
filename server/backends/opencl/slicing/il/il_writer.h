// SPDX-License-Identifier: Apache-2.0
// Writes instructions of SPIR-V.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_WRITER_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_WRITER_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "spirv/unified1/spirv.hpp11"

namespace hawser::server::slicing {

/// Gives out ids that a module does not use. Threading: none.
class IlIds {
 public:
  explicit IlIds(uint32_t bound) : next_(bound) {}
  uint32_t New() { return next_++; }
  uint32_t bound() const { return next_; }

 private:
  uint32_t next_;
};

/// A run of instructions that is put into a module later. Threading: none.
class IlWriter {
 public:
  explicit IlWriter(IlIds* ids) : ids_(ids) {}

  /// `operands` are all words behind the first, at most 65,534.
  void Add(spv::Op opcode, std::initializer_list<uint32_t> operands) {
    words_.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | static_cast<uint32_t>(opcode));
    words_.insert(words_.end(), operands);
  }
  /// An instruction with a type and a result, whose id it returns.
  uint32_t Value(spv::Op opcode, uint32_t type, std::initializer_list<uint32_t> operands) {
    const uint32_t result = ids_->New();
    words_.push_back(static_cast<uint32_t>(operands.size() + 3) << 16 | static_cast<uint32_t>(opcode));
    words_.push_back(type);
    words_.push_back(result);
    words_.insert(words_.end(), operands);
    return result;
  }
  void Append(std::span<const uint32_t> words) { words_.insert(words_.end(), words.begin(), words.end()); }
  const std::vector<uint32_t>& words() const { return words_; }
  std::vector<uint32_t> Take() { return std::move(words_); }

 private:
  IlIds* ids_;
  std::vector<uint32_t> words_;
};

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_IL_IL_WRITER_H_
