// SPDX-License-Identifier: Apache-2.0
// Where static .shared variables lie in a block's shared memory.
//
// A kernel has those that it, or a function that it calls, names, and no others: a program may have many kernels with
// shared memory of their own at module scope. A variable lies at the same place for all kernels that have it, as its
// address is a constant of the functions that name it. Measured with ptxas 13.0: it counts in this way.
#ifndef HAWSER_SOFTCUDA_EXEC_SHARED_LAYOUT_H_
#define HAWSER_SOFTCUDA_EXEC_SHARED_LAYOUT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "softcuda/exec/decoder.h"
#include "softcuda/exec/image.h"

namespace hawser::exec {

class SharedLayout {
 public:
  /// Most bytes of a block; far above what any launch may have.
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  /// A variable at module scope; what names it finds a SymbolScope::Kind::kShared that is not dynamic with the number
  /// that this returns as its index.
  uint32_t Add(const ptx::Variable& variable);
  /// Places all variables, also those inside functions: fills in shared_places and static_shared of `codes`, each of
  /// which is at its index. An error text, empty when all is well.
  std::string Place(std::deque<Code>* codes, const SymbolScope& scope);
  /// Once it is placed.
  uint64_t OffsetOf(uint32_t number) const { return variables_[number].offset; }

 private:
  struct Placed {
    const ptx::Variable* variable = nullptr;
    uint64_t offset = 0;
    std::vector<uint32_t> kernels;  ///< That have it.
  };
  /// What a function names.
  struct Uses {
    std::vector<uint32_t> variables;
    std::vector<uint32_t> functions;
    bool calls_any = false;  ///< Through a pointer.
  };
  using Names = std::unordered_map<const ptx::Module*, std::vector<SymbolScope::Found>>;

  static Uses UsesOf(const Code& code, const std::vector<SymbolScope::Found>& names);
  /// False: there is too much to look at.
  bool FindKernels(const std::deque<Code>& codes, const std::vector<Uses>& uses);
  std::string PlaceAll(std::deque<Code>* codes);

  std::vector<Placed> variables_;
  uint64_t steps_ = 0;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_SHARED_LAYOUT_H_
