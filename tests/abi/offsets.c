/* SPDX-License-Identifier: Apache-2.0 */
/* Prints where each field of the policy interface lies. Compiled with each released header: what was released must
 * never move. */
#include <stdio.h>

#include "hawser/policy.h"

#define AT(type, field) printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type*)0)->field))
#define VALUE(name) printf("%s %llu\n", #name, (unsigned long long)(name))

int main(void) {
  AT(hawser_tenant_cfg, size);
  AT(hawser_tenant_cfg, weight);
  AT(hawser_tenant_cfg, id);
  AT(hawser_tenant_cfg, priority);
  AT(hawser_tenant_cfg, min_share_ppm);
  AT(hawser_tenant_cfg, max_share_ppm);
  AT(hawser_tenant_cfg, reserved);
  AT(hawser_tenant_cfg, slo_ns);
  AT(hawser_tenant_view, size);
  AT(hawser_tenant_view, state);
  AT(hawser_tenant_view, id);
  AT(hawser_tenant_view, weight);
  AT(hawser_tenant_view, priority);
  AT(hawser_tenant_view, used_ns);
  AT(hawser_tenant_view, window_used_ns);
  AT(hawser_tenant_view, pending_ns);
  AT(hawser_tenant_view, pending_count);
  AT(hawser_tenant_view, inflight_ns);
  AT(hawser_tenant_view, oldest_arrival_ns);
  AT(hawser_tenant_view, runnable_since_ns);
  AT(hawser_tenant_view, idle_since_ns);
  AT(hawser_tenant_view, last_served_ns);
  AT(hawser_tenant_view, unit_ns);
  AT(hawser_tenant_view, last_unit_ns);
  AT(hawser_tenant_view, deadline_ns);
  AT(hawser_tenant_view, mem_resident);
  AT(hawser_tenant_view, mem_total);
  AT(hawser_decision, size);
  AT(hawser_decision, flags);
  AT(hawser_decision, who);
  AT(hawser_decision, slice_ns);
  AT(hawser_decision, inflight_cap_ns);
  AT(hawser_decision, unit_ns);
  AT(hawser_decision, linger_ns);
  AT(hawser_decision, wait_ns);
  AT(hawser_host, size);
  AT(hawser_host, abi_major);
  AT(hawser_host, abi_minor);
  AT(hawser_host, reserved);
  AT(hawser_host, ctx);
  AT(hawser_host, now_ns);
  AT(hawser_host, view);
  AT(hawser_host, priv);
  AT(hawser_host, next_tenant);
  AT(hawser_host, next_runnable);
  AT(hawser_host, revoke);
  AT(hawser_host, timer);
  AT(hawser_host, cfg);
  AT(hawser_host, log);
  AT(hawser_policy, size);
  AT(hawser_policy, abi_major);
  AT(hawser_policy, abi_minor);
  AT(hawser_policy, flags);
  AT(hawser_policy, name);
  AT(hawser_policy, version);
  AT(hawser_policy, priv_size);
  AT(hawser_policy, reserved);
  AT(hawser_policy, init);
  AT(hawser_policy, fini);
  AT(hawser_policy, tenant_add);
  AT(hawser_policy, tenant_del);
  AT(hawser_policy, tenant_cfg);
  AT(hawser_policy, runnable);
  AT(hawser_policy, idle);
  AT(hawser_policy, select);
  AT(hawser_policy, charged);
  AT(hawser_policy, preempt);
  AT(hawser_policy, on_timer);
  AT(hawser_policy, stage);
  AT(hawser_policy, mem_victim);
  AT(hawser_policy, mem_winner);
  AT(hawser_policy, dump);
  VALUE(HAWSER_POLICY_ABI_MAJOR);
  VALUE(HAWSER_TENANT_IDLE);
  VALUE(HAWSER_TENANT_RUNNABLE);
  VALUE(HAWSER_TENANT_GRANTED);
  VALUE(HAWSER_TENANT_DRAINING);
  VALUE(HAWSER_UNIT_WHOLE);
  VALUE(HAWSER_DECISION_NEVER_OPEN);
  VALUE(HAWSER_SELECT_DECIDED);
  VALUE(HAWSER_SELECT_WAIT);
  VALUE(HAWSER_CHARGE_ALONE);
  VALUE(HAWSER_CHARGE_OVERRUN);
  VALUE(HAWSER_LOG_ERROR);
  VALUE(HAWSER_LOG_DEBUG);
  return 0;
}
