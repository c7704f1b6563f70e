// SPDX-License-Identifier: Apache-2.0
// What a memory access of a kernel is checked against. A device address is a host address of this process, so the
// generic, global and const spaces are the process's own address space, limited to live allocations.
//
// Threads: Find and Nearest are called by every executing thread, without a lock, while the driver allocates.
#ifndef HAWSER_SOFTCUDA_EXEC_ADDRESS_SPACE_H_
#define HAWSER_SOFTCUDA_EXEC_ADDRESS_SPACE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "softcuda/exec/atomic_shared.h"

namespace hawser::exec {

/// Live bytes [begin, end).
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writable = true;
};

class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  /// The allocation that holds `address`; its result may be kept by a launch until that launch ends.
  virtual std::optional<Range> Find(uint64_t address) const = 0;
  /// The allocation closest to `address`, for reports; none when nothing is allocated.
  virtual std::optional<Range> Nearest(uint64_t address) const = 0;
};

/// The usual implementation: an immutable sorted table, replaced as a whole on every change, so that Find never
/// waits. Insert and Remove cost O(n). Ranges that touch or overlap stay separate entries; overlap is refused.
/// A reader that still looks at an old table sees the state before the change.
class AllocationMap : public AddressSpace {
 public:
  AllocationMap();
  ~AllocationMap() override;
  AllocationMap(const AllocationMap&) = delete;
  AllocationMap& operator=(const AllocationMap&) = delete;

  /// False when it is empty, wraps, or overlaps a live range.
  bool Insert(const Range& range);
  /// Removes the range that begins at `begin`; false when there is none.
  bool Remove(uint64_t begin);
  size_t size() const;

  std::optional<Range> Find(uint64_t address) const override;
  std::optional<Range> Nearest(uint64_t address) const override;

 private:
  using Table = std::vector<Range>;
  std::shared_ptr<const Table> Current() const;
  void Publish(Table table);

  mutable std::mutex mutex_;  ///< Serialises writers only.
  AtomicShared<const Table> table_;
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_ADDRESS_SPACE_H_
