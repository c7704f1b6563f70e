// SPDX-License-Identifier: Apache-2.0
// PTX's state spaces, fundamental types and special registers.
#ifndef HAWSER_SOFTCUDA_PTX_TYPES_H_
#define HAWSER_SOFTCUDA_PTX_TYPES_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace hawser::ptx {

enum class Space : uint8_t { kNone, kRegister, kGlobal, kConst, kShared, kLocal, kParam };

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF64,
  kU16x2,
  kS16x2,
  kE4m3x2,
  kE5m2x2,
  kE4m3,
  kE5m2,
  kTexref,
  kSamplerref,
  kSurfref,
};

/// Bytes of a value; 0 for kNone, 1 for a predicate's place in memory (it has none).
uint32_t SizeOf(Type type);
bool IsSigned(Type type);
bool IsUnsigned(Type type);
bool IsBits(Type type);
/// u, s or b of 8 to 64 bits.
bool IsInteger(Type type);
/// f16, bf16, f32, f64 and the packed forms.
bool IsFloat(Type type);
std::string_view Name(Type type);
/// "f32" -> kF32 (no dot).
std::optional<Type> TypeFromName(std::string_view name);
std::string_view Name(Space space);

enum class SpecialRegister : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kWarpSize,
  kSmId,
  kNsmId,
  kGridId,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kPm,
  kDynamicSmemSize,
  kTotalSmemSize,
  kAggrSmemSize,
  kReservedSmem,
  kCurrentGraphExec,
  kZero,
  kClusterIdX,
  kClusterIdY,
  kClusterIdZ,
  kNclusterIdX,
  kNclusterIdY,
  kNclusterIdZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kEnvreg0,  ///< .. kEnvreg0 + 31
  kEnvreg31 = kEnvreg0 + 31,
  kCount,
};

/// "%tid.x" -> kTidX.
std::optional<SpecialRegister> SpecialFromName(std::string_view name);
/// Bytes of the register: 2 never, 4 or 8.
uint32_t SizeOf(SpecialRegister which);

}  // namespace hawser::ptx

#endif  // HAWSER_SOFTCUDA_PTX_TYPES_H_
