// SPDX-License-Identifier: Apache-2.0
// Handlers for the common instructions, written so that the compiler makes vector code of them. Compiled once per
// instruction set; Find takes the best that the processor has.
#ifndef HAWSER_SOFTCUDA_EXEC_LANES_H_
#define HAWSER_SOFTCUDA_EXEC_LANES_H_

#include "softcuda/exec/image.h"

namespace hawser::exec {

enum class LaneOp : uint8_t {
  kMov,
  kAdd,
  kSub,
  kMulLo,
  kMulHi,
  kMulWide,
  kMadLo,
  kMadWide,
  kAnd,
  kOr,
  kXor,
  kNot,
  kShl,
  kShr,
  kMin,
  kMax,
  kNeg,
  kAbs,
  kFma,
  kMul,
  kDiv,
  kDivApprox,
  kSqrt,
  kRcp,
  kSetp,
  kSelp,
  kConvert,
  kLoad,
  kStore,
  kUnpack,
  kPack,
};

/// Of setp and set. The unordered forms are true when an operand is NaN.
enum class Compare : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };

/// Insn::sub of setp: how the comparison is combined with predicate `r`.
enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };

inline constexpr uint32_t kFlagFtz = 1;
inline constexpr uint32_t kFlagSat = 2;
inline constexpr uint32_t kFlagNan = 4;         ///< min.NaN, max.NaN
inline constexpr uint32_t kFlagNegateR = 8;     ///< Predicate `r` is used negated.
inline constexpr uint32_t kFlagAddress64 = 16;  ///< Address register of 64 bits (else 32).

/// The handler for `op` on `type` (and `type2`: source of a conversion, element of a pack), or null when there is none
/// and the decoder has to take the scalar way. `compare` is for kSetp. Float operations here round to nearest even.
Handler FindLaneOp(LaneOp op, ptx::Type type, ptx::Type type2, uint32_t flags, Compare compare);

namespace lanes_base {
Handler Find(LaneOp op, ptx::Type type, ptx::Type type2, uint32_t flags, Compare compare);
}
namespace lanes_v3 {
Handler Find(LaneOp op, ptx::Type type, ptx::Type type2, uint32_t flags, Compare compare);
}

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_LANES_H_
