/* SPDX-License-Identifier: Apache-2.0 */
/* rr: one slice each, in turn. The slice is device time, so switching is not counted (DymGPU's round robin; 16 ms
 * there). Settings: slice_us (16000). Weights lengthen the slice: weight 100 is one slice. */
#include "scheduler/policies/settings.h"

typedef struct rr {
  const hawser_host* host;
  uint64_t slice_ns;
  uint64_t turn;
} rr;

typedef struct rr_tenant {
  uint64_t last_turn; /* 0: never served */
} rr_tenant;

static int rr_init(const hawser_host* host, void** state) {
  rr* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->slice_ns = hawser_setting_us(host, "slice_us", 16000000u);
  *state = self;
  return 0;
}

static void rr_fini(void* state) { free(state); }

static rr_tenant* rr_priv(rr* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static int rr_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  rr* self = state;
  (void)cfg;
  rr_priv(self, t)->last_turn = ++self->turn; /* behind everybody who waits */
  return 0;
}

static int rr_select(void* state, hawser_decision* out) {
  rr* self = state;
  for (hawser_tenant* t = self->host->next_runnable(self->host->ctx, NULL); t != NULL;
       t = self->host->next_runnable(self->host->ctx, t)) {
    if (out->who == NULL || rr_priv(self, t)->last_turn < rr_priv(self, out->who)->last_turn) out->who = t;
  }
  if (out->who == NULL) return -1;
  const uint64_t weight = hawser_look(self->host, out->who).weight;
  rr_priv(self, out->who)->last_turn = ++self->turn;
  out->slice_ns = self->slice_ns * weight / 100u;
  return HAWSER_SELECT_DECIDED;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "rr",
      .version = "1",
      .priv_size = sizeof(rr_tenant),
      .init = rr_init,
      .fini = rr_fini,
      .tenant_add = rr_tenant_add,
      .select = rr_select,
  };
  return &policy;
}
