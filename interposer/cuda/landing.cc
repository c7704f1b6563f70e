// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/landing.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hawser::cu {
namespace {

bool HasLanded(const std::shared_ptr<Landing>& landing) { return landing->landed.load(std::memory_order_acquire); }

}  // namespace

bool AllLanded(const Landings& landings) { return std::all_of(landings.begin(), landings.end(), &HasLanded); }

Landings Overlapping(const Landings& landings, const HostRegion& region) {
  Landings found;
  if (landings.empty() || region.bytes() == 0) return found;
  const Landing own(region);
  std::copy_if(landings.begin(), landings.end(), std::back_inserter(found),
               [&own](const auto& landing) { return landing->begin < own.end && own.begin < landing->end; });
  return found;
}

bool Overlaps(const Landings& landings, const HostRegion& region) { return !Overlapping(landings, region).empty(); }

void Landing::Land() {
  std::vector<std::function<void()>> then;
  {
    std::lock_guard lock(mutex_);
    landed.store(true, std::memory_order_release);
    then.swap(then_);
  }
  for (const auto& call : then) call();
}

bool Landing::Then(std::function<void()> call) {
  std::lock_guard lock(mutex_);
  if (landed.load(std::memory_order_relaxed)) return false;
  then_.push_back(std::move(call));
  return true;
}

void WhenLanded(const Landings& landings, const std::function<void()>& call) {
  const auto missing = std::make_shared<std::atomic<size_t>>(landings.size() + 1);
  const auto one_less = [missing, call] {
    if (missing->fetch_sub(1, std::memory_order_acq_rel) == 1) call();
  };
  for (const auto& landing : landings) {
    if (!landing->Then(one_less)) one_less();
  }
  one_less();
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
  version_.fetch_add(1, std::memory_order_acq_rel);
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
