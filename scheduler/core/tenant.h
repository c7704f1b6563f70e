// SPDX-License-Identifier: Apache-2.0
// Who shares a device, and what is known of each.
//
// Threading: belongs to one Scheduler and is touched by its thread only.
#ifndef HAWSER_SCHEDULER_CORE_TENANT_H_
#define HAWSER_SCHEDULER_CORE_TENANT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hawser/policy.h"
#include "scheduler/core/kept_time.h"
#include "scheduler/core/share_limit.h"
#include "scheduler/core/used_time.h"

/// What a plugin's handle points to. Empty: only the host looks inside, as scheduler::Tenant.
struct hawser_tenant {};

namespace hawser::scheduler {

using TenantId = uint64_t;

/// What the operator says about a tenant.
struct TenantConfig {
  std::string name;
  uint32_t weight = 100;  ///< At least 1.
  int32_t priority = 0;
  uint32_t min_share_ppm = 0;
  uint32_t max_share_ppm = 0;  ///< 0: none. The host sees to it, whatever the policy.
  uint64_t slo_ns = 0;
};

/// What a worker says about itself. Times in nanoseconds; see hawser_tenant_view.
struct WorkerFacts {
  uint64_t used_ns = 0;  ///< Since the worker began; never falls. Of a Tenant: what is believed of it.
  uint64_t pending_ns = 0;
  uint64_t pending_count = 0;
  uint64_t inflight_ns = 0;
  uint64_t tail_ns = 0;  ///< Estimated length of what left early and has not ended.
  bool tail = false;     ///< Whether there is such.
  uint64_t oldest_arrival_ns = 0;
  uint64_t unit_ns = 0;
  uint64_t last_unit_ns = 0;
  uint64_t mem_resident = 0;
  uint64_t mem_total = 0;
};

/// How much was used in the last second, to a sixteenth of it.
class UsageWindow {
 public:
  static constexpr uint64_t kLengthNs = 1'000'000'000;

  void Add(uint64_t used_ns, uint64_t now_ns);
  uint64_t Sum(uint64_t now_ns) const;

 private:
  static constexpr size_t kBuckets = 16;
  static constexpr uint64_t kBucketNs = kLengthNs / kBuckets;
  struct Bucket {
    uint64_t index = UINT64_MAX;  ///< Time divided by kBucketNs.
    uint64_t used_ns = 0;
  };
  std::array<Bucket, kBuckets> buckets_;
};

struct Tenant : hawser_tenant {
  TenantId id = 0;
  TenantConfig config;
  WorkerFacts facts;
  UsageWindow window;
  uint32_t state = HAWSER_TENANT_IDLE;
  bool has_work = false;  ///< Something waits or is in flight.
  bool held = false;      ///< Above its maximum share: for the policy it has no work.
  uint64_t since_ns = 0;  ///< Since when wants() is as it is; or, without work, when it last used the device, if later.
  ShareLimit limit;       ///< Of config.max_share_ppm.
  UsedTime used;          ///< What becomes of facts.used_ns.
  KeptTime kept;
  uint64_t last_served_ns = 0;            ///< End of the last grant; 0: none.
  uint64_t grants = 0;                    ///< Ended.
  uint64_t charged_ns = 0;                ///< In all; what the policy was told.
  uint64_t longest_charge_ns = 0;         ///< Of one grant.
  uint64_t served_others = 0;             ///< Grants that others got while this one waited.
  uint64_t waits_since_ns = 0;            ///< Since when it waits for a grant; for the starvation guard.
  std::vector<std::byte> private_memory;  ///< The policy's.

  /// Whether it may be given the device, and has something to do with it.
  bool wants() const { return has_work && !held; }
};

/// Tenants in the order in which they came. Pointers stay valid until Remove().
class TenantTable {
 public:
  Tenant& Add(TenantId id, TenantConfig config);
  void Remove(TenantId id);
  Tenant* Find(TenantId id);
  /// The tenant behind a policy's handle; null if it is none of ours. Does not look at what the handle points to.
  Tenant* Find(const hawser_tenant* handle);
  /// The one after `previous`, or the first after null; null at the end, and for a handle that is none of ours.
  Tenant* Next(const hawser_tenant* previous, bool wanting_only);

  const std::vector<std::unique_ptr<Tenant>>& all() const { return tenants_; }

 private:
  std::vector<std::unique_ptr<Tenant>> tenants_;
  std::unordered_map<const hawser_tenant*, size_t> places_;  ///< In tenants_.
};

}  // namespace hawser::scheduler

#endif  // HAWSER_SCHEDULER_CORE_TENANT_H_
