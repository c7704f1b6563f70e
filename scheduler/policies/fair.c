/* SPDX-License-Identifier: Apache-2.0 */
/* fair: start-time fair queueing with anticipation; what serves if nothing else is asked for, and what takes over from
 * a policy that failed. See virtual_clock.h for the rule and its bound.
 *
 * Anticipation (anticipation.h): for somebody who has no work for a moment and is further behind than everybody who has
 * the device waits.
 *
 * Settings: slice_us (2000), unit_us (0: the host's), anticipation_us (300). */
#include <inttypes.h>
#include <stdio.h>

#include "scheduler/policies/anticipation.h"
#include "scheduler/policies/virtual_clock.h"

typedef struct fair {
  const hawser_host* host;
  virtual_clock clock;
  uint64_t slice_ns, unit_ns, anticipation_ns;
} fair;

typedef struct fair_tenant {
  virtual_times times;
  anticipation wait;
  uint32_t has_work;
} fair_tenant;

static fair_tenant* fair_of(const fair* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static int fair_init(const hawser_host* host, void** state) {
  fair* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->slice_ns = hawser_setting_us(host, "slice_us", 2000000u);
  self->unit_ns = hawser_setting_us(host, "unit_us", 0);
  self->anticipation_ns = hawser_setting_us(host, "anticipation_us", 300000u);
  *state = self;
  return 0;
}

static void fair_fini(void* state) { free(state); }

static int fair_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  fair* self = state;
  virtual_join(&self->clock, &fair_of(self, t)->times, cfg->weight);
  anticipation_join(&fair_of(self, t)->wait, self->anticipation_ns);
  return 0;
}

static void fair_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  fair_of(state, t)->times.weight = cfg->weight;
}

static void fair_runnable(void* state, hawser_tenant* t) {
  fair* self = state;
  fair_tenant* tenant = fair_of(self, t);
  tenant->has_work = 1;
  tenant->times.start = virtual_start(&self->clock, &tenant->times);
  (void)anticipation_returns(&tenant->wait, self->anticipation_ns, self->host->now_ns(self->host->ctx));
}

static void fair_idle(void* state, hawser_tenant* t) {
  fair* self = state;
  fair_tenant* tenant = fair_of(self, t);
  tenant->has_work = 0;
  anticipation_goes(&tenant->wait, self->host->now_ns(self->host->ctx));
}

static int fair_select(void* state, hawser_decision* out) {
  fair* self = state;
  const hawser_host* host = self->host;
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    if (out->who == NULL || virtual_before(fair_of(self, t)->times.start, fair_of(self, out->who)->times.start)) {
      out->who = t;
    }
  }
  if (out->who == NULL) return -1;
  const uint64_t start = fair_of(self, out->who)->times.start;
  const uint64_t now = host->now_ns(host->ctx);
  for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
    fair_tenant* tenant = fair_of(self, t);
    const uint64_t wait = anticipation_left_ns(&tenant->wait, self->anticipation_ns, now);
    if (tenant->has_work || wait == 0) continue;
    if (!virtual_before(virtual_start(&self->clock, &tenant->times), start)) continue;
    if (out->wait_ns == 0 || wait < out->wait_ns) out->wait_ns = wait;
  }
  if (out->wait_ns != 0) return HAWSER_SELECT_WAIT;
  self->clock.now = start;
  out->slice_ns = self->slice_ns;
  out->unit_ns = self->unit_ns;
  out->linger_ns = anticipation_ns(&fair_of(self, out->who)->wait, self->anticipation_ns);
  return HAWSER_SELECT_DECIDED;
}

static void fair_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  fair* self = state;
  fair_tenant* tenant = fair_of(self, t);
  virtual_charge(&self->clock, &tenant->times, gpu_ns, why);
  anticipation_charge(&tenant->wait, self->anticipation_ns, gpu_ns);
}

/* The one who would be chosen if `running` did not come back. */
static hawser_tenant* fair_stage(void* state, hawser_tenant* running) {
  fair* self = state;
  hawser_tenant* best = NULL;
  for (hawser_tenant* t = self->host->next_runnable(self->host->ctx, NULL); t != NULL;
       t = self->host->next_runnable(self->host->ctx, t)) {
    if (t == running) continue;
    if (best == NULL || virtual_before(fair_of(self, t)->times.start, fair_of(self, best)->times.start)) best = t;
  }
  return best;
}

static size_t fair_dump(void* state, char* json, size_t cap) {
  const fair* self = state;
  size_t length = 0;
  int n = snprintf(json, cap, "{\"virtual_now\":%" PRIu64 ",\"start\":{", self->clock.now);
  length += n > 0 ? (size_t)n : 0;
  const char* separator = "";
  for (hawser_tenant* t = self->host->next_tenant(self->host->ctx, NULL); t != NULL;
       t = self->host->next_tenant(self->host->ctx, t)) {
    n = snprintf(length < cap ? json + length : NULL, length < cap ? cap - length : 0, "%s\"%" PRIu64 "\":%" PRIu64,
                 separator, hawser_look(self->host, t).id, fair_of(self, t)->times.start);
    length += n > 0 ? (size_t)n : 0;
    separator = ",";
  }
  n = snprintf(length < cap ? json + length : NULL, length < cap ? cap - length : 0, "}}");
  return length + (n > 0 ? (size_t)n : 0);
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "fair",
      .version = "1",
      .priv_size = sizeof(fair_tenant),
      .init = fair_init,
      .fini = fair_fini,
      .tenant_add = fair_tenant_add,
      .tenant_cfg = fair_tenant_cfg,
      .runnable = fair_runnable,
      .idle = fair_idle,
      .select = fair_select,
      .charged = fair_charged,
      .stage = fair_stage,
      .dump = fair_dump,
  };
  return &policy;
}
