/* SPDX-License-Identifier: Apache-2.0 */
/* The credits of GPUvm's CREDIT and BAND schedulers (section 3.5, after Xen's credit scheduler).
 *
 * Device time that a tenant uses is taken from its credit; whenever a period's worth has been used, exactly that much
 * is given back, divided by weight among those who have work or had some a moment ago (a period at most). So the sum of
 * all credits is always between minus one period and 0. Giving back a fixed amount per period of the clock, as the
 * paper first had it, lets unused credits pile up until they say nothing; it repaired that by counting the scheduler's
 * own time as device time, which this makes needless. Nobody saves up more than one period. */
#ifndef HAWSER_SCHEDULER_POLICIES_CREDIT_LEDGER_H_
#define HAWSER_SCHEDULER_POLICIES_CREDIT_LEDGER_H_

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/policies/settings.h"

typedef struct credit_ledger {
  const hawser_host* host;
  uint64_t period_ns;
  uint64_t consumed_ns; /* used and not yet given back; less than a period */
} credit_ledger;

typedef struct credit_account {
  int64_t credit_ns;
  uint64_t weight;
  uint32_t active; /* took part in this period */
  uint32_t has_work;
  uint32_t full; /* while credits are divided */
} credit_account;

static inline credit_account* credit_of(const credit_ledger* self, hawser_tenant* t) {
  return self->host->priv(self->host->ctx, t);
}

/* Gives one period's worth back, exactly but for a remainder of nanoseconds, which it returns. */
static inline uint64_t credit_give_back(credit_ledger* self, uint64_t amount) {
  hawser_tenant* (*next)(void*, hawser_tenant*) = self->host->next_tenant;
  void* ctx = self->host->ctx;
  for (hawser_tenant* t = next(ctx, NULL); t != NULL; t = next(ctx, t)) credit_of(self, t)->full = 0;
  for (;;) {
    uint64_t weights = 0;
    for (hawser_tenant* t = next(ctx, NULL); t != NULL; t = next(ctx, t)) {
      const credit_account* account = credit_of(self, t);
      if (account->active && !account->full) weights += account->weight;
    }
    if (weights == 0 || amount < weights) return amount;
    uint64_t given = 0;
    int filled = 0;
    for (hawser_tenant* t = next(ctx, NULL); t != NULL; t = next(ctx, t)) {
      credit_account* account = credit_of(self, t);
      if (!account->active || account->full) continue;
      uint64_t share = amount * account->weight / weights;
      const int64_t room = (int64_t)self->period_ns - account->credit_ns;
      if ((int64_t)share >= room) {
        share = room > 0 ? (uint64_t)room : 0;
        account->full = 1;
        filled = 1;
      }
      account->credit_ns += (int64_t)share;
      given += share;
    }
    amount -= given;
    if (!filled) return amount;
  }
}

static inline void credit_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  credit_ledger* self = state;
  if (why & HAWSER_CHARGE_ALONE) return; /* nobody missed it */
  credit_account* account = credit_of(self, t);
  account->active = 1;
  account->credit_ns -= (int64_t)gpu_ns;
  self->consumed_ns += gpu_ns;
  if (self->consumed_ns < self->period_ns) return;
  const uint64_t rest = self->consumed_ns % self->period_ns;
  self->consumed_ns = rest + credit_give_back(self, self->consumed_ns - rest);
  for (hawser_tenant* i = self->host->next_tenant(self->host->ctx, NULL); i != NULL;
       i = self->host->next_tenant(self->host->ctx, i)) {
    credit_account* other = credit_of(self, i);
    const uint64_t idle_since = hawser_look(self->host, i).idle_since_ns;
    other->active = other->has_work || self->host->now_ns(self->host->ctx) - idle_since < self->period_ns;
  }
}

static inline int credit_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  credit_of(state, t)->weight = cfg->weight;
  return 0;
}

static inline void credit_tenant_cfg(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  credit_of(state, t)->weight = cfg->weight;
}

/* What a tenant owes, or is owed, when it goes is as if it had used, or given, it in this period. */
static inline void credit_tenant_del(void* state, hawser_tenant* t) {
  credit_ledger* self = state;
  credit_account* account = credit_of(self, t);
  account->active = 0;
  if (account->credit_ns < 0 && self->consumed_ns >= (uint64_t)-account->credit_ns) {
    self->consumed_ns -= (uint64_t)-account->credit_ns;
  }
  account->credit_ns = 0;
}

static inline void credit_runnable(void* state, hawser_tenant* t) {
  credit_account* account = credit_of(state, t);
  account->active = 1;
  account->has_work = 1;
}

static inline void credit_idle(void* state, hawser_tenant* t) { credit_of(state, t)->has_work = 0; }

/* Half a second: longer nobody waits for its debts. */
#define CREDIT_PATIENCE_NS 500000000u

/* Whoever with work has most credit; among equals, who was served longest ago. But who has waited too long comes first.
 * NULL: nobody has work. */
static inline hawser_tenant* credit_richest(const credit_ledger* self) {
  const uint64_t now = self->host->now_ns(self->host->ctx);
  hawser_tenant* best = NULL;
  uint64_t best_served = 0;
  int best_old = 0;
  for (hawser_tenant* t = self->host->next_runnable(self->host->ctx, NULL); t != NULL;
       t = self->host->next_runnable(self->host->ctx, t)) {
    const hawser_tenant_view view = hawser_look(self->host, t);
    const uint64_t served = view.last_served_ns;
    const int old = now - (served > view.runnable_since_ns ? served : view.runnable_since_ns) > CREDIT_PATIENCE_NS;
    const int64_t credit = credit_of(self, t)->credit_ns;
    const int64_t best_credit = best != NULL ? credit_of(self, best)->credit_ns : 0;
    if (best == NULL || old > best_old ||
        (old == best_old && (credit > best_credit || (credit == best_credit && served < best_served)))) {
      best = t;
      best_served = served;
      best_old = old;
    }
  }
  return best;
}

static inline size_t credit_dump(void* state, char* json, size_t cap) {
  const credit_ledger* self = state;
  size_t length = 0;
  int n = snprintf(json, cap, "{\"consumed_ns\":%" PRIu64 ",\"credits_ns\":{", self->consumed_ns);
  length += n > 0 ? (size_t)n : 0;
  const char* separator = "";
  for (hawser_tenant* t = self->host->next_tenant(self->host->ctx, NULL); t != NULL;
       t = self->host->next_tenant(self->host->ctx, t)) {
    n = snprintf(length < cap ? json + length : NULL, length < cap ? cap - length : 0, "%s\"%" PRIu64 "\":%" PRId64,
                 separator, hawser_look(self->host, t).id, credit_of(self, t)->credit_ns);
    length += n > 0 ? (size_t)n : 0;
    separator = ",";
  }
  n = snprintf(length < cap ? json + length : NULL, length < cap ? cap - length : 0, "}}");
  return length + (n > 0 ? (size_t)n : 0);
}

#endif /* HAWSER_SCHEDULER_POLICIES_CREDIT_LEDGER_H_ */
