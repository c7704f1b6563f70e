// SPDX-License-Identifier: Apache-2.0
#include "interposer/core/id_pools.h"

namespace hawser::guest {

wire::Id IdPools::New(uint8_t type) {
  if (type == 0 || type >= kTypes) return {};
  Pool& pool = pools_[type];
  std::lock_guard lock(pool.mutex);
  return pool.ids.Allocate();
}

void IdPools::Free(wire::Id id) {
  if (id.type() >= kTypes) return;
  Pool& pool = pools_[id.type()];
  std::lock_guard lock(pool.mutex);
  pool.ids.Free(id);
}

}  // namespace hawser::guest
