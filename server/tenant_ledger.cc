// SPDX-License-Identifier: Apache-2.0
#include "server/tenant_ledger.h"

#include "server/admin/settings.h"

namespace hawser::server {

using admin::TenantChange;
using admin::TenantSettings;
using wire::Status;

namespace {

/// `later` wins.
void Merge(const TenantChange& later, TenantChange* into) {
  const auto take = [](const auto& from, auto* to) {
    if (from) *to = from;
  };
  take(later.weight, &into->weight);
  take(later.priority, &into->priority);
  take(later.min_share_ppm, &into->min_share_ppm);
  take(later.max_share_ppm, &into->max_share_ppm);
  take(later.slo_ns, &into->slo_ns);
  take(later.max_sessions, &into->max_sessions);
  take(later.session_device_memory, &into->session_device_memory);
}

}  // namespace

TenantSettings SettingsOf(const Tenant& tenant) {
  return {tenant.share, tenant.max_sessions, tenant.limits.device_memory};
}

Status TenantLedger::Change(const Tenant& configured, const TenantChange& change) {
  const auto at = entries_.find(configured.name);
  TenantChange merged;
  if (at != entries_.end() && at->second.change && !change.reset) merged = *at->second.change;
  Merge(change, &merged);
  TenantSettings settings = SettingsOf(configured);
  if (Status status = admin::Apply(merged, &settings); !status.ok()) return status;
  Entry& entry = entries_[configured.name];
  if (merged.empty()) {
    entry.change.reset();
  } else {
    entry.change = merged;
  }
  return {};
}

bool TenantLedger::Changed(const std::string& name) const {
  const auto at = entries_.find(name);
  return at != entries_.end() && at->second.change.has_value();
}

Tenant TenantLedger::Effective(Tenant configured) const {
  const auto at = entries_.find(configured.name);
  if (at == entries_.end() || !at->second.change) return configured;
  TenantSettings settings = SettingsOf(configured);
  if (!admin::Apply(*at->second.change, &settings).ok()) return configured;
  configured.share = settings.share;
  configured.max_sessions = settings.max_sessions;
  configured.limits.device_memory = settings.session_device_memory;
  return configured;
}

void TenantLedger::Add(const std::string& name, const Totals& used) {
  Totals& all = entries_[name].used;
  all.commands += used.commands;
  all.bytes_up += used.bytes_up;
  all.bytes_down += used.bytes_down;
  all.copied_in += used.copied_in;
  all.copied_out += used.copied_out;
  for (const auto& [device, ns] : used.device_ns) {
    const bool room = all.device_ns.size() < kMostDevices || all.device_ns.count(device) != 0;
    all.device_ns[room ? device : kOtherDevices] += ns;
  }
}

TenantLedger::Totals TenantLedger::Used(const std::string& name) const {
  const auto at = entries_.find(name);
  return at != entries_.end() ? at->second.used : Totals();
}

std::vector<std::string> TenantLedger::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

}  // namespace hawser::server
