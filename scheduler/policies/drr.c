/* SPDX-License-Identifier: Apache-2.0 */
/* drr: deficit round robin (Shreedhar and Varghese 1995). Each in turn may use a quantum by weight; what it used too
 * much is taken from its next turns. Cheap and exact over time, less even over short times than fair. It suits the copy
 * link, where the host counts bytes for nanoseconds. Settings: quantum_us (2000; for weight 100), unit_us (0: the
 * host's). */
#include "scheduler/policies/settings.h"

typedef struct drr {
  const hawser_host* host;
  uint64_t quantum_ns, unit_ns;
  hawser_tenant* turn; /* whose turn it is; NULL: nobody's */
} drr;

typedef struct drr_tenant {
  int64_t deficit_ns; /* what it may still use */
  uint64_t weight;
  uint32_t has_work;
} drr_tenant;

static drr_tenant* drr_of(const drr* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static int64_t drr_quantum(const drr* self, const drr_tenant* tenant) {
  const uint64_t quantum = self->quantum_ns * tenant->weight / 100u;
  return quantum != 0 ? (int64_t)quantum : 1;
}

static int drr_init(const hawser_host* host, void** state) {
  drr* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->quantum_ns = hawser_setting_us(host, "quantum_us", 2000000u);
  self->unit_ns = hawser_setting_us(host, "unit_us", 0);
  *state = self;
  return 0;
}

static void drr_fini(void* state) { free(state); }

static int drr_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  drr_of(state, t)->weight = cfg->weight;
  return 0;
}

static void drr_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  drr_of(state, t)->weight = cfg->weight;
}

static void drr_tenant_del(void* state, hawser_tenant* t) {
  drr* self = state;
  if (self->turn == t) self->turn = NULL;
}

static void drr_runnable(void* state, hawser_tenant* t) { drr_of(state, t)->has_work = 1; }

static void drr_idle(void* state, hawser_tenant* t) {
  drr_tenant* tenant = drr_of(state, t);
  tenant->has_work = 0;
  if (tenant->deficit_ns > 0) tenant->deficit_ns = 0; /* nobody saves up */
}

/* The next with work after `t` in the order in which tenants came, from the beginning after the end. */
static hawser_tenant* drr_after(const drr* self, hawser_tenant* t) {
  const hawser_host* host = self->host;
  for (hawser_tenant* i = t != NULL ? host->next_tenant(host->ctx, t) : NULL; i != NULL;
       i = host->next_tenant(host->ctx, i)) {
    if (drr_of(self, i)->has_work) return i;
  }
  return host->next_runnable(host->ctx, NULL);
}

static int drr_decide(drr* self, hawser_tenant* t, hawser_decision* out) {
  self->turn = t;
  out->who = t;
  out->slice_ns = (uint64_t)drr_of(self, t)->deficit_ns;
  out->unit_ns = self->unit_ns;
  return HAWSER_SELECT_DECIDED;
}

static int drr_select(void* state, hawser_decision* out) {
  drr* self = state;
  if (self->turn != NULL && drr_of(self, self->turn)->has_work && drr_of(self, self->turn)->deficit_ns > 0) {
    return drr_decide(self, self->turn, out);
  }
  hawser_tenant* first = drr_after(self, self->turn);
  if (first == NULL) return -1;
  for (int pass = 0; pass < 2; ++pass) {
    hawser_tenant* t = first;
    int64_t rounds = INT64_MAX; /* whole rounds that would pass before somebody may go */
    do {
      drr_tenant* tenant = drr_of(self, t);
      tenant->deficit_ns += drr_quantum(self, tenant);
      if (tenant->deficit_ns > 0) return drr_decide(self, t, out);
      const int64_t missing = -tenant->deficit_ns / drr_quantum(self, tenant);
      if (missing < rounds) rounds = missing;
      t = drr_after(self, t);
    } while (t != first);
    for (t = self->host->next_runnable(self->host->ctx, NULL); t != NULL;
         t = self->host->next_runnable(self->host->ctx, t)) {
      drr_of(self, t)->deficit_ns += rounds * drr_quantum(self, drr_of(self, t));
    }
  }
  return -1;
}

static void drr_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  if (why & HAWSER_CHARGE_ALONE) return;
  drr_of(state, t)->deficit_ns -= (int64_t)gpu_ns;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "drr",
      .version = "1",
      .priv_size = sizeof(drr_tenant),
      .init = drr_init,
      .fini = drr_fini,
      .tenant_add = drr_tenant_add,
      .tenant_del = drr_tenant_del,
      .tenant_cfg = drr_tenant_cfg,
      .runnable = drr_runnable,
      .idle = drr_idle,
      .select = drr_select,
      .charged = drr_charged,
  };
  return &policy;
}
