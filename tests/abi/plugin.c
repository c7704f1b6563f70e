/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that touches all of interface 1.0: compiled with the header of each release, run by the newest host.
 * Whatever it finds wrong, it says by an error, for which it is ejected. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hawser/policy.h"

typedef struct abi_state {
  const hawser_host* host;
  uint64_t tenants, work, timers, charged_ns;
} abi_state;

typedef struct abi_tenant {
  uint64_t magic;
  uint64_t turn;
} abi_tenant;

static abi_tenant* abi_of(abi_state* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static int abi_init(const hawser_host* host, void** state) {
  abi_state* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  *state = self;
  if (host->size < sizeof(hawser_host) || host->abi_major != HAWSER_POLICY_ABI_MAJOR || host->reserved != 0) return -2;
  if (host->cfg(host->ctx, "no such setting") != NULL || host->now_ns(host->ctx) == 0) return -3;
  host->log(host->ctx, HAWSER_LOG_DEBUG, "begins");
  host->timer(host->ctx, host->now_ns(host->ctx) + 1000000);
  return 0;
}

static void abi_fini(void* state) { free(state); }

static int abi_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  abi_state* self = state;
  if (cfg->size < sizeof(hawser_tenant_cfg) || cfg->weight == 0 || cfg->id == 0 || cfg->reserved != 0) return -1;
  if (abi_of(self, t)->magic != 0) return -2; /* must be zeroed */
  abi_of(self, t)->magic = cfg->id;
  ++self->tenants;
  return 0;
}

static void abi_tenant_del(void* state, hawser_tenant* t) {
  abi_state* self = state;
  abi_of(self, t)->magic = 0;
  --self->tenants;
}

static void abi_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  abi_of(state, t)->magic = cfg->id;
}

static void abi_runnable(void* state, hawser_tenant* t) {
  (void)t;
  ++((abi_state*)state)->work;
}

static void abi_idle(void* state, hawser_tenant* t) {
  (void)t;
  --((abi_state*)state)->work;
}

static int abi_select(void* state, hawser_decision* out) {
  abi_state* self = state;
  const hawser_host* host = self->host;
  const hawser_decision empty = {.size = out->size};
  uint64_t tenants = 0, work = 0;
  if (out->size < sizeof(hawser_decision) || memcmp(out, &empty, sizeof(empty)) != 0) return -10;
  for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
    hawser_tenant_view view;
    memset(&view, 0xff, sizeof(view));
    view.size = (uint32_t)sizeof(view);
    host->view(host->ctx, t, &view);
    if (view.id != abi_of(self, t)->magic || view.weight == 0 || view.state > HAWSER_TENANT_DRAINING) return -11;
    if ((view.runnable_since_ns != 0) == (view.idle_since_ns != 0)) return -12;
    ++tenants;
  }
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    if (out->who == NULL || abi_of(self, t)->turn < abi_of(self, out->who)->turn) out->who = t;
    ++work;
  }
  if (tenants != self->tenants || work != self->work || work == 0) return -13;
  abi_of(self, out->who)->turn = host->now_ns(host->ctx);
  out->slice_ns = 1500000;
  out->unit_ns = 250000;
  out->inflight_cap_ns = 500000;
  out->linger_ns = 10000;
  out->flags = self->timers % 2 != 0 ? HAWSER_DECISION_NEVER_OPEN : 0;
  return HAWSER_SELECT_DECIDED;
}

static void abi_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  (void)t;
  if ((why & ~(uint32_t)(HAWSER_CHARGE_ALONE | HAWSER_CHARGE_OVERRUN)) == 0) ((abi_state*)state)->charged_ns += gpu_ns;
}

static int abi_preempt(void* state, hawser_tenant* running, hawser_tenant* woken) {
  abi_state* self = state;
  if (abi_of(self, woken)->magic % 3 == 0) self->host->revoke(self->host->ctx, running);
  return 0;
}

static void abi_on_timer(void* state, uint64_t now_ns) {
  abi_state* self = state;
  ++self->timers;
  self->host->timer(self->host->ctx, now_ns + 5000000);
}

static hawser_tenant* abi_stage(void* state, hawser_tenant* running) {
  abi_state* self = state;
  return self->host->next_runnable(self->host->ctx, running);
}

static hawser_tenant* abi_mem_victim(void* state, hawser_tenant* asker, uint64_t bytes) {
  (void)state;
  (void)bytes;
  return asker;
}

static hawser_tenant* abi_mem_winner(void* state, uint64_t bytes) {
  abi_state* self = state;
  (void)bytes;
  return self->host->next_tenant(self->host->ctx, NULL);
}

static size_t abi_dump(void* state, char* json, size_t cap) {
  const int n = snprintf(json, cap, "{\"charged\":%llu}", (unsigned long long)((abi_state*)state)->charged_ns);
  return n > 0 ? (size_t)n : 0;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "abi",
      .version = "1",
      .priv_size = sizeof(abi_tenant),
      .init = abi_init,
      .fini = abi_fini,
      .tenant_add = abi_tenant_add,
      .tenant_del = abi_tenant_del,
      .tenant_cfg = abi_tenant_cfg,
      .runnable = abi_runnable,
      .idle = abi_idle,
      .select = abi_select,
      .charged = abi_charged,
      .preempt = abi_preempt,
      .on_timer = abi_on_timer,
      .stage = abi_stage,
      .mem_victim = abi_mem_victim,
      .mem_winner = abi_mem_winner,
      .dump = abi_dump,
  };
  return &policy;
}
