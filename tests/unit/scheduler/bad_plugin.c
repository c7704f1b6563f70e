/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that break the rules, one for each value of BAD. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "hawser/policy.h"

enum bad {
  BAD_CRASH = 1,
  BAD_SPIN,
  BAD_EXIT,
  BAD_ERROR,
  BAD_STALL,
  BAD_STARVE,
  BAD_SLOW,
  BAD_SLEEP,
  BAD_NOBODY,
  BAD_STRANGER,
  BAD_IDLE_TENANT,
  BAD_FLAGS,
  BAD_RESULT,
  BAD_ADD,
  BAD_STAGE,
  BAD_INIT,
  BAD_SIZE,
  BAD_MAJOR,
  BAD_NULL,
  BAD_NO_SELECT,
  BAD_NO_NAME
};

typedef struct bad_state {
  const hawser_host* host;
  unsigned calls;
} bad_state;

static int bad_init(const hawser_host* host, void** state) {
  bad_state* self = calloc(1, sizeof(*self));
  self->host = host;
  *state = self;
  return BAD == BAD_INIT ? -5 : 0;
}

static void bad_fini(void* state) { free(state); }

static int bad_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  (void)state;
  (void)t;
  return BAD == BAD_ADD && cfg->id >= 2 ? -1 : 0;
}

static hawser_tenant* bad_stage(void* state, hawser_tenant* running) {
  (void)state;
  (void)running;
  return BAD == BAD_STAGE ? (hawser_tenant*)(uintptr_t)0x1234 : NULL;
}

static void burn(clockid_t clock, long ns) {
  struct timespec begin, now;
  clock_gettime(clock, &begin);
  do {
    clock_gettime(clock, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ns);
}

static int bad_select(void* state, hawser_decision* out) {
  bad_state* self = state;
  const hawser_host* host = self->host;
  ++self->calls;
  uint64_t oldest = 0;
  for (hawser_tenant* t = host->next_runnable(host->ctx, NULL); t != NULL; t = host->next_runnable(host->ctx, t)) {
    hawser_tenant_view view = {.size = sizeof(view)};
    host->view(host->ctx, t, &view);
    if (out->who != NULL && view.last_served_ns >= oldest) continue;
    out->who = t;
    oldest = view.last_served_ns;
  }
  if (self->calls <= 20) return HAWSER_SELECT_DECIDED; /* a good beginning */
  switch (BAD) {
    case BAD_CRASH:
      raise(SIGSEGV);
      break;
    case BAD_SPIN:
      for (volatile int i = 0;; ++i) continue;
    case BAD_EXIT:
      exit(0);
    case BAD_ERROR:
      return -7;
    case BAD_STALL:
      out->wait_ns = UINT64_MAX;
      return HAWSER_SELECT_WAIT;
    case BAD_SLOW:
      burn(CLOCK_THREAD_CPUTIME_ID, 3000000);
      break;
    case BAD_SLEEP: {
      const struct timespec length = {0, 80000000};
      nanosleep(&length, NULL);
      break;
    }
    case BAD_NOBODY:
      out->who = NULL;
      break;
    case BAD_STRANGER:
      out->who = (hawser_tenant*)(uintptr_t)0xdead0;
      break;
    case BAD_IDLE_TENANT:
      for (hawser_tenant* t = host->next_tenant(host->ctx, NULL); t != NULL; t = host->next_tenant(host->ctx, t)) {
        hawser_tenant_view view = {.size = sizeof(view)};
        host->view(host->ctx, t, &view);
        if (view.state == HAWSER_TENANT_IDLE) out->who = t;
      }
      break;
    case BAD_FLAGS:
      out->flags = 0x80000000u;
      break;
    case BAD_RESULT:
      return 42;
    case BAD_STARVE: /* always the first */
      out->who = host->next_runnable(host->ctx, NULL);
      break;
    default:
      break;
  }
  return HAWSER_SELECT_DECIDED;
}

HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host) {
  (void)host;
  static hawser_policy policy;
  policy.size = BAD == BAD_SIZE ? 7 : sizeof(hawser_policy);
  policy.abi_major = BAD == BAD_MAJOR ? 2 : HAWSER_POLICY_ABI_MAJOR;
  policy.abi_minor = HAWSER_POLICY_ABI_MINOR;
  policy.name = BAD == BAD_NO_NAME ? NULL : "bad";
  policy.version = "1";
  policy.init = bad_init;
  policy.fini = bad_fini;
  policy.tenant_add = bad_tenant_add;
  policy.stage = bad_stage;
  policy.select = BAD == BAD_NO_SELECT ? NULL : bad_select;
  return BAD == BAD_NULL ? NULL : &policy;
}
