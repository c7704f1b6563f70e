// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/types.h"

#include <array>
#include <string>
#include <unordered_map>

namespace hawser::ptx {
namespace {

struct TypeFacts {
  std::string_view name;
  uint8_t size;
  char kind;  ///< u, s, b, f, p (predicate), o (opaque)
};

constexpr std::array<TypeFacts, static_cast<size_t>(Type::kSurfref) + 1> kTypes = {{
    {"", 0, 'o'},        {"pred", 1, 'p'},  {"b8", 1, 'b'},    {"b16", 2, 'b'},    {"b32", 4, 'b'},
    {"b64", 8, 'b'},     {"b128", 16, 'b'}, {"u8", 1, 'u'},    {"u16", 2, 'u'},    {"u32", 4, 'u'},
    {"u64", 8, 'u'},     {"s8", 1, 's'},    {"s16", 2, 's'},   {"s32", 4, 's'},    {"s64", 8, 's'},
    {"f16", 2, 'f'},     {"f16x2", 4, 'f'}, {"bf16", 2, 'f'},  {"bf16x2", 4, 'f'}, {"tf32", 4, 'f'},
    {"f32", 4, 'f'},     {"f64", 8, 'f'},   {"u16x2", 4, 'x'}, {"s16x2", 4, 'x'},  {"e4m3x2", 2, 'f'},
    {"e5m2x2", 2, 'f'},  {"e4m3", 1, 'x'},  {"e5m2", 1, 'x'},  {"texref", 8, 'o'}, {"samplerref", 8, 'o'},
    {"surfref", 8, 'o'},
}};

const TypeFacts& Facts(Type type) { return kTypes[static_cast<size_t>(type)]; }

std::unordered_map<std::string, SpecialRegister> MakeSpecials() {
  using S = SpecialRegister;
  std::unordered_map<std::string, S> map;
  const auto vector = [&](const std::string& name, S first) {
    for (uint32_t i = 0; i < 3; ++i) {
      map["%" + name + "." + "xyz"[i]] = static_cast<S>(static_cast<uint32_t>(first) + i);
    }
    map["%" + name + ".w"] = S::kZero;
  };
  vector("tid", S::kTidX);
  vector("ntid", S::kNtidX);
  vector("ctaid", S::kCtaidX);
  vector("nctaid", S::kNctaidX);
  vector("clusterid", S::kClusterIdX);
  vector("nclusterid", S::kNclusterIdX);
  vector("cluster_ctaid", S::kClusterCtaidX);
  vector("cluster_nctaid", S::kClusterNctaidX);
  map["%cluster_ctarank"] = S::kClusterCtarank;
  map["%cluster_nctarank"] = S::kClusterNctarank;
  map["%is_explicit_cluster"] = S::kIsExplicitCluster;
  map["%laneid"] = S::kLaneId;
  map["%warpid"] = S::kWarpId;
  map["%nwarpid"] = S::kNwarpId;
  map["WARP_SZ"] = S::kWarpSize;
  map["%smid"] = S::kSmId;
  map["%nsmid"] = S::kNsmId;
  map["%gridid"] = S::kGridId;
  map["%lanemask_eq"] = S::kLanemaskEq;
  map["%lanemask_le"] = S::kLanemaskLe;
  map["%lanemask_lt"] = S::kLanemaskLt;
  map["%lanemask_ge"] = S::kLanemaskGe;
  map["%lanemask_gt"] = S::kLanemaskGt;
  map["%clock"] = S::kClock;
  map["%clock_hi"] = S::kClockHi;
  map["%clock64"] = S::kClock64;
  map["%globaltimer"] = S::kGlobaltimer;
  map["%globaltimer_lo"] = S::kGlobaltimerLo;
  map["%globaltimer_hi"] = S::kGlobaltimerHi;
  map["%dynamic_smem_size"] = S::kDynamicSmemSize;
  map["%total_smem_size"] = S::kTotalSmemSize;
  map["%aggr_smem_size"] = S::kAggrSmemSize;
  map["%current_graph_exec"] = S::kCurrentGraphExec;
  for (const char* name : {"%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
                           "%reserved_smem_offset_0", "%reserved_smem_offset_1"}) {
    map[name] = S::kReservedSmem;
  }
  for (uint32_t i = 0; i < 8; ++i) {
    map["%pm" + std::to_string(i)] = S::kPm;
    map["%pm" + std::to_string(i) + "_64"] = S::kZero;
  }
  for (uint32_t i = 0; i < 32; ++i) {
    map["%envreg" + std::to_string(i)] = static_cast<S>(static_cast<uint32_t>(S::kEnvreg0) + i);
  }
  return map;
}

}  // namespace

uint32_t SizeOf(Type type) { return Facts(type).size; }
bool IsSigned(Type type) { return Facts(type).kind == 's'; }
bool IsUnsigned(Type type) { return Facts(type).kind == 'u'; }
bool IsBits(Type type) { return Facts(type).kind == 'b'; }
bool IsInteger(Type type) {
  const char kind = Facts(type).kind;
  return (kind == 'u' || kind == 's' || kind == 'b') && SizeOf(type) <= 8;
}
bool IsFloat(Type type) { return Facts(type).kind == 'f'; }
std::string_view Name(Type type) { return Facts(type).name; }

std::optional<Type> TypeFromName(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (size_t i = 1; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return std::nullopt;
}

std::string_view Name(Space space) {
  constexpr std::array<std::string_view, 7> kNames = {"generic", "reg", "global", "const", "shared", "local", "param"};
  return kNames[static_cast<size_t>(space)];
}

std::optional<SpecialRegister> SpecialFromName(std::string_view name) {
  static const auto* const kMap = new std::unordered_map<std::string, SpecialRegister>(MakeSpecials());
  const auto it = kMap->find(std::string(name));
  if (it == kMap->end()) return std::nullopt;
  return it->second;
}

uint32_t SizeOf(SpecialRegister which) {
  using S = SpecialRegister;
  return which == S::kClock64 || which == S::kGlobaltimer || which == S::kGridId || which == S::kCurrentGraphExec ? 8
                                                                                                                  : 4;
}

}  // namespace hawser::ptx
