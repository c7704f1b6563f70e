// SPDX-License-Identifier: Apache-2.0
// Names for the objects of one type, chosen by the guest.
#ifndef HAWSER_WIRE_ID_ALLOCATOR_H_
#define HAWSER_WIRE_ID_ALLOCATOR_H_

#include <cstdint>
#include <vector>

#include "wire/id.h"

namespace hawser::wire {

/// Hands out ids of one type. A freed index comes back with a higher generation, last freed first,
/// so that the server's table stays small. Memory grows only when more objects live at the same time
/// than ever before.
///
/// Threading: none; the caller holds its own lock.
class IdAllocator {
 public:
  explicit IdAllocator(uint8_t type) : type_(type) {}

  /// Never the null id. The first id of an index has generation 1.
  Id Allocate();
  /// Ignores the null id and ids that are not allocated now. Free an id only once the command that
  /// releases the object is in the stream: the next Allocate() may reuse the index.
  void Free(Id id);

  /// Ids allocated and not freed.
  uint32_t live() const { return live_; }

 private:
  static constexpr uint32_t kLastGeneration = 0xffffff;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kInUse = UINT32_MAX - 1;
  static constexpr uint32_t kRetired = UINT32_MAX - 2;
  struct Slot {
    uint32_t generation;
    uint32_t next;  ///< Next free index, kNone at the end of the list, kInUse or kRetired.
  };

  const uint8_t type_;
  uint32_t free_ = kNone;
  uint32_t live_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace hawser::wire

#endif  // HAWSER_WIRE_ID_ALLOCATOR_H_
