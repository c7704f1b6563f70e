// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/cluster.h"

namespace hawser::exec {

Cluster::Cluster(LaunchState* launch) : launch_(*launch) {
  const auto& size = launch->config->cluster;
  for (uint32_t rank = 0; rank < size[0] * size[1] * size[2]; ++rank) {
    blocks_.push_back(std::make_unique<Block>(launch, this, rank));
  }
}

bool Cluster::Allocate() {
  for (const auto& block : blocks_) {
    if (!block->Allocate()) return false;
  }
  return true;
}

void Cluster::Start(uint64_t number) {
  barrier_in_use_ = false;
  const auto& grid = launch_.config->grid;
  const auto& size = launch_.config->cluster;
  const uint64_t x = grid[0] / size[0];
  const uint64_t y = grid[1] / size[1];
  const std::array<uint64_t, 3> at{number % x, number / x % y, number / x / y};
  for (uint32_t rank = 0; rank < blocks_.size(); ++rank) {
    const std::array<uint32_t, 3> in{rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]};
    std::array<uint32_t, 3> position{};
    for (size_t i = 0; i < 3; ++i) position[i] = static_cast<uint32_t>(at[i] * size[i] + in[i]);
    blocks_[rank]->Start(position);
  }
}

Turn Cluster::Run() {
  if (blocks_.size() == 1) return blocks_[0]->Run();
  while (true) {
    bool ran = false;
    bool expired = false;
    bool done = true;
    for (const auto& block : blocks_) {
      if (block->alive_threads == 0) continue;
      done = false;
      if (!block->Ready()) continue;
      ran = true;
      const Turn turn = block->Run();
      if (turn == Turn::kFault) return turn;
      expired = expired || turn == Turn::kExpired;
    }
    if (done) return Turn::kDone;
    if (expired) return Turn::kExpired;
    if (ran) continue;
    for (const auto& block : blocks_) {
      if (block->alive_threads == 0) continue;
      block->RaiseDeadlock();
      return Turn::kFault;
    }
  }
}

std::optional<uint32_t> Cluster::RankOf(uint64_t address) {
  const uint64_t high = address >> kRankShift;
  if (high == 0 || high > kMostBlocks) return std::nullopt;
  return static_cast<uint32_t>(high - 1);
}

uint64_t Cluster::At(uint64_t address, uint32_t rank) const {
  if (blocks_.size() == 1) return address;
  return (address & kOffsetMask) | (uint64_t{rank} + 1) << kRankShift;
}

char* Cluster::Place(uint64_t address, uint32_t bytes) const {
  const auto rank = RankOf(address);
  const uint64_t offset = address & kOffsetMask;
  if (!rank || *rank >= blocks_.size() || offset >= launch_.shared_bytes || bytes > launch_.shared_bytes - offset) {
    return nullptr;
  }
  return blocks_[*rank]->shared() + offset;
}

char* Cluster::BaseOf(const char* place) const {
  for (const auto& block : blocks_) {
    const auto offset = reinterpret_cast<uint64_t>(place) - reinterpret_cast<uint64_t>(block->shared());
    if (offset < launch_.shared_bytes) return block->shared();
  }
  return nullptr;
}

void Cluster::CompleteBarrier() {
  if (!barrier_in_use_) return;
  for (const auto& block : blocks_) {
    if (!block->AllArrived()) return;
  }
  for (const auto& block : blocks_) block->LeaveClusterBarrier();
  barrier_in_use_ = false;
}

}  // namespace hawser::exec
