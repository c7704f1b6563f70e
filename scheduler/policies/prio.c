/* SPDX-License-Identifier: Apache-2.0 */
/* prio: the most urgent first. Below the top, kernels run in short pieces with two in flight, so that whoever is
 * more urgent waits for these at most, and the device does not wait between two pieces; a lower level gets the device
 * only after the higher ones have been silent for a moment. Within a level, whoever was served longest ago. Whoever has
 * waited too long gets one slice, whatever its level. A slice of whoever has no rival of its level is a long one, which
 * ends when one comes. Settings: slice_us (1000), long_slice_us (20000), unit_us (150), silence_us (100), aging_us
 * (500000). */
#include "scheduler/policies/settings.h"

typedef struct prio {
  const hawser_host* host;
  uint64_t slice_ns, long_slice_ns, unit_ns, silence_ns, aging_ns;
  int is_long; /* the running slice is */
} prio;

static int prio_init(const hawser_host* host, void** state) {
  prio* self = calloc(1, sizeof(*self));
  if (self == NULL) return -1;
  self->host = host;
  self->slice_ns = hawser_setting_us(host, "slice_us", 1000000u);
  self->long_slice_ns = hawser_setting_us(host, "long_slice_us", 20000000u);
  self->unit_ns = hawser_setting_us(host, "unit_us", 150000u);
  self->silence_ns = hawser_setting_us(host, "silence_us", 100000u);
  self->aging_ns = hawser_setting_us(host, "aging_us", 500000000u);
  *state = self;
  return 0;
}

static void prio_fini(void* state) { free(state); }

static uint64_t prio_waiting_since(const hawser_tenant_view* view) {
  return view->last_served_ns > view->runnable_since_ns ? view->last_served_ns : view->runnable_since_ns;
}

/* Whether `a` goes before `b`. */
static int prio_before(const prio* self, const hawser_tenant_view* a, const hawser_tenant_view* b, uint64_t now) {
  const int a_old = now - prio_waiting_since(a) > self->aging_ns;
  const int b_old = now - prio_waiting_since(b) > self->aging_ns;
  if (a_old != b_old) return a_old;
  if (!a_old && a->priority != b->priority) return a->priority > b->priority;
  return prio_waiting_since(a) < prio_waiting_since(b);
}

static int prio_select(void* state, hawser_decision* out) {
  prio* self = state;
  const hawser_host* host = self->host;
  const uint64_t now = host->now_ns(host->ctx);
  hawser_tenant_view best = {0};
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    const hawser_tenant_view view = hawser_look(host, t);
    if (out->who == NULL || prio_before(self, &view, &best, now)) {
      out->who = t;
      best = view;
    }
  }
  if (out->who == NULL) return -1;
  const int old = now - prio_waiting_since(&best) > self->aging_ns;
  int outranked = 0, peers = 0, rivals = 0; /* rivals: peers that have work */
  for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
    const hawser_tenant_view view = hawser_look(host, t);
    if (view.priority == best.priority && t != out->who) {
      peers = 1;
      if (view.idle_since_ns == 0) rivals = 1;
    }
    if (view.priority <= best.priority) continue;
    outranked = 1;
    if (old || view.idle_since_ns == 0 || view.last_served_ns == 0) continue;
    if (now - view.idle_since_ns < self->silence_ns) {
      const uint64_t wait = view.idle_since_ns + self->silence_ns - now;
      if (out->wait_ns == 0 || wait < out->wait_ns) out->wait_ns = wait;
    }
  }
  if (out->wait_ns != 0) return HAWSER_SELECT_WAIT;
  self->is_long = !old && !rivals;
  out->slice_ns = self->is_long ? self->long_slice_ns : self->slice_ns;
  if (outranked) {
    out->unit_ns = self->unit_ns;
    /* Pieces are about as long as they should be: the second must not be refused because the first is a bit longer. */
    out->inflight_cap_ns = 2 * self->unit_ns;
    out->flags = HAWSER_DECISION_NEVER_OPEN;
  } else if (peers) {
    out->unit_ns = self->slice_ns; /* so long does a peer wait that comes meanwhile */
  }
  return HAWSER_SELECT_DECIDED;
}

static int prio_preempt(void* state, hawser_tenant* running, hawser_tenant* woken) {
  const prio* self = state;
  const int32_t ours = hawser_look(self->host, running).priority, theirs = hawser_look(self->host, woken).priority;
  return theirs > ours || (theirs == ours && self->is_long);
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static const hawser_policy policy = {
      .size = sizeof(hawser_policy),
      .abi_major = HAWSER_POLICY_ABI_MAJOR,
      .abi_minor = HAWSER_POLICY_ABI_MINOR,
      .name = "prio",
      .version = "1",
      .init = prio_init,
      .fini = prio_fini,
      .select = prio_select,
      .preempt = prio_preempt,
  };
  return &policy;
}
