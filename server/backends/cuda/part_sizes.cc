// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/part_sizes.h"

#include <algorithm>
#include <numeric>

#include "scheduler/core/thread_group.h"

namespace hawser::server::cuda_backend {

uint64_t PartSizes::Estimate(const KernelFacts* kernel, uint64_t threads) const {
  if (kernel == nullptr) return 0;
  if (kernel->graph) return kernel->last_ns.load(std::memory_order_relaxed);
  return history_->Estimate(kernel->key, threads).value_or(0);
}

uint64_t PartSizes::LengthNs(uint64_t gates, const KernelFacts& kernel, const KernelLaunch& launch) {
  if (gates == 0 || gates == LaunchGate::kWhole) return 0;
  const double empty = static_cast<double>(kernel.empty_ns.load(std::memory_order_relaxed));
  const double least = std::min(empty * static_cast<double>(launch.blocks()) * static_cast<double>(kInVain), 1e18);
  return std::max(gates, static_cast<uint64_t>(least));
}

bool PartSizes::IsKnown(const KernelFacts& kernel) const {
  return settings_->size != 0 || history_->Rate(kernel.key) > 0;
}

bool PartSizes::IsLong(const KernelFacts& kernel, const KernelLaunch& launch) const {
  // What no device takes is the driver's to refuse, as it is.
  if (!launch.IsPossible() || launch.blocks() > KernelLaunch::kMostBlocks) return false;
  if (settings_->size != 0) return launch.blocks() > settings_->size;
  const uint64_t unit = LengthNs(gate_->UnitNs(), kernel, launch);
  if (unit == 0) return false;
  if (!IsKnown(kernel)) return launch.blocks() > 2 * Blocks(kernel, launch, launch.blocks());
  // Two parts of a little more than half a unit each would only cost.
  return Estimate(&kernel, launch.blocks() * launch.block_threads()) / 3 > unit / 2;
}

uint64_t PartSizes::Blocks(const KernelFacts& kernel, const KernelLaunch& launch, uint64_t remaining) const {
  if (settings_->size != 0) return std::min({settings_->size, remaining, KernelLaunch::kMostPartBlocks});
  const uint64_t block = launch.block_threads();
  // Parts are made of so many (WholeGroups()).
  const uint64_t grain = history_->Estimate(kernel.key, std::lcm(scheduler::kGroupThreads, block)).value_or(0);
  const uint64_t unit = LengthNs(gate_->PieceNs(grain), kernel, launch);
  if (unit == 0) return std::min(remaining, KernelLaunch::kMostPartBlocks);  // Alone by now.
  const double rate = history_->Rate(kernel.key);
  const uint64_t threads = rate > 0 ? scheduler::NextGroup(unit, rate * 1e9)
                                    : scheduler::FirstGroup(cores_, settings_->beta, gate_->Tenants());
  const uint64_t whole = scheduler::WholeGroups(threads, block, remaining * block) / block;
  const uint64_t blocks = std::max(whole, launch.blocks() / kMostParts);
  return std::min({remaining, blocks, KernelLaunch::kMostPartBlocks});
}

}  // namespace hawser::server::cuda_backend
