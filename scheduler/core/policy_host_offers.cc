// SPDX-License-Identifier: Apache-2.0
// What PolicyHost offers to a policy: the functions of hawser_host.
#include <algorithm>
#include <cstring>

#include "scheduler/core/policy_host.h"

namespace hawser::scheduler {
namespace {

/// The one place where deadlines come from. A worker may claim any arrival.
uint64_t DeadlineOf(const Tenant& tenant) {
  const uint64_t arrival = tenant.facts.oldest_arrival_ns;
  const uint64_t slo = tenant.config.slo_ns;
  if (arrival == 0 || slo == 0) return 0;
  return arrival > UINT64_MAX - slo ? UINT64_MAX : arrival + slo;
}

}  // namespace

uint64_t PolicyHost::HostNow(void* ctx) { return static_cast<PolicyHost*>(ctx)->now_ns_; }

void PolicyHost::HostView(void* ctx, const hawser_tenant* handle, hawser_tenant_view* view) {
  auto* self = static_cast<PolicyHost*>(ctx);
  const Tenant* tenant = self->tenants_.Find(handle);
  hawser_tenant_view full{};
  if (tenant != nullptr) {
    full.state = tenant->held ? uint32_t{HAWSER_TENANT_IDLE} : tenant->state;
    full.id = tenant->id;
    full.weight = tenant->config.weight;
    full.priority = tenant->config.priority;
    full.used_ns = tenant->facts.used_ns;
    full.window_used_ns = tenant->window.Sum(self->now_ns_);
    full.pending_ns = tenant->facts.pending_ns;
    full.pending_count = tenant->facts.pending_count;
    full.inflight_ns = tenant->facts.inflight_ns;
    full.oldest_arrival_ns = tenant->facts.oldest_arrival_ns;
    full.runnable_since_ns = tenant->wants() ? tenant->since_ns : 0;
    full.idle_since_ns = tenant->wants() ? 0 : tenant->since_ns;
    full.last_served_ns = tenant->last_served_ns;
    full.unit_ns = tenant->facts.unit_ns;
    full.last_unit_ns = tenant->facts.last_unit_ns;
    full.deadline_ns = DeadlineOf(*tenant);
    full.mem_resident = tenant->facts.mem_resident;
    full.mem_total = tenant->facts.mem_total;
  }
  const uint32_t size = view->size;
  if (size < sizeof(size)) return;
  if (size > sizeof(full)) std::memset(reinterpret_cast<char*>(view) + sizeof(full), 0, size - sizeof(full));
  full.size = size;
  std::memcpy(static_cast<void*>(view), &full, std::min<size_t>(size, sizeof(full)));
}

void* PolicyHost::HostPrivate(void* ctx, hawser_tenant* handle) {
  Tenant* tenant = static_cast<PolicyHost*>(ctx)->tenants_.Find(handle);
  return tenant != nullptr && !tenant->private_memory.empty() ? tenant->private_memory.data() : nullptr;
}

hawser_tenant* PolicyHost::HostNextTenant(void* ctx, hawser_tenant* previous) {
  return static_cast<PolicyHost*>(ctx)->tenants_.Next(previous, false);
}

hawser_tenant* PolicyHost::HostNextRunnable(void* ctx, hawser_tenant* previous) {
  return static_cast<PolicyHost*>(ctx)->tenants_.Next(previous, true);
}

void PolicyHost::HostRevoke(void* ctx, hawser_tenant* tenant) { static_cast<PolicyHost*>(ctx)->revoked_ = tenant; }

void PolicyHost::HostTimer(void* ctx, uint64_t at_ns) {
  auto* self = static_cast<PolicyHost*>(ctx);
  const uint64_t earliest = std::max(self->now_ns_ + kShortestWaitNs, self->next_timer_ns_);
  if (at_ns < self->next_timer_ns_ && earliest == self->next_timer_ns_) ++self->hurried_timers_;
  self->timer_ns_ = std::max(at_ns, earliest);
}

const char* PolicyHost::HostSetting(void* ctx, const char* key) {
  auto* self = static_cast<PolicyHost*>(ctx);
  if (key == nullptr) return nullptr;
  constexpr size_t kMostAsked = 1000;  // Whatever a policy makes up.
  if (self->asked_settings_.size() < kMostAsked) self->asked_settings_.insert(key);
  const auto& settings = self->options_.settings;
  const auto found = settings.find(key);
  return found != settings.end() ? found->second.c_str() : nullptr;
}

void PolicyHost::HostLog(void* ctx, int level, const char* text) {
  auto* self = static_cast<PolicyHost*>(ctx);
  if (level <= HAWSER_LOG_INFO && text != nullptr) self->Emit(PolicyEvent::Kind::kLog, text);
}

}  // namespace hawser::scheduler
