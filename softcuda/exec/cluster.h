// SPDX-License-Identifier: Apache-2.0
// Blocks that may read and write each other's shared memory. They run in turns on one thread, so that what they do to
// each other needs no more care than what warps of one block do.
//
// Addresses: a block's own shared memory begins at 0. In the window that a cluster has together, block `rank` has
// (rank + 1) << kRankShift too, for all of them.
#ifndef HAWSER_SOFTCUDA_EXEC_CLUSTER_H_
#define HAWSER_SOFTCUDA_EXEC_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "softcuda/exec/warp.h"

namespace hawser::exec {

class Cluster {
 public:
  static constexpr uint32_t kRankShift = 20;
  static constexpr uint64_t kOffsetMask = (uint64_t{1} << kRankShift) - 1;
  static constexpr uint32_t kMostBlocks = 16;

  explicit Cluster(LaunchState* launch);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  bool Allocate();
  void Start(uint64_t number);
  /// kDone, kFault, or kExpired: waiting for something outside, run others first.
  Turn Run();

  uint32_t size() const { return static_cast<uint32_t>(blocks_.size()); }
  /// The rank that a shared address names, none for an address of whatever block uses it.
  static std::optional<uint32_t> RankOf(uint64_t address);
  /// A block's own shared address, or any block's, as that of `rank`. In a cluster of one nothing changes.
  uint64_t At(uint64_t address, uint32_t rank) const;
  /// Host address of [address, address + bytes), which names a rank; null when there is no such memory.
  char* Place(uint64_t address, uint32_t bytes) const;
  /// Where the shared memory begins in which `place` lies; null: in no block's of this cluster.
  char* BaseOf(const char* place) const;

  /// Lanes have arrived at the cluster's barrier, or exited: those that wait there go on once all living threads have.
  void CompleteBarrier();
  void Arrived() { barrier_in_use_ = true; }

 private:
  LaunchState& launch_;
  std::vector<std::unique_ptr<Block>> blocks_;  ///< By rank.
  bool barrier_in_use_ = false;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_CLUSTER_H_
