/* SPDX-License-Identifier: Apache-2.0 */
/* split: thread groups in rounds ("GPGPU Task Scheduling Technique for Reducing the Performance Deviation of Multiple
 * GPGPU Tasks", algorithms 1 and 2, as they must be read to work).
 *
 * In each round everybody with work runs one thread group, made so large that it fills a slice (the host sizes it from
 * the measured rate). What a turn lacked of its slice, because a group is whole work-groups, is added to the next one,
 * and what it had too much is taken off, by at most a slice: work-groups of 0.8 ms may leave one
 * tenant 12.7 and another 14 ms of the same slice in every round. (The paper adds a lack in seconds to a number of
 * threads, which either does nothing or oscillates; this is what that was meant to reach.) Whoever has used more than
 * twice what the least has used sits out one round: that repays what kernels took that could not be split. Old use
 * counts less (it is halved every second, also while nobody uses anything: what somebody took before an idle hour is
 * nobody's loss after it), and who comes, or comes back after a round, begins with the least of those who are there:
 * otherwise a newcomer would pause everybody.
 *
 * Settings: slice_us (2000; for weight 100). */
#include "scheduler/policies/settings.h"

typedef struct split {
  const hawser_host* host;
  uint64_t slice_ns;
  uint64_t round;
  uint64_t paused;       /* rounds that somebody sat out */
  uint64_t halved_at_ns; /* usage, last */
} split;

typedef struct split_tenant {
  uint64_t round;    /* the last in which it had its turn, or sat out */
  uint64_t usage_ns; /* as if its weight were 100 */
  uint64_t weight;
  int64_t lack_ns; /* of its slice, in its last turns; less than 0: it had more */
} split_tenant;

static split_tenant* split_of(const split* self, hawser_tenant* t) { return self->host->priv(self->host->ctx, t); }

static uint64_t split_slice(const split* self, const split_tenant* tenant) {
  return self->slice_ns * tenant->weight / 100u;
}

static int split_init(const hawser_host* host, void** state) {
  split* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->slice_ns = hawser_setting_us(host, "slice_us", 2000000u);
  self->halved_at_ns = host->now_ns(host->ctx);
  self->round = 1;
  *state = self;
  return 0;
}

static void split_fini(void* state) { free(state); }

/* The least usage among those who have work, but for `except`; UINT64_MAX: nobody has. */
static uint64_t split_least(const split* self, const hawser_tenant* except) {
  uint64_t least = UINT64_MAX;
  for (hawser_tenant* t = self->host->next_runnable(self->host->ctx, NULL); t != NULL;
       t = self->host->next_runnable(self->host->ctx, t)) {
    if (t != except && split_of(self, t)->usage_ns < least) least = split_of(self, t)->usage_ns;
  }
  return least;
}

static void split_age(split* self) {
  const hawser_host* host = self->host;
  const uint64_t now = host->now_ns(host->ctx);
  const uint64_t times = (now - self->halved_at_ns) / 1000000000u;
  if (times == 0) return;
  self->halved_at_ns += times * 1000000000u;
  for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
    split_of(self, t)->usage_ns = times < 64 ? split_of(self, t)->usage_ns >> times : 0;
  }
}

static int split_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  split_of(state, t)->weight = cfg->weight;
  return 0;
}

static void split_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  split_of(state, t)->weight = cfg->weight;
}

static void split_runnable(void* state, hawser_tenant* t) {
  split* self = state;
  split_tenant* tenant = split_of(self, t);
  split_age(self);
  tenant->lack_ns = 0; /* It had no work: that is why its last turn was short. */
  const uint64_t least = split_least(self, t);
  const int was_away = tenant->round + 1 < self->round;
  if (was_away && least != UINT64_MAX && tenant->usage_ns < least) tenant->usage_ns = least;
}

static void split_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  split* self = state;
  split_age(self);
  if (why & HAWSER_CHARGE_ALONE) return;
  split_tenant* tenant = split_of(self, t);
  tenant->usage_ns += gpu_ns * 100u / tenant->weight;
  const int64_t slice = (int64_t)split_slice(self, tenant);
  const int64_t used = gpu_ns < (uint64_t)slice * 2 ? (int64_t)gpu_ns : slice * 2;
  tenant->lack_ns += slice - used;
  if (tenant->lack_ns > slice) tenant->lack_ns = slice;
  if (tenant->lack_ns < -slice) tenant->lack_ns = -slice;
}

static int split_select(void* state, hawser_decision* out) {
  split* self = state;
  const hawser_host* host = self->host;
  uint64_t least = split_least(self, NULL);
  if (least < self->slice_ns) least = self->slice_ns;
  for (int pass = 0; pass < 2; ++pass, ++self->round) {
    for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
      split_tenant* tenant = split_of(self, t);
      if (tenant->round >= self->round) continue;
      tenant->round = self->round;
      if (tenant->usage_ns > 2 * least) {
        ++self->paused;
        continue;
      }
      out->who = t;
      /* A group fills the slice, also one that was rounded down to whole work-groups. */
      const int64_t slice = (int64_t)split_slice(self, tenant), unit = slice + tenant->lack_ns;
      out->unit_ns = (uint64_t)(unit > slice / 8 ? unit : slice / 8);
      out->slice_ns = out->unit_ns - out->unit_ns / 8;
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
      .tenant_add = split_tenant_add,
      .tenant_cfg = split_tenant_cfg,
      .runnable = split_runnable,
      .select = split_select,
      .charged = split_charged,
  };
  return &policy;
}
