/* SPDX-License-Identifier: Apache-2.0 */
/* drr: deficit round robin (Shreedhar and Varghese 1995). Each in turn may use a quantum by weight; what it used too
 * much is taken from its next turns. Cheap and exact over time, less even over short times than fair. It suits the copy
 * link, where the host counts bytes for nanoseconds.
 *
 * Anticipation: between two pieces or requests a tenant has no work for a moment. Without more ado it would lose the
 * rest of its turn each time, or its turn: then turns count and not weights. So whoever has just become idle keeps its
 * place for a moment, and the device waits when it is its turn (anticipation.h).
 *
 * Settings: quantum_us (2000; for weight 100), unit_us (0: the host's), anticipation_us (100). */
#include "scheduler/policies/anticipation.h"
#include "scheduler/policies/settings.h"

typedef struct drr {
  const hawser_host* host;
  uint64_t quantum_ns, unit_ns, anticipation_ns;
  hawser_tenant* turn; /* whose turn it is; NULL: nobody's */
} drr;

typedef struct drr_tenant {
  int64_t deficit_ns; /* what it may still use */
  uint64_t weight;
  anticipation wait;
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
  self->anticipation_ns = hawser_setting_us(host, "anticipation_us", 100000u);
  *state = self;
  return 0;
}

static void drr_fini(void* state) { free(state); }

static int drr_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  drr* self = state;
  drr_of(self, t)->weight = cfg->weight;
  anticipation_join(&drr_of(self, t)->wait, self->anticipation_ns);
  return 0;
}

static void drr_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  drr_of(state, t)->weight = cfg->weight;
}

static void drr_tenant_del(void* state, hawser_tenant* t) {
  drr* self = state;
  if (self->turn == t) self->turn = NULL;
}

static void drr_runnable(void* state, hawser_tenant* t) {
  drr* self = state;
  drr_tenant* tenant = drr_of(self, t);
  tenant->has_work = 1;
  if (anticipation_returns(&tenant->wait, self->anticipation_ns, self->host->now_ns(self->host->ctx))) return;
  if (tenant->deficit_ns > 0) tenant->deficit_ns = 0; /* nobody saves up */
}

static void drr_idle(void* state, hawser_tenant* t) {
  drr* self = state;
  drr_tenant* tenant = drr_of(self, t);
  tenant->has_work = 0;
  anticipation_goes(&tenant->wait, self->host->now_ns(self->host->ctx));
}

/* Has work, or is likely to have some at once. */
static int drr_is_there(const drr* self, const drr_tenant* tenant, uint64_t now) {
  return tenant->has_work || anticipation_left_ns(&tenant->wait, self->anticipation_ns, now) != 0;
}

/* The next who is there after `t` in the order in which tenants came, from the beginning after the end. */
static hawser_tenant* drr_after(const drr* self, hawser_tenant* t, uint64_t now) {
  const hawser_host* host = self->host;
  for (hawser_tenant* i = t != NULL ? host->next_tenant(host->ctx, t) : NULL; i != NULL;
       i = host->next_tenant(host->ctx, i)) {
    if (drr_is_there(self, drr_of(self, i), now)) return i;
  }
  for (hawser_tenant* i = host->next_tenant(host->ctx, NULL); i != NULL; i = host->next_tenant(host->ctx, i)) {
    if (drr_is_there(self, drr_of(self, i), now)) return i;
  }
  return NULL;
}

static int drr_decide(drr* self, hawser_tenant* t, uint64_t now, hawser_decision* out) {
  const drr_tenant* tenant = drr_of(self, t);
  self->turn = t;
  if (!tenant->has_work) {
    out->wait_ns = anticipation_left_ns(&tenant->wait, self->anticipation_ns, now);
    return HAWSER_SELECT_WAIT;
  }
  out->who = t;
  out->slice_ns = (uint64_t)tenant->deficit_ns;
  out->unit_ns = self->unit_ns;
  out->linger_ns = anticipation_ns(&tenant->wait, self->anticipation_ns);
  return HAWSER_SELECT_DECIDED;
}

static int drr_select(void* state, hawser_decision* out) {
  drr* self = state;
  const uint64_t now = self->host->now_ns(self->host->ctx);
  if (self->turn != NULL) {
    const drr_tenant* tenant = drr_of(self, self->turn);
    if (tenant->deficit_ns > 0 && drr_is_there(self, tenant, now)) return drr_decide(self, self->turn, now, out);
  }
  hawser_tenant* first = drr_after(self, self->turn, now);
  if (first == NULL) return -1;
  for (int pass = 0; pass < 2; ++pass) {
    hawser_tenant* t = first;
    int64_t rounds = INT64_MAX; /* whole rounds that would pass before somebody may go */
    do {
      drr_tenant* tenant = drr_of(self, t);
      tenant->deficit_ns += drr_quantum(self, tenant);
      if (tenant->deficit_ns > 0) return drr_decide(self, t, now, out);
      const int64_t missing = -tenant->deficit_ns / drr_quantum(self, tenant);
      if (missing < rounds) rounds = missing;
      t = drr_after(self, t, now);
    } while (t != first);
    do {
      drr_of(self, t)->deficit_ns += rounds * drr_quantum(self, drr_of(self, t));
      t = drr_after(self, t, now);
    } while (t != first);
  }
  return -1;
}

static void drr_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  drr* self = state;
  anticipation_charge(&drr_of(self, t)->wait, self->anticipation_ns, gpu_ns);
  if (why & HAWSER_CHARGE_ALONE) return;
  drr_of(self, t)->deficit_ns -= (int64_t)gpu_ns;
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
