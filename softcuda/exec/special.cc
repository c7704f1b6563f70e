// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/special.h"

#include <chrono>

#include "softcuda/exec/cluster.h"
#include "softcuda/exec/warp.h"

namespace hawser::exec {
namespace {

using ptx::SpecialRegister;

template <typename Clock>
uint64_t Now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

/// The time of day when it was first asked for, and from there on a clock that nobody sets back.
uint64_t Nanoseconds() {
  static const uint64_t offset = Now<std::chrono::system_clock>() - Now<std::chrono::steady_clock>();
  return Now<std::chrono::steady_clock>() + offset;
}

uint64_t Cycles(const Warp& w) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(Now<std::chrono::steady_clock>()) *
                               w.launch().config->device.clock_khz / 1'000'000);
}

/// Registers that are equal in all lanes.
uint64_t Uniform(const Warp& w, SpecialRegister which) {
  const LaunchState& state = w.launch();
  const LaunchConfig& config = *state.config;
  const Block& block = w.block();
  const auto index = static_cast<uint32_t>(which);
  const auto of = [&](SpecialRegister first) { return index - static_cast<uint32_t>(first); };
  using S = SpecialRegister;
  switch (which) {
    case S::kNtidX:
    case S::kNtidY:
    case S::kNtidZ:
      return config.block[of(S::kNtidX)];
    case S::kCtaidX:
    case S::kCtaidY:
    case S::kCtaidZ:
      return block.position[of(S::kCtaidX)];
    case S::kNctaidX:
    case S::kNctaidY:
    case S::kNctaidZ:
      return config.grid[of(S::kNctaidX)];
    case S::kClusterIdX:
    case S::kClusterIdY:
    case S::kClusterIdZ:
      return block.position[of(S::kClusterIdX)] / config.cluster[of(S::kClusterIdX)];
    case S::kNclusterIdX:
    case S::kNclusterIdY:
    case S::kNclusterIdZ:
      return config.grid[of(S::kNclusterIdX)] / config.cluster[of(S::kNclusterIdX)];
    case S::kClusterCtaidX:
    case S::kClusterCtaidY:
    case S::kClusterCtaidZ:
      return block.position[of(S::kClusterCtaidX)] % config.cluster[of(S::kClusterCtaidX)];
    case S::kClusterNctaidX:
    case S::kClusterNctaidY:
    case S::kClusterNctaidZ:
      return config.cluster[of(S::kClusterNctaidX)];
    case S::kClusterCtarank:
      return block.rank;
    case S::kClusterNctarank:
      return block.cluster.size();
    case S::kIsExplicitCluster:
      return config.explicit_cluster ? 1 : 0;
    case S::kWarpId:
      return w.index();
    case S::kNwarpId:
      return state.warps;
    case S::kWarpSize:
      return kLanes;
    case S::kSmId:
      return block.number % config.device.multiprocessors;
    case S::kNsmId:
      return config.device.multiprocessors;
    case S::kGridId:
      return config.grid_id;
    case S::kClock:
    case S::kClock64:
      return Cycles(w);
    case S::kClockHi:
      return Cycles(w) >> 32;
    case S::kGlobaltimer:
    case S::kGlobaltimerLo:
      return Nanoseconds();
    case S::kGlobaltimerHi:
      return Nanoseconds() >> 32;
    case S::kDynamicSmemSize:
      return config.dynamic_shared_bytes;
    case S::kTotalSmemSize:
    case S::kAggrSmemSize:
      return state.shared_bytes;
    default:
      break;
  }
  if (config.cooperative && index >= static_cast<uint32_t>(S::kEnvreg0)) {
    const auto workspace = reinterpret_cast<uint64_t>(state.workspace);
    if (of(S::kEnvreg0) == 1) return workspace >> 32;  // High word in 1, low word in 2.
    if (of(S::kEnvreg0) == 2) return workspace & 0xffffffff;
  }
  return 0;
}

uint32_t LaneValue(const Warp& w, SpecialRegister which, uint32_t lane) {
  const uint32_t bit = 1u << lane;
  using S = SpecialRegister;
  switch (which) {
    case S::kTidX:
      return w.tid_x[lane];
    case S::kTidY:
      return w.tid_y[lane];
    case S::kTidZ:
      return w.tid_z[lane];
    case S::kLaneId:
      return lane;
    case S::kLanemaskEq:
      return bit;
    case S::kLanemaskLt:
      return bit - 1;
    case S::kLanemaskLe:
      return bit | (bit - 1);
    case S::kLanemaskGt:
      return ~(bit | (bit - 1));
    default:
      return ~(bit - 1);
  }
}

bool PerLane(SpecialRegister which) {
  using S = SpecialRegister;
  return which <= S::kTidZ || which == S::kLaneId || (which >= S::kLanemaskEq && which <= S::kLanemaskGt);
}

/// The destination is a temporary of this instruction or a register: only the lanes of the mask are written.
template <typename F>
void Fill(Warp& w, const Insn& i, uint32_t mask, F value) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) != 0) w.Write(i.d, i.wd, lane, value(lane));
  }
}

}  // namespace

void ReadSpecial(Warp& w, const Insn& i, uint32_t mask) {
  const auto which = static_cast<SpecialRegister>(i.imm);
  if (PerLane(which)) {
    Fill(w, i, mask, [&](uint32_t lane) { return LaneValue(w, which, lane); });
    return;
  }
  uint64_t value = Uniform(w, which);
  if (ptx::SizeOf(which) == 4) value &= 0xffffffff;
  Fill(w, i, mask, [&](uint32_t) { return value; });
}

void LocalAddress(Warp& w, const Insn& i, uint32_t mask) {
  const uint64_t value = w.frame_local_base() + i.imm;
  Fill(w, i, mask, [&](uint32_t) { return value; });
}

void KernelParameterAddress(Warp& w, const Insn& i, uint32_t mask) {
  const uint64_t value = reinterpret_cast<uint64_t>(w.launch().parameters.data()) + i.imm;
  Fill(w, i, mask, [&](uint32_t) { return value; });
}

void DynamicSharedAddress(Warp& w, const Insn& i, uint32_t mask) {
  const uint64_t value = w.launch().dynamic_base + i.imm;
  Fill(w, i, mask, [&](uint32_t) { return value; });
}

}  // namespace hawser::exec
