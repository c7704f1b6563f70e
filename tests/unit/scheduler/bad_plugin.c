/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that break the rules, one for each value of BAD. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
  BAD_HICCUP,
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
  BAD_NO_NAME,
  BAD_ABORT,
  BAD_NULL_POINTER,
  BAD_SCRIBBLE,
  BAD_PROTECT,
  BAD_UNMAP,
  BAD_DIE,
  BAD_LOG,
  BAD_DUMP,
  BAD_HURRY,
  BAD_UNIT,
  BAD_EARLY
};

/* Where a policy in a process of its own finds the pages that it shares with the scheduler: the host's object begins
 * with their addresses. Nobody promises that; this plugin is up to no good. */
static void** bad_pages(const hawser_host* host) { return host->ctx; }

typedef struct bad_state {
  const hawser_host* host;
  unsigned calls;
  unsigned steps;
  unsigned last; /* BAD_DIE: the step at which it dies; 0: never */
} bad_state;

static void bad_step(bad_state* self) {
  if (BAD == BAD_DIE && ++self->steps == self->last) raise(SIGKILL);
}

#ifdef BAD_AT_ONCE
__attribute__((constructor)) static void bad_early(void) { abort(); }
#endif

static int bad_init(const hawser_host* host, void** state) {
  bad_state* self = calloc(1, sizeof(*self));
  self->host = host;
  *state = self;
  const char* last = host->cfg(host->ctx, "die_at");
  self->last = last != NULL ? (unsigned)atoi(last) : 0;
  bad_step(self);
  if (BAD == BAD_HURRY) host->timer(host->ctx, 1);
  return BAD == BAD_INIT ? -5 : 0;
}

static void bad_fini(void* state) { free(state); }

static int bad_tenant_add(void* state, hawser_tenant* t, const hawser_tenant_cfg* cfg) {
  (void)t;
  bad_step(state);
  return BAD == BAD_ADD && cfg->id >= 2 ? -1 : 0;
}

static hawser_tenant* bad_stage(void* state, hawser_tenant* running) {
  (void)running;
  bad_step(state);
  return BAD == BAD_STAGE ? (hawser_tenant*)(uintptr_t)0x1234 : NULL;
}

static void bad_runnable(void* state, hawser_tenant* t) {
  (void)t;
  bad_step(state);
}

static void bad_on_timer(void* state, uint64_t now_ns) {
  bad_state* self = state;
  self->host->timer(self->host->ctx, now_ns + 1000);
}

static void bad_charged(void* state, hawser_tenant* t, uint64_t gpu_ns, uint32_t why) {
  (void)t;
  (void)gpu_ns;
  (void)why;
  bad_step(state);
}

static size_t bad_dump(void* state, char* json, size_t cap) {
  static const char text[] = "{\"no\": end, \"tenants\": [";
  (void)state;
  memcpy(json, text, sizeof(text) < cap ? sizeof(text) : cap);
  return sizeof(text) - 1;
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
  bad_step(self);
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
    case BAD_DUMP:
    case BAD_ERROR:
      return -7;
    case BAD_UNIT:
      out->unit_ns = 1;
      break;
    case BAD_ABORT:
      abort();
    case BAD_NULL_POINTER:
      *(volatile int*)(uintptr_t)16 = 1; /* not 0, which sanitizers look out for */
      break;
    case BAD_SCRIBBLE: /* over the page that it answers on, and then it does not answer */
      for (size_t at = 0; at < 4096; ++at) ((volatile unsigned char*)bad_pages(host)[1])[at] = 0xa5;
      for (volatile int i = 0;; ++i) continue;
    case BAD_PROTECT: /* over the page that the scheduler writes on */
      if (mprotect(bad_pages(host)[0], 4096, PROT_READ | PROT_WRITE) == 0) memset(bad_pages(host)[0], 0xa5, 4096);
      return -8;
    case BAD_UNMAP:
      munmap(bad_pages(host)[1], 65536);
      break;
    case BAD_LOG:
      for (;;) host->log(host->ctx, HAWSER_LOG_ERROR, "\033[2Jeverything is\nfine");
    case BAD_STALL:
      out->wait_ns = UINT64_MAX;
      return HAWSER_SELECT_WAIT;
    case BAD_SLOW:
      burn(CLOCK_THREAD_CPUTIME_ID, 3000000);
      break;
    case BAD_HICCUP: {  // As if the machine had been elsewhere, twice in a row, once in its life.
      static int left = 2;
      if (left > 0) {
        --left;
        burn(CLOCK_THREAD_CPUTIME_ID, 3000000);
      }
      break;
    }
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
  policy.runnable = bad_runnable;
  policy.charged = bad_charged;
  policy.on_timer = BAD == BAD_HURRY ? bad_on_timer : NULL;
  policy.dump = BAD == BAD_DUMP ? bad_dump : NULL;
  policy.select = BAD == BAD_NO_SELECT ? NULL : bad_select;
  return BAD == BAD_NULL ? NULL : &policy;
}
