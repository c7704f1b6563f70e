// SPDX-License-Identifier: Apache-2.0
#include "server/worker/grant_gates.h"

#include <algorithm>

namespace hawser::server {

LaunchGate& GrantGates::Of(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GrantGate*& gate = known_[device];
  if (gate != nullptr) return *gate;
  if (gates_.size() == kMostDevices) {
    gate = gates_[known_.size() % kMostDevices].get();
    return *gate;
  }
  GrantSlot& slot = share_.slot(gates_.size());
  std::copy_n(device.data(), std::min(device.size(), kLongestDeviceKey), slot.key);  // It is zeroed: it ends.
  gates_.push_back(std::make_unique<GrantGate>(slot, bell_));
  gate = gates_.back().get();
  slot.asked.store(1, std::memory_order_release);
  ask_.Ring();
  return *gate;
}

}  // namespace hawser::server
