/* SPDX-License-Identifier: Apache-2.0 */
/* lightest: whoever has used the device least, for its weight, is next. A complete policy; docs/policies.md explains
 * it. */
#include <stdlib.h>

#include "hawser/policy.h"

/* What the policy knows as a whole, */
typedef struct lightest {
  const hawser_host* host;
} lightest;

/* and of each tenant. The host keeps this for us, zeroed at first. */
typedef struct account {
  uint64_t used; /* device time, as if the weight were 1 */
  uint64_t weight;
} account;

static account* account_of(const lightest* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

/* Who has used least among those who have work, but for `except`; NULL: nobody. */
static hawser_tenant* least(const lightest* self, const hawser_tenant* except) {
  const hawser_host* host = self->host;
  hawser_tenant* best = NULL;
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    if (t == except) continue;
    if (best == NULL || account_of(self, t)->used < account_of(self, best)->used) best = t;
  }
  return best;
}

static int init(const hawser_host* host, void** state) {
  lightest* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  *state = self;
  return 0;
}

static void fini(void* state) { free(state); }

static int tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  account_of(state, t)->weight = cfg->weight;
  return 0;
}

static void tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  account_of(state, t)->weight = cfg->weight;
}

/* Who comes, or comes back, begins where the lightest of the others is: time away is not saved up. */
static void runnable(void* state, hawser_tenant* t) {
  const lightest* self = state;
  hawser_tenant* other = least(self, t);
  if (other != NULL && account_of(self, t)->used < account_of(self, other)->used) {
    account_of(self, t)->used = account_of(self, other)->used;
  }
}

static void charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  account* a = account_of(state, t);
  if (why & HAWSER_CHARGE_ALONE) return; /* it took nothing from anybody */
  a->used += gpu_ns / a->weight;
}

static int select_next(void* state, hawser_decision* out) {
  out->who = least(state, NULL);
  out->slice_ns = 2000000; /* 2 ms; everything else as the host likes it */
  return out->who != NULL ? HAWSER_SELECT_DECIDED : -1;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "lightest",
      .version = "1",
      .priv_size = sizeof(account),
      .init = init,
      .fini = fini,
      .tenant_add = tenant_add,
      .tenant_cfg = tenant_cfg,
      .runnable = runnable,
      .select = select_next,
      .charged = charged,
  };
  return &policy;
}
