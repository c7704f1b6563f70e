// SPDX-License-Identifier: Apache-2.0
// A parsed PTX module: declarations and instructions, with every name of the module's own scopes resolved.
// Immutable after Parse; may be shared between threads and linked into any number of programs.
// Source: "Parallel Thread Execution ISA", sections 4 (syntax), 5 (state spaces, types, variables), 7 (functions), 11
// (directives).
#ifndef HAWSER_SOFTCUDA_PTX_MODULE_H_
#define HAWSER_SOFTCUDA_PTX_MODULE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/ptx/types.h"
#include "wire/status.h"

namespace hawser::ptx {

inline constexpr uint32_t kNone = 0xffffffff;

enum class Linkage : uint8_t { kInternal, kVisible, kExtern, kWeak, kCommon };

/// One address inside an initialiser: the value of `symbol` (a name of Module::names) plus `addend`, written at
/// `offset`.
struct InitialAddress {
  uint64_t offset = 0;  ///< Bytes from the start of the variable.
  uint32_t name = kNone;
  int64_t addend = 0;
  uint8_t width = 8;  ///< Bytes written: 1 (with `mask`) to 8.
  uint8_t shift = 0;  ///< For .u8 initialisers of the form mask(symbol): the value is shifted right by this many bits.
  bool generic = false;  ///< generic(symbol): the generic address rather than the one inside the symbol's space.
};

/// A variable of any space: module scope (.global, .const, .shared), function scope (.local, .shared, .param),
/// parameters.
struct Variable {
  std::string name;
  Space space = Space::kNone;
  Type type = Type::kNone;
  Linkage linkage = Linkage::kInternal;
  uint32_t alignment = 1;        ///< Bytes, a power of two.
  uint64_t size = 0;             ///< Bytes; 0 for `extern x[]` (dynamic shared memory).
  uint32_t element_size = 0;     ///< Bytes of one element of an array; of the whole where it is none.
  uint32_t dimensions = 0;       ///< How many extents it was declared with; 0: no array.
  bool unsized = false;          ///< Declared with [].
  bool managed = false;          ///< .attribute(.managed)
  bool pointer = false;          ///< Kernel parameter with .ptr.
  std::vector<uint8_t> initial;  ///< Leading bytes; what is missing is zero.
  std::vector<InitialAddress> addresses;
  uint32_t line = 0;
};

struct Register {
  std::string_view name;
  Type type = Type::kNone;
};

enum class OperandKind : uint8_t {
  kRegister,   ///< index: Function::registers; count: a Part of it, 0: all
  kVariable,   ///< index: Function::variables (its address), plus `value`
  kSymbol,     ///< index: Module::names (address of a module-scope variable or function), plus `value`
  kInteger,    ///< value: 64 bits, two's complement
  kFloat32,    ///< value: the 32 bits of a 0f constant
  kFloat64,    ///< value: the 64 bits of a 0d or decimal constant
  kSpecial,    ///< index: SpecialRegister
  kVector,     ///< {a, b, ..}: [first, first + count) of Function::operands
  kAddress,    ///< [base + value]: operands[first] is the base (register, variable, symbol or integer)
  kTexture,    ///< [handle, {coordinates}]: [first, first + count)
  kList,       ///< (a, b, ..) of a call: [first, first + count)
  kLabel,      ///< index: instruction index the label stands before
  kTargets,    ///< index: Function::target_lists (brx.idx, call with .calltargets)
  kPrototype,  ///< index: Function::prototypes
  kSink,       ///< _
};

/// The bytes or halves of a register that an operand of a video instruction names: %r.b2, %r.h10. A digit of the name
/// is a lane's source, the last one lane 0's.
struct Part {
  bool halves = false;  ///< .h, else .b
  uint8_t count = 0;    ///< Digits: 1 to 4; 0: no part is named.
  std::array<uint8_t, 4> lanes{};

  /// "b0" (no dot); none when it is no such name.
  static std::optional<Part> FromName(std::string_view name);
  static Part FromCode(uint16_t code);
  uint16_t code() const;  ///< As in Operand::count; 0 for no part.
};

struct Operand {
  OperandKind kind = OperandKind::kSink;
  bool negated = false;  ///< !p, or -r: only video instructions have the latter.
  uint16_t count = 0;
  uint32_t index = kNone;
  uint32_t first = kNone;
  uint32_t second = kNone;  ///< p|q: operands[second] is the second destination.
  uint64_t value = 0;
};

struct Instruction {
  std::string_view op;         ///< "add.rn.ftz.f32": opcode and modifiers as written.
  std::string_view text;       ///< The whole statement, for reports.
  uint32_t line = 0;           ///< Line in the PTX text, from 1.
  uint32_t first_operand = 0;  ///< In Function::operands; consecutive.
  uint16_t operand_count = 0;
  bool predicated = false;
  bool predicate_negated = false;
  uint32_t predicate = kNone;  ///< Register index.
};

struct Prototype {
  std::vector<Variable> results;
  std::vector<Variable> parameters;
};

struct TargetList {
  std::vector<uint32_t> labels;  ///< .branchtargets: instruction indices.
  std::vector<uint32_t> names;   ///< .calltargets: Module::names.
};

struct Label {
  std::string_view name;
  uint32_t instruction = 0;
};

struct Function {
  std::string name;
  Linkage linkage = Linkage::kInternal;
  bool entry = false;
  bool defined = false;  ///< Has a body.
  bool noreturn = false;
  uint32_t line = 0;
  std::array<uint32_t, 3> max_threads{};       ///< .maxntid, zeros when absent.
  std::array<uint32_t, 3> required_threads{};  ///< .reqntid
  std::array<uint32_t, 3> required_cluster{};  ///< .reqnctapercluster: blocks of a cluster; zeros when absent.
  bool explicit_cluster = false;               ///< .explicitcluster: every launch must have a size of clusters.
  bool blocks_are_clusters = false;            ///< .blocksareclusters: launches count clusters.
  uint32_t max_cluster = 0;                    ///< .maxclusterrank: most blocks of a cluster; 0 when absent.
  uint32_t min_blocks = 0;                     ///< .minnctapersm
  uint32_t max_registers = 0;                  ///< .maxnreg
  uint32_t result_count = 0;                   ///< The first variables (or registers) are results,
  uint32_t parameter_count = 0;                ///< then come the parameters.
  std::vector<uint32_t> results;     ///< Each: index of a variable (.param), or kRegisterFlag | register index.
  std::vector<uint32_t> parameters;  ///< Likewise.
  std::vector<Register> registers;
  std::vector<Variable> variables;
  std::vector<Operand> operands;
  std::vector<Instruction> instructions;
  std::vector<Label> labels;
  std::vector<TargetList> target_lists;
  std::vector<Prototype> prototypes;

  static constexpr uint32_t kRegisterFlag = 0x80000000;  ///< In results, parameters: passed in a register.
};

/// .alias: another name of a function.
struct Alias {
  std::string name;
  std::string target;
  uint32_t line = 0;
};

struct Module {
  uint32_t version_major = 0, version_minor = 0;  ///< .version 8.4
  uint32_t target = 0;                            ///< .target sm_90a -> 90
  char target_suffix = 0;                         ///< 'a', 'f' or 0
  std::vector<std::string> names;                 ///< Interned module-scope names that operands refer to.
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<Alias> aliases;
  std::shared_ptr<const std::string> text;  ///< What the string views point into.
};

struct ParseOptions {
  size_t max_text = size_t{256} << 20;  ///< Bytes of text.
  std::string name = "PTX";             ///< For error texts.
};

/// Parses a whole module. The text is hostile: sizes, nesting and counts are bounded. A failure names line and token.
/// A NUL ends the text (drivers get NUL-terminated text with padding).
wire::Result<std::shared_ptr<const Module>> Parse(std::string_view text, const ParseOptions& options = {});

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_MODULE_H_
