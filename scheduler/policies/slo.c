/* SPDX-License-Identifier: Apache-2.0 */
/* slo: tenants with a wanted latency and a reservation are served by earliest deadline, each within its reserved share
 * (a constant bandwidth server, Abeni and Buttazzo 1998); everybody else, and whoever has used up its reservation, by
 * start-time fair queueing. A tenant gets a budget of min_share x slo for every slo; a tenant with an slo and no
 * min_share has its part by weight. Beside such tenants kernels of the others run in short pieces with two in flight;
 * their slices are long while nobody else has work, and end when somebody comes.
 * Settings: slice_us (1000), long_slice_us (20000), unit_us (150). */
#include "scheduler/policies/virtual_clock.h"

typedef struct slo {
  const hawser_host* host;
  virtual_clock clock;
  uint64_t slice_ns, long_slice_ns, unit_ns;
  int is_long; /* the running slice is, and is in nobody's reservation */
} slo;

typedef struct slo_tenant {
  virtual_times times;
  uint64_t period_ns; /* the slo; 0: none */
  uint64_t share_ppm;
  uint64_t deadline_ns;
  int64_t budget_ns;
} slo_tenant;

static slo_tenant* slo_of(const slo* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static int slo_init(const hawser_host* host, void** state) {
  slo* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->slice_ns = hawser_setting_us(host, "slice_us", 1000000u);
  self->long_slice_ns = hawser_setting_us(host, "long_slice_us", 20000000u);
  self->unit_ns = hawser_setting_us(host, "unit_us", 150000u);
  *state = self;
  return 0;
}

static void slo_fini(void* state) { free(state); }

static void slo_configure(slo_tenant* tenant, const hawser_tenant_cfg* cfg) {
  tenant->times.weight = cfg->weight;
  tenant->period_ns = cfg->slo_ns;
  tenant->share_ppm = cfg->min_share_ppm;
}

static int slo_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  slo* self = state;
  virtual_join(&self->clock, &slo_of(self, t)->times, cfg->weight);
  slo_configure(slo_of(self, t), cfg);
  return 0;
}

static void slo_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  slo_configure(slo_of(state, t), cfg);
}

/* What its reservation gives for each period. */
static int64_t slo_budget(const slo* self, const slo_tenant* tenant) {
  uint64_t ppm = tenant->share_ppm;
  if (ppm == 0) {
    uint64_t weights = 0;
    for (hawser_tenant* t = self->host->next_tenant(self->host->ctx, NULL); t != NULL;
         t = self->host->next_tenant(self->host->ctx, t)) {
      weights += slo_of(self, t)->times.weight;
    }
    ppm = weights != 0 ? tenant->times.weight * 1000000u / weights : 0;
  }
  return (int64_t)(tenant->period_ns / 1000u * ppm / 1000u);
}

/* A new period begins when the last has passed. What was used too much is kept as a debt. */
static void slo_refresh(const slo* self, slo_tenant* tenant, uint64_t now) {
  if (tenant->period_ns == 0 || now < tenant->deadline_ns) return;
  const int64_t budget = slo_budget(self, tenant);
  const uint64_t periods = tenant->deadline_ns == 0 ? 1 : (now - tenant->deadline_ns) / tenant->period_ns + 1;
  const int64_t back = periods > 1000 ? INT64_MAX / 4 : (int64_t)periods * budget;
  tenant->budget_ns = tenant->budget_ns + back < budget ? tenant->budget_ns + back : budget;
  tenant->deadline_ns = now + tenant->period_ns;
}

static void slo_runnable(void* state, hawser_tenant* t) {
  slo* self = state;
  slo_tenant* tenant = slo_of(self, t);
  tenant->times.start = virtual_start(&self->clock, &tenant->times);
  slo_refresh(self, tenant, self->host->now_ns(self->host->ctx));
}

static int slo_select(void* state, hawser_decision* out) {
  slo* self = state;
  const hawser_host* host = self->host;
  const uint64_t now = host->now_ns(host->ctx);
  hawser_tenant* urgent = NULL;
  int reserved = 0; /* how many have an slo */
  int working = 0;
  for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
    if (slo_of(self, t)->period_ns != 0) ++reserved;
  }
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    slo_tenant* tenant = slo_of(self, t);
    slo_refresh(self, tenant, now);
    ++working;
    if (tenant->period_ns != 0 && tenant->budget_ns > 0 &&
        (urgent == NULL || tenant->deadline_ns < slo_of(self, urgent)->deadline_ns)) {
      urgent = t;
    }
    if (out->who == NULL || virtual_before(tenant->times.start, slo_of(self, out->who)->times.start)) out->who = t;
  }
  if (out->who == NULL) return -1;
  self->is_long = urgent == NULL && working == 1;
  if (urgent != NULL) {
    out->who = urgent;
    out->slice_ns = (uint64_t)slo_of(self, urgent)->budget_ns;
    if (reserved > 1) { /* another's deadline may be earlier */
      out->unit_ns = self->unit_ns;
      out->inflight_cap_ns = 2 * self->unit_ns;
    }
    return HAWSER_SELECT_DECIDED;
  }
  self->clock.now = slo_of(self, out->who)->times.start;
  out->slice_ns = self->is_long ? self->long_slice_ns : self->slice_ns;
  if (reserved != 0) {
    out->unit_ns = self->unit_ns;
    /* Pieces are about as long as they should be: the second must not be refused because the first is a bit longer. */
    out->inflight_cap_ns = 2 * self->unit_ns;
    out->flags = HAWSER_DECISION_NEVER_OPEN;
  }
  return HAWSER_SELECT_DECIDED;
}

static void slo_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  slo* self = state;
  slo_tenant* tenant = slo_of(self, t);
  virtual_charge(&self->clock, &tenant->times, gpu_ns, why);
  if (tenant->period_ns != 0 && !(why & HAWSER_CHARGE_ALONE)) tenant->budget_ns -= (int64_t)gpu_ns;
}

static int slo_preempt(void* state, hawser_tenant* running, hawser_tenant* woken) {
  slo* self = state;
  const slo_tenant* w = slo_of(self, woken);
  const slo_tenant* r = slo_of(self, running);
  if (w->period_ns == 0 || w->budget_ns <= 0) return self->is_long;
  return r->period_ns == 0 || r->budget_ns <= 0 || w->deadline_ns < r->deadline_ns;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "slo",
      .version = "1",
      .priv_size = sizeof(slo_tenant),
      .init = slo_init,
      .fini = slo_fini,
      .tenant_add = slo_tenant_add,
      .tenant_cfg = slo_tenant_cfg,
      .runnable = slo_runnable,
      .select = slo_select,
      .charged = slo_charged,
      .preempt = slo_preempt,
  };
  return &policy;
}
