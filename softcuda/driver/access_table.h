// SPDX-License-Identifier: Apache-2.0
// What kernels' accesses are checked against: live ranges, sorted, in leaves of a few hundred. A change copies one leaf
// and the list of leaves, so that programs with very many small allocations stay fast; readers keep the state they
// began with.
//
// Threads: Find and Nearest from any thread, without waiting for writers; Insert and Remove by one thread at a time
// (MemoryMap's lock).
#ifndef HAWSER_SOFTCUDA_DRIVER_ACCESS_TABLE_H_
#define HAWSER_SOFTCUDA_DRIVER_ACCESS_TABLE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "softcuda/exec/address_space.h"
#include "softcuda/exec/atomic_shared.h"

namespace hawser::soft {

class AccessTable final : public exec::AddressSpace {
 public:
  AccessTable();

  /// `range` overlaps no live one: the caller has checked that.
  void Insert(const exec::Range& range);
  /// Removes the range that begins at `begin`, if there is one.
  void Remove(uint64_t begin);

  std::optional<exec::Range> Find(uint64_t address) const override;
  std::optional<exec::Range> Nearest(uint64_t address) const override;

  static constexpr size_t kLeafRanges = 256;

 private:
  using Leaf = std::vector<exec::Range>;  ///< Never empty.
  using Leaves = std::vector<std::shared_ptr<const Leaf>>;

  /// Leaf that holds, or would hold, a range that begins at `address`.
  static size_t LeafOf(const Leaves& leaves, uint64_t address);

  exec::AtomicShared<const Leaves> leaves_;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_ACCESS_TABLE_H_
