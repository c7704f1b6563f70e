// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/landing.h"

#include <algorithm>
#include <utility>

namespace hawser::cu {
namespace {

bool HasLanded(const std::shared_ptr<Landing>& landing) { return landing->landed.load(std::memory_order_acquire); }

}  // namespace

bool AllLanded(const Landings& landings) { return std::all_of(landings.begin(), landings.end(), &HasLanded); }

bool Overlaps(const Landings& landings, const HostRegion& region) {
  if (landings.empty() || region.bytes() == 0) return false;
  const Landing own(region);
  return std::any_of(landings.begin(), landings.end(), [&own](const std::shared_ptr<Landing>& landing) {
    return landing->begin < own.end && own.begin < landing->end;
  });
}

void LandingList::Prune() {
  landings_.erase(std::remove_if(landings_.begin(), landings_.end(), &HasLanded), landings_.end());
  empty_.store(landings_.empty(), std::memory_order_release);
}

void LandingList::Add(std::shared_ptr<Landing> landing) { Add(Landings{std::move(landing)}); }

void LandingList::Add(const Landings& landings) {
  if (landings.empty()) return;
  std::lock_guard lock(mutex_);
  for (const auto& landing : landings) {
    if (std::find(landings_.begin(), landings_.end(), landing) == landings_.end()) landings_.push_back(landing);
  }
  Prune();
}

void LandingList::Assign(Landings landings) {
  if (landings.empty() && empty_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  landings_ = std::move(landings);
  Prune();
}

Landings LandingList::Open() {
  if (empty_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  Prune();
  return landings_;
}

}  // namespace hawser::cu
