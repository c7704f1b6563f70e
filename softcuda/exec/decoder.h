// SPDX-License-Identifier: Apache-2.0
// PTX instructions -> Insns with handlers. One FunctionDecoder per function while linking; private to softcuda/exec.
// The decode_*.cc files each hold a family of instructions: handlers first, then the decoding members.
#ifndef HAWSER_SOFTCUDA_EXEC_DECODER_H_
#define HAWSER_SOFTCUDA_EXEC_DECODER_H_

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softcuda/exec/image.h"
#include "softcuda/exec/lanes.h"

namespace hawser::exec {

struct SystemCall;  // system_calls.h

/// "ld.global.v2.f32" taken apart.
class OpText {
 public:
  explicit OpText(std::string_view text);
  std::string_view base() const { return base_; }
  bool Has(std::string_view modifier) const;
  /// The modifiers that are types, in order.
  ptx::Type type(size_t i = 0) const { return i < type_count_ ? types_[i] : ptx::Type::kNone; }
  size_t type_count() const { return type_count_; }
  size_t count() const { return count_; }
  std::string_view modifier(size_t i) const { return i < count_ ? parts_[i] : std::string_view(); }
  /// Elements of .v2, .v4, .v8; else 1.
  uint8_t vector() const;
  ptx::Space space() const;
  /// kFlagFtz, kFlagSat, kFlagNan.
  uint32_t flags() const;

 private:
  std::string_view base_;
  std::array<std::string_view, 16> parts_;
  size_t count_ = 0;
  std::array<ptx::Type, 8> types_{};
  size_t type_count_ = 0;
};

/// What the decoder needs to know of the rest of the program.
class SymbolScope {
 public:
  enum class Kind : uint8_t { kUnknown, kVariable, kShared, kFunction, kSystemCall };
  struct Found {
    Kind kind = Kind::kUnknown;
    uint32_t index = 0;                ///< kVariable: Program symbol; kFunction: Image code; kShared: in SharedLayout.
    const SystemCall* call = nullptr;  ///< kSystemCall
    uint64_t offset = 0;               ///< kShared: in the block's shared memory.
    bool dynamic = false;              ///< kShared: extern [], right after everything static.
    ptx::Space space = ptx::Space::kNone;
  };
  virtual ~SymbolScope() = default;
  virtual Found Find(const ptx::Module& module, std::string_view name) const = 0;
};

class FunctionDecoder {
 public:
  FunctionDecoder(Image* image, Code* code, const SymbolScope* scope, std::vector<std::string>* unsupported);
  /// Lays out parameters and registers; before any Decode, because calls look at their callees' formals. An error text,
  /// empty when all is well.
  std::string Prepare();
  /// An error text, empty when all is well.
  std::string Decode();

 private:
  friend struct OpcodeTable;
  using Type = ptx::Type;
  using Space = ptx::Space;
  using Kind = ptx::OperandKind;
  using Member = bool (FunctionDecoder::*)(const OpText& op);

  void DecodeInstruction(uint32_t index);
  /// `place`: of CodeLayout; `source`: the instruction that it belongs to.
  void EmitJump(uint32_t place, uint32_t source);

  // Operands (decoder.cc). On failure `why_` says why and the instruction becomes one that faults.
  bool Fail(std::string why);
  /// False: a part of a register, or its negative, which only video instructions know.
  bool Whole(const ptx::Operand& o, bool may_be_negated = false);
  size_t operands() const { return ins_->operand_count; }
  const ptx::Operand& operand(size_t i) const { return function_.operands[ins_->first_operand + i]; }
  const ptx::Operand& element(const ptx::Operand& group, size_t i) const { return function_.operands[group.first + i]; }
  bool Need(size_t low, size_t high);
  bool Need(size_t count) { return Need(count, count); }
  Slot RegisterSlot(uint32_t index) const;
  Slot ConstantSlot(uint64_t bits, uint32_t width);
  Slot Temporary(uint32_t width);
  /// A value of `type`. `width` non-null: the register may be wider, and its true width is stored there.
  bool Source(const ptx::Operand& o, Type type, Slot* slot, uint8_t* width = nullptr);
  bool SourceN(size_t i, Type type, Slot* slot, uint8_t* width = nullptr) {
    return i < operands() ? Source(operand(i), type, slot, width) : Fail("too few operands");
  }
  bool Destination(const ptx::Operand& o, Type type, Slot* slot, uint8_t* width = nullptr);
  bool Predicate(const ptx::Operand& o, uint32_t* slot, bool* negated);
  /// Of a source, which may be a constant.
  bool PredicateSource(const ptx::Operand& o, uint32_t* slot, bool* negated);
  bool PredicateDestination(const ptx::Operand& o, uint32_t* slot);
  bool VectorSources(const ptx::Operand& o, Type type, size_t count, std::vector<Slot>* slots,
                     uint8_t* width = nullptr);
  bool VectorDestinations(const ptx::Operand& o, Type type, size_t count, std::vector<Slot>* slots,
                          uint8_t* width = nullptr);
  /// Address operand: slot of the base in `insn->a`, offset in `imm`, kFlagAddress64.
  bool Address(const ptx::Operand& o, Space space, Insn* insn);
  /// Address of a variable or symbol as a constant of `width` bytes.
  bool AddressOf(const ptx::Operand& o, uint32_t width, Slot* slot);
  bool SpecialValue(ptx::SpecialRegister which, uint32_t width, Slot* slot);
  Extra& MakeExtra(Insn* insn);
  Insn NewInsn() const;
  void Emit(const Insn& insn);
  void EmitIllegal();
  static std::vector<uint32_t> LayOut(const ptx::Function& function, uint32_t* bytes);
  uint32_t ParamArea(const ptx::Operand& o, const ptx::Variable** variable) const;
  bool IsKernelParameter(uint32_t variable) const;

  /// d = scalar function of up to three operands of `type`, each zero-extended.
  bool EmitScalar(ScalarFn fn, Type type, uint8_t op, uint32_t flags, size_t sources, Type destination, Type third);

  // Families.
  bool AddSub(const OpText& op);
  bool Mul(const OpText& op);
  bool Mad(const OpText& op);
  bool Mul24(const OpText& op);
  bool Carry(const OpText& op);
  bool DivRem(const OpText& op);
  bool MinMax(const OpText& op);
  bool AbsNeg(const OpText& op);
  bool Logic(const OpText& op);
  bool LogicPredicate(const OpText& op);
  bool Shift(const OpText& op);
  bool IntegerMisc(const OpText& op);
  bool Lop3(const OpText& op);
  bool Prmt(const OpText& op);
  bool FloatArithmetic(const OpText& op);
  bool Fma(const OpText& op);
  bool FloatMisc(const OpText& op);
  bool Cvt(const OpText& op);
  bool CvtPack(const OpText& op);
  bool Setp(const OpText& op);
  bool SetInstruction(const OpText& op);
  bool Selp(const OpText& op);
  bool Slct(const OpText& op);
  bool Mov(const OpText& op);
  bool Cvta(const OpText& op);
  bool Isspacep(const OpText& op);
  bool Load(const OpText& op);
  bool Store(const OpText& op);
  bool LoadStoreParam(const OpText& op, bool load, uint32_t area, uint32_t size);
  bool Atom(const OpText& op);
  bool Nothing(const OpText& op);
  bool Fence(const OpText& op);
  bool CpAsync(const OpText& op);
  bool Mbarrier(const OpText& op);
  bool BulkCopyOp(const OpText& op);
  bool TensorMapOp(const OpText& op);
  /// cp.reduce.async.bulk: what is done with the elements.
  bool BulkReduction(const OpText& op, Insn* insn);
  bool TensorCopyOp(const OpText& op);
  /// The mbarrier object that a bulk copy completes: e, wd, r; sub becomes 1 (mbarrier.h).
  bool BarrierObject(const ptx::Operand& o, Insn* insn);
  /// Copies to several blocks of the cluster: operand `i` says to which.
  bool Multicast(const OpText& op, size_t i, Insn* insn);
  /// st.async, red.async: complete_tx of what the instruction before has written.
  bool EmitCompletion(const ptx::Operand& o, uint32_t bytes);
  bool StackOp(const OpText& op);
  bool Bra(const OpText& op);
  bool Brx(const OpText& op);
  bool CallOp(const OpText& op);
  bool CallArguments(const ptx::Operand& o, bool results, std::vector<CallArgument>* list);
  bool Ret(const OpText& op);
  bool Exit(const OpText& op);
  bool Trap(const OpText& op);
  bool Nanosleep(const OpText& op);
  bool Bar(const OpText& op);
  bool Shfl(const OpText& op);
  bool Vote(const OpText& op);
  bool Match(const OpText& op);
  bool Activemask(const OpText& op);
  bool Redux(const OpText& op);
  bool Elect(const OpText& op);
  bool Tex(const OpText& op);
  bool Surface(const OpText& op);
  bool Txq(const OpText& op);
  bool Video(const OpText& op);
  bool VideoMad(const OpText& op);
  /// A register's part or all of it: the slot of the whole.
  bool VideoSource(size_t i, Slot* slot, ptx::Part* part, bool* negated = nullptr);
  bool Matrix(const OpText& op);
  bool MemberMask(const ptx::Operand* o, Insn* insn);
  static Member FindMember(std::string_view base);

  Image* image_;
  Code* code_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  const SymbolScope* scope_;
  std::vector<std::string>* unsupported_;
  std::vector<uint32_t> register_offset_;
  std::vector<uint32_t> variable_place_;  ///< .param: area in the frame; .local: offset; .shared: offset.
  std::vector<bool> address_taken_;       ///< .param of a device function whose address is used.
  uint32_t carry_ = 0;                    ///< Slot of the CC register.
  const ptx::Instruction* ins_ = nullptr;
  uint32_t index_ = 0;
  std::string why_;
};

/// Lane by lane: d = insn.scalar(a, b, c).
void ScalarHandler(Warp& w, const Insn& i, uint32_t mask);

/// System calls (system_calls.cc). Null: there is none of this name.
const SystemCall* FindSystemCall(std::string_view name);
/// Whether it can be called with these: enough of them, each as large as it should be.
bool Fits(const SystemCall& call, std::span<const CallArgument> arguments);

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_DECODER_H_
