/* SPDX-License-Identifier: Apache-2.0 */
/* fifo: requests in the order in which they came, each one whole. What a device does that nobody schedules; the
 * baseline of both papers. It is not fair and can starve: long kernels and long queues win. */
#include "scheduler/policies/settings.h"

typedef struct fifo {
  const hawser_host* host;
} fifo;

static int fifo_init(const hawser_host* host, void** state) {
  fifo* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  *state = self;
  return 0;
}

static void fifo_fini(void* state) { free(state); }

static int fifo_select(void* state, hawser_decision* out) {
  const fifo* self = state;
  uint64_t oldest = UINT64_MAX;
  for (hawser_tenant* t = self->host->next_runnable(self->host->ctx, NULL); t != NULL;
       t = self->host->next_runnable(self->host->ctx, t)) {
    const hawser_tenant_view view = hawser_look(self->host, t);
    if (out->who == NULL || view.oldest_arrival_ns < oldest) {
      out->who = t;
      oldest = view.oldest_arrival_ns;
    }
  }
  out->slice_ns = 1; /* one kernel */
  out->unit_ns = HAWSER_UNIT_WHOLE;
  return HAWSER_SELECT_DECIDED;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "fifo",
      .version = "1",
      .init = fifo_init,
      .fini = fifo_fini,
      .select = fifo_select,
  };
  return &policy;
}
