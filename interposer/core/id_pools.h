// SPDX-License-Identifier: Apache-2.0
// Names for the guest's objects, per type.
#ifndef HAWSER_INTERPOSER_CORE_ID_POOLS_H_
#define HAWSER_INTERPOSER_CORE_ID_POOLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "wire/id.h"
#include "wire/id_allocator.h"

namespace hawser::guest {

/// Thread-safe: a small lock for each type.
class IdPools {
 public:
  IdPools() : IdPools(std::make_index_sequence<kTypes>()) {}
  /// The null id for a type that does not exist.
  wire::Id New(uint8_t type);
  void Free(wire::Id id);

 private:
  static constexpr size_t kTypes = 32;  ///< More than the description has.
  struct alignas(64) Pool {
    explicit Pool(uint8_t type) : ids(type) {}
    std::mutex mutex;
    wire::IdAllocator ids;
  };
  template <size_t... kIndex>
  explicit IdPools(std::index_sequence<kIndex...>) : pools_{Pool(static_cast<uint8_t>(kIndex))...} {}

  std::array<Pool, kTypes> pools_;
};

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_ID_POOLS_H_
