// SPDX-License-Identifier: Apache-2.0
// The decoded form of a program: what the warps execute. Private to softcuda/exec. Immutable once bound.
//
// A register of a warp is an array of 32 lanes at a fixed offset of the frame; a predicate is one 32-bit mask.
// Constants are such arrays too, in the image's pool. Every instruction has a handler that works on all lanes of a
// mask.
#ifndef HAWSER_SOFTCUDA_EXEC_IMAGE_H_
#define HAWSER_SOFTCUDA_EXEC_IMAGE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "softcuda/exec/placement.h"
#include "softcuda/ptx/module.h"

namespace hawser::exec {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;
inline constexpr uint32_t kNoSlot = 0xffffffff;

class Warp;
struct Insn;
struct Code;

/// Executes `insn` for the lanes of `mask` (never empty).
using Handler = void (*)(Warp& warp, const Insn& insn, uint32_t mask);
/// One lane of an uncommon instruction; values are zero-extended to 64 bits.
using ScalarFn = uint64_t (*)(const Insn& insn, uint64_t a, uint64_t b, uint64_t c);

/// Where 32 lanes lie: at `value` of the frame (mask all ones), or at the address `value` (mask zero).
struct Slot {
  uint64_t value = 0;
  uint64_t frame_mask = 0;
};

enum class Control : uint8_t {
  kPlain,
  kBranch,         ///< To `target`.
  kBranchIndexed,  ///< brx.idx: a = index, extra->targets
  kCall,           ///< extra->call
  kReturn,
  kExit,
  kBarrier,   ///< extra->barrier
  kWarpSync,  ///< Plain once all lanes of the membermask (`e`) are here.
  kYield,     ///< nanosleep: others go first.
};

struct CallArgument {
  bool is_register = false;  ///< The outer side: a slot; else a parameter area of the caller's frame.
  Slot slot;
  uint32_t area = 0;  ///< Offset in the caller's frame.
  uint32_t size = 0;  ///< Bytes per lane.
};

struct CallFacts {
  const Code* callee = nullptr;  ///< Null: through the pointer in `a`.
  std::vector<CallArgument> results;
  std::vector<CallArgument> arguments;
};

struct BarrierFacts {
  enum class Kind : uint8_t { kSync, kArrive, kRedPopc, kRedAnd, kRedOr, kClusterArrive, kClusterWait };
  Kind kind = Kind::kSync;
  bool has_count = false;
  bool negated = false;  ///< Of the reduced predicate.
  uint32_t predicate = kNoSlot;
  uint32_t result_predicate = kNoSlot;
};

/// What only some instructions need.
struct Extra {
  std::vector<Slot> slots;  ///< Elements of vector operands; a sink has frame_mask 0 and value 0.
  std::vector<Slot> more;   ///< Second vector operand.
  std::vector<uint32_t> targets;
  CallFacts call;
  BarrierFacts barrier;
  std::string text;  ///< Message of an illegal instruction.
  std::vector<uint32_t> numbers;
};

struct Insn {
  Handler fn = nullptr;
  ScalarFn scalar = nullptr;
  Slot d, a, b, c, e;
  uint64_t imm = 0;
  uint32_t predicate = kNoSlot;  ///< Frame offset of the guard.
  bool predicate_negated = false;
  Control control = Control::kPlain;
  uint8_t wd = 0, wa = 0, wb = 0, wc = 0;  ///< Bytes per lane of d, a, b, c.
  uint8_t count = 1;                       ///< Elements of a vector access.
  bool sign = false;                       ///< Memory values are sign-extended.
  bool strong = false;                     ///< volatile, acquire, relaxed: a loop around it may be waiting.
  uint8_t op = 0, sub = 0;                 ///< Small enumerations of the handler.
  ptx::Type type = ptx::Type::kNone;
  ptx::Type type2 = ptx::Type::kNone;
  ptx::Space space = ptx::Space::kNone;
  uint32_t p = kNoSlot, q = kNoSlot, r = kNoSlot;  ///< Predicate slots: destination(s), source.
  uint32_t target = 0;
  uint32_t site = 0;    ///< Number of this memory access in the program.
  uint32_t flags = 0;   ///< Of the handler.
  uint32_t source = 0;  ///< Index in Function::instructions.
  const Extra* extra = nullptr;
};

/// A formal parameter or result of a function.
struct Formal {
  bool is_register = false;
  Slot slot;
  uint32_t area = 0;  ///< Offset in the frame: 32 lanes of `size` bytes each.
  uint32_t size = 0;
  uint32_t width = 0;        ///< Of the register.
  uint32_t local = kNoSlot;  ///< Its address is taken: it also lies at this offset of the local frame.
};

struct Code {
  std::string name;
  const ptx::Function* function = nullptr;
  std::shared_ptr<const ptx::Module> module;
  std::vector<Insn, PageAllocator<Insn>> insns;
  std::vector<Formal> results, parameters;
  uint64_t frame_bytes = 0;
  uint32_t local_bytes = 0;
  uint32_t index = 0;
  bool entry = false;
  bool uses_stack = false;  ///< alloca
  std::deque<Extra> extras;
  std::vector<const Code*> callees;
  bool calls_indirect = false;
  uint32_t static_shared = 0;           ///< Of a kernel: bytes that its blocks have, whatever the launch says.
  std::vector<uint32_t> shared_places;  ///< Of its own variables, by their index; empty: it has none in .shared.
};

/// An address that Bind fills in: into a constant's lanes.
struct ConstantFixup {
  uint64_t* lanes = nullptr;
  uint32_t width = 8;
  uint32_t symbol = 0;
  int64_t addend = 0;
};

class Image {
 public:
  /// 32 equal lanes of `width` (1..8) bytes, 64-byte aligned; shared by equal constants.
  const void* Constant(uint64_t bits, uint32_t width);
  /// 32 lanes of the address of a symbol (index in Program::symbols()) plus addend; right after Bind.
  const void* AddressConstant(uint32_t symbol, int64_t addend, uint32_t width);
  void Resolve(const std::vector<uint64_t>& addresses);
  /// The function that a device function pointer names; null when it names none.
  const Code* FunctionAt(uint64_t pointer) const;
  uint64_t PointerTo(const Code& code) const;
  /// The kernel (index in Program::kernels()) whose address this is; -1 when it is none's.
  int KernelAt(uint64_t pointer) const;

  std::deque<Code> codes;  ///< Stable addresses.
  uint32_t sites = 0;
  std::vector<int> kernel_codes;    ///< KernelInfo index -> codes index
  uint32_t dynamic_alignment = 16;  ///< Of dynamic shared memory.
  struct PendingInitial {
    uint32_t symbol = 0;
    const ptx::Variable* variable = nullptr;
    std::shared_ptr<const ptx::Module> module;
  };
  std::vector<PendingInitial> initials;
  std::vector<std::shared_ptr<const ptx::Module>> modules;
  std::map<std::string, uint64_t> function_pointers;

 private:
  const Code* CodeAt(uint64_t pointer) const;

  struct alignas(64) Lanes {
    uint64_t words[kLanes];
  };
  static constexpr size_t kPoolLanes = kPage / sizeof(Lanes);
  using Pool = std::vector<Lanes, PageAllocator<Lanes>>;
  Lanes& NewLanes();

  std::deque<Pool> pools_;
  size_t pool_used_ = 0;  ///< Lanes of the last one.
  std::map<std::pair<uint64_t, uint32_t>, const void*> constants_;
  std::vector<ConstantFixup> fixups_;
  mutable std::unique_ptr<uint64_t[]> descriptors_;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_IMAGE_H_
