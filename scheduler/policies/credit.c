/* SPDX-License-Identifier: Apache-2.0 */
/* credit: whoever has most credit, one kernel each time (GPUvm's CREDIT). It never leaves the device idle, so with two
 * tenants that each send the next request when the last is done it always finds only the other one waiting, and is as
 * unfair as fifo. Settings: period_us (30000), unit_us (0: kernels whole). */
#include "scheduler/policies/credit_ledger.h"

typedef struct credit {
  credit_ledger ledger; /* first: the ledger's functions take a pointer to it */
  uint64_t unit_ns;
} credit;

static int credit_init(const hawser_host* host, void** state) {
  credit* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->ledger.host = host;
  self->ledger.period_ns = hawser_setting_us(host, "period_us", 30000000u);
  if (self->ledger.period_ns == 0) self->ledger.period_ns = 1000u;
  self->unit_ns = hawser_setting_us(host, "unit_us", 0);
  *state = self;
  return 0;
}

static void credit_fini(void* state) { free(state); }

static int credit_select(void* state, hawser_decision* out) {
  const credit* self = state;
  out->who = credit_richest(&self->ledger);
  out->slice_ns = 1;
  out->unit_ns = self->unit_ns != 0 ? self->unit_ns : HAWSER_UNIT_WHOLE;
  return out->who != NULL ? HAWSER_SELECT_DECIDED : -1;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "credit",
      .version = "1",
      .priv_size = sizeof(credit_account),
      .init = credit_init,
      .fini = credit_fini,
      .tenant_add = credit_tenant_add,
      .tenant_del = credit_tenant_del,
      .tenant_cfg = credit_tenant_cfg,
      .runnable = credit_runnable,
      .idle = credit_idle,
      .select = credit_select,
      .charged = credit_charged,
      .dump = credit_dump,
  };
  return &policy;
}
