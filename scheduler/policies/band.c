/* SPDX-License-Identifier: Apache-2.0 */
/* band: credit, and two things more (GPUvm's BAND, after Gdev): who uses less than its reserved bandwidth comes first;
 * and after a kernel the device waits a moment for a tenant below its reservation, or with more credit than anybody who
 * is there, because that one is about to send its next request (anticipation.h). The moment must be longer than a
 * client takes to turn around, or band is credit. Settings: anticipation_us (2000), period_us (30000), unit_us (0:
 * kernels whole). */
#include "scheduler/policies/anticipation.h"
#include "scheduler/policies/credit_ledger.h"

typedef struct band {
  credit_ledger ledger; /* first: the ledger's functions take a pointer to it */
  uint64_t unit_ns;
  uint64_t anticipation_ns;
} band;

typedef struct band_tenant {
  credit_account account; /* first, likewise */
  uint64_t reserved_ppm;
  uint64_t last_charge;
  anticipation wait;
} band_tenant;

static band_tenant* band_of(const band* self, hawser_tenant* t) {
  return self->ledger.host->priv(self->ledger.host->ctx, t);
}

static int band_init(const hawser_host* host, void** state) {
  band* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->ledger.host = host;
  self->ledger.period_ns = hawser_setting_us(host, "period_us", 30000000u);
  if (self->ledger.period_ns == 0) self->ledger.period_ns = 1000u;
  self->unit_ns = hawser_setting_us(host, "unit_us", 0);
  self->anticipation_ns = hawser_setting_us(host, "anticipation_us", 2000000u);
  *state = self;
  return 0;
}

static void band_fini(void* state) { free(state); }

static int band_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  band* self = state;
  band_of(self, t)->reserved_ppm = cfg->min_share_ppm;
  anticipation_join(&band_of(self, t)->wait, self->anticipation_ns);
  return credit_tenant_add(state, t, cfg);
}

static void band_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  band_of(state, t)->reserved_ppm = cfg->min_share_ppm;
  credit_tenant_cfg(state, t, cfg);
}

static void band_runnable(void* state, hawser_tenant* t) {
  band* self = state;
  credit_runnable(state, t);
  const hawser_host* host = self->ledger.host;
  (void)anticipation_returns(&band_of(self, t)->wait, self->anticipation_ns, host->now_ns(host->ctx));
}

static void band_idle(void* state, hawser_tenant* t) {
  band* self = state;
  credit_idle(state, t);
  anticipation_goes(&band_of(self, t)->wait, self->ledger.host->now_ns(self->ledger.host->ctx));
}

static void band_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  band* self = state;
  band_of(self, t)->last_charge = gpu_ns;
  anticipation_charge(&band_of(self, t)->wait, self->anticipation_ns, gpu_ns);
  credit_charged(state, t, gpu_ns, why);
}

/* Furthest below its reservation over the host's window of a second; NULL: nobody with work is below. */
static hawser_tenant* band_below_reservation(const band* self) {
  const hawser_host* host = self->ledger.host;
  hawser_tenant* best = NULL;
  uint64_t best_missing = 0;
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    const uint64_t reserved_ns = band_of(self, t)->reserved_ppm * 1000u;
    const uint64_t used_ns = hawser_look(host, t).window_used_ns;
    if (used_ns < reserved_ns && reserved_ns - used_ns > best_missing) {
      best = t;
      best_missing = reserved_ns - used_ns;
    }
  }
  return best;
}

static int band_select(void* state, hawser_decision* out) {
  const band* self = state;
  const hawser_host* host = self->ledger.host;
  out->slice_ns = 1;
  out->unit_ns = self->unit_ns != 0 ? self->unit_ns : HAWSER_UNIT_WHOLE;
  out->who = band_below_reservation(self);
  if (out->who != NULL) return HAWSER_SELECT_DECIDED;
  out->who = credit_richest(&self->ledger);
  if (out->who == NULL) return -1;
  const int64_t credit = band_of(self, out->who)->account.credit_ns;
  const uint64_t now = host->now_ns(host->ctx);
  for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
    const band_tenant* other = band_of(self, t);
    if (other->account.has_work || !other->account.active) continue;
    const int below = hawser_look(host, t).window_used_ns < other->reserved_ppm * 1000u;
    if (!below && other->account.credit_ns <= credit) continue;
    /* Nobody is worth more waiting than a quarter of what it then runs. */
    const uint64_t worth = other->last_charge / 4;
    const uint64_t longest = worth < self->anticipation_ns ? worth : self->anticipation_ns;
    const uint64_t wait = anticipation_left_ns(&other->wait, longest, now);
    if (wait != 0 && (out->wait_ns == 0 || wait < out->wait_ns)) out->wait_ns = wait;
  }
  return out->wait_ns != 0 ? HAWSER_SELECT_WAIT : HAWSER_SELECT_DECIDED;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "band",
      .version = "1",
      .priv_size = sizeof(band_tenant),
      .init = band_init,
      .fini = band_fini,
      .tenant_add = band_tenant_add,
      .tenant_del = credit_tenant_del,
      .tenant_cfg = band_tenant_cfg,
      .runnable = band_runnable,
      .idle = band_idle,
      .select = band_select,
      .charged = band_charged,
      .dump = credit_dump,
  };
  return &policy;
}
