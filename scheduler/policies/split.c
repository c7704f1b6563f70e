/* SPDX-License-Identifier: Apache-2.0 */
/* split: thread groups in rounds ("GPGPU Task Scheduling Technique for Reducing the Performance Deviation of Multiple
 * GPGPU Tasks", algorithms 1 and 2, as they must be read to work).
 *
 * In each round everybody with work runs one thread group, made so large that it fills a slice (the host sizes it from
 * the measured rate; the paper corrects a thread count by seconds, which either does nothing or oscillates). Whoever
 * has used more than twice what the least has used sits out one round: that repays what kernels took that could not be
 * split. Use is counted over the last second and not since the beginning, and the least is not taken below one slice,
 * or a newcomer would pause everybody.
 *
 * Settings: slice_us (2000; for weight 100). */
#include "scheduler/policies/settings.h"

typedef struct split {
  const hawser_host* host;
  uint64_t slice_ns;
  uint64_t round;
  uint64_t paused; /* rounds that somebody sat out */
} split;

typedef struct split_tenant {
  uint64_t round; /* the last in which it had its turn, or sat out */
} split_tenant;

static split_tenant* split_of(const split* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static int split_init(const hawser_host* host, void** state) {
  split* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->slice_ns = hawser_setting_us(host, "slice_us", 2000000u);
  self->round = 1;
  *state = self;
  return 0;
}

static void split_fini(void* state) { free(state); }

/* Device time in the last second as if its weight were 100. */
static uint64_t split_usage(const hawser_tenant_view* view) {
  return view->window_used_ns * 100u / (view->weight != 0 ? view->weight : 1u);
}

static int split_select(void* state, hawser_decision* out) {
  split* self = state;
  const hawser_host* host = self->host;
  uint64_t least = UINT64_MAX;
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    const hawser_tenant_view view = hawser_look(host, t);
    const uint64_t usage = split_usage(&view);
    if (usage < least) least = usage;
  }
  if (least < self->slice_ns) least = self->slice_ns;
  for (int pass = 0; pass < 2; ++pass, ++self->round) {
    for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
      split_tenant* tenant = split_of(self, t);
      if (tenant->round >= self->round) continue;
      const hawser_tenant_view view = hawser_look(host, t);
      tenant->round = self->round;
      if (split_usage(&view) > 2 * least) {
        ++self->paused;
        continue;
      }
      out->who = t;
      out->slice_ns = self->slice_ns * view.weight / 100u;
      out->unit_ns = out->slice_ns; /* a group fills the slice */
      return HAWSER_SELECT_DECIDED;
    }
  }
  return -1;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "split",
      .version = "1",
      .priv_size = sizeof(split_tenant),
      .init = split_init,
      .fini = split_fini,
      .select = split_select,
  };
  return &policy;
}
