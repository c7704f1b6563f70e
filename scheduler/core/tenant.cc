// SPDX-License-Identifier: Apache-2.0
#include "scheduler/core/tenant.h"

#include <algorithm>
#include <utility>

namespace hawser::scheduler {

void UsageWindow::Add(uint64_t used_ns, uint64_t now_ns) {
  const uint64_t index = now_ns / kBucketNs;
  Bucket& bucket = buckets_[index % kBuckets];
  if (bucket.index != index) bucket = {index, 0};
  bucket.used_ns += used_ns;
}

uint64_t UsageWindow::Sum(uint64_t now_ns) const {
  const uint64_t newest = now_ns / kBucketNs;
  uint64_t sum = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.index != UINT64_MAX && bucket.index <= newest && newest - bucket.index < kBuckets) sum += bucket.used_ns;
  }
  return sum;
}

Tenant& TenantTable::Add(TenantId id, TenantConfig config) {
  auto tenant = std::make_unique<Tenant>();
  tenant->id = id;
  tenant->config = std::move(config);
  tenant->config.weight = std::max(1u, tenant->config.weight);
  places_[tenant.get()] = tenants_.size();
  tenants_.push_back(std::move(tenant));
  return *tenants_.back();
}

void TenantTable::Remove(TenantId id) {
  std::erase_if(tenants_, [id](const auto& tenant) { return tenant->id == id; });
  places_.clear();
  for (size_t i = 0; i < tenants_.size(); ++i) places_[tenants_[i].get()] = i;
}

Tenant* TenantTable::Find(TenantId id) {
  for (const auto& tenant : tenants_) {
    if (tenant->id == id) return tenant.get();
  }
  return nullptr;
}

Tenant* TenantTable::Find(const hawser_tenant* handle) {
  const auto place = places_.find(handle);
  return place != places_.end() ? tenants_[place->second].get() : nullptr;
}

Tenant* TenantTable::Next(const hawser_tenant* previous, bool wanting_only) {
  size_t i = 0;
  if (previous != nullptr) {
    const auto place = places_.find(previous);
    if (place == places_.end()) return nullptr;
    i = place->second + 1;
  }
  for (; i < tenants_.size(); ++i) {
    if (!wanting_only || tenants_[i]->wants()) return tenants_[i].get();
  }
  return nullptr;
}

}  // namespace hawser::scheduler
