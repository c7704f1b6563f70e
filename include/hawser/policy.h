/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduling policy of a Hawser server as a plugin: who gets the device next, and for how long.
 *
 * A plugin is a shared object in plain C11 that exports hawser_policy_entry_v1(). It needs this header and nothing
 * else. The same binary runs in the server and in the simulator (`hawser sim sched --policy ./mine.so`).
 * docs/policies.md teaches it in ten minutes; examples/policy/ is a complete one.
 *
 * What the host does, so that a policy need not: it knows which tenants have work, gives and takes back grants,
 * measures the device time that each used, splits large kernels into pieces, bounds what is in flight, and serves a
 * tenant that is alone without asking anybody. A policy only chooses, when the device is free and somebody wants it.
 *
 * Threads: all callbacks come from one thread, one at a time, and never during each other. A callback must not block,
 * sleep, or wait for anything, and should take microseconds: more than 200 us of processor time is slow, and three slow
 * ones in a row end the policy.
 *
 * Time: only from hawser_host.now_ns(), nanoseconds of a clock that never goes back. In the simulator it is virtual.
 *
 * Tenants: a hawser_tenant pointer is a handle, not to be looked into. It is valid from the beginning of tenant_add()
 * until the end of tenant_del().
 *
 * Memory: strings and structs that one side passes to the other belong to the side that passes them and are valid
 * during the call. Exceptions: hawser_host and hawser_policy themselves stay where they are from
 * hawser_policy_entry_v1() until after fini(). priv() memory belongs to the host.
 *
 * Versions: every struct begins with its `size` and only ever grows at its end. Whoever receives a struct reads no more
 * than `size` bytes; what is missing is zero, and zero always means "default" or "not offered". A policy that calls a
 * function of hawser_host that is newer than 1.0 must first see whether hawser_host.size reaches it. Reserved fields
 * and unknown flags must be zero. A different major version is refused.
 *
 * Mistakes: each decision is checked. A policy that answers with an error, chooses somebody who has no work, keeps the
 * device idle although there is work, is slow, or lets a tenant starve (default: 1 s) is ejected: the built-in `fair`
 * takes over, nobody loses work, the operator gets an event and the policy's dump(). A policy that crashes takes the
 * process with it: let `hawser policy test` run it first, which does so in a process of its own.
 */
#ifndef HAWSER_INCLUDE_HAWSER_POLICY_H_
#define HAWSER_INCLUDE_HAWSER_POLICY_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAWSER_POLICY_ABI_MAJOR 1u /* another one: not compatible */
#define HAWSER_POLICY_ABI_MINOR 0u /* a greater one: more fields and functions at the ends of the structs */

#if defined(__GNUC__)
#define HAWSER_POLICY_EXPORT __attribute__((visibility("default")))
#else
#define HAWSER_POLICY_EXPORT
#endif

/* Somebody who shares the device. */
typedef struct hawser_tenant hawser_tenant;

/* What the operator configured for a tenant. */
typedef struct hawser_tenant_cfg {
  uint32_t size;
  uint32_t weight;        /* at least 1; two tenants that always have work get time in proportion; usually 100 */
  uint64_t id;            /* never used twice while the server lives */
  int32_t priority;       /* greater is more urgent; 0 is ordinary */
  uint32_t min_share_ppm; /* reserved part of the device in millionths; 0: none */
  uint32_t max_share_ppm; /* limit in millionths; 0: none */
  uint32_t reserved;
  uint64_t slo_ns; /* wanted time from a request's arrival to its end; 0: none */
} hawser_tenant_cfg;

/* Values of hawser_tenant_view.state. */
enum {
  HAWSER_TENANT_IDLE = 0,     /* no work */
  HAWSER_TENANT_RUNNABLE = 1, /* has work and waits */
  HAWSER_TENANT_GRANTED = 2,  /* has the device */
  HAWSER_TENANT_DRAINING = 3  /* had the device; what is in flight ends */
};

/* What is known of a tenant now. The caller of view() sets `size`; the host fills what it knows. The simulator knows
 * every request that waits. A server knows, of each process of the tenant, what comes next: one launch, or the next
 * part of one that is split, which waits since it came to its turn within that process. */
typedef struct hawser_tenant_view {
  uint32_t size;
  uint32_t state;
  uint64_t id;
  uint32_t weight;
  int32_t priority;
  uint64_t used_ns;           /* device time since the tenant came */
  uint64_t window_used_ns;    /* device time in the last second */
  uint64_t pending_ns;        /* estimated length of what waits to be submitted */
  uint64_t pending_count;     /* requests that wait to be submitted; in a server at most one for each process */
  uint64_t inflight_ns;       /* estimated length of what the device has */
  uint64_t oldest_arrival_ns; /* arrival of the oldest request that waits; 0: none waits */
  uint64_t runnable_since_ns; /* since when it has work without a break; 0: it has none */
  uint64_t idle_since_ns;     /* since when it has no work; 0: it has some */
  uint64_t last_served_ns;    /* end of its last grant; 0: never had one */
  uint64_t unit_ns;           /* shortest piece into which its next work can be split; 0: unknown, as in a server */
  uint64_t last_unit_ns;      /* measured length of its last piece; 0: none yet */
  uint64_t deadline_ns;       /* oldest_arrival_ns and the slo: when that should be done; 0: no slo, or none waits */
  uint64_t mem_resident;      /* bytes of device memory; 0: unknown, as in a server and in the simulator */
  uint64_t mem_total;         /* bytes of device memory, and what was moved out of it; likewise */
} hawser_tenant_view;

/* hawser_decision.unit_ns: run kernels whole. */
#define HAWSER_UNIT_WHOLE UINT64_MAX

/* hawser_decision.flags */
enum {
  /* Even if nobody else has had work for a while, give a slice and ask again after it. */
  HAWSER_DECISION_NEVER_OPEN = 1u
};

/* The answer to select(). It comes zeroed but for `size`; zero asks for the host's default. */
typedef struct hawser_decision {
  uint32_t size;
  uint32_t flags;
  hawser_tenant* who;       /* must have work */
  uint64_t slice_ns;        /* device time after which the grant ends, at the end of a piece; 1: one piece */
  uint64_t inflight_cap_ns; /* estimated time that may be in flight; bounds how long taking back a grant takes */
  uint64_t unit_ns;         /* wanted length of the pieces of a kernel */
  uint64_t linger_ns;       /* how long, in all, the grant may stand idle while others wait; 0: not at all */
  uint64_t wait_ns;         /* with HAWSER_SELECT_WAIT: ask again after this time, or when something changes */
} hawser_decision;

/* Results of select(). Negative: an error, ends the policy. */
enum {
  HAWSER_SELECT_DECIDED = 0, /* `who` gets a grant */
  HAWSER_SELECT_WAIT = 1     /* leave the device idle for `wait_ns`: somebody better is about to come */
};

/* charged(): why */
enum {
  HAWSER_CHARGE_ALONE = 1u,  /* nobody else had work: it took nothing from anyone */
  HAWSER_CHARGE_OVERRUN = 2u /* more than the slice: the last piece was long */
};

/* log(): level */
enum { HAWSER_LOG_ERROR = 0, HAWSER_LOG_WARNING = 1, HAWSER_LOG_INFO = 2, HAWSER_LOG_DEBUG = 3 };

/* What the host offers to a policy. Pass `ctx` as the first argument of every function. */
typedef struct hawser_host {
  uint32_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t reserved;
  void* ctx;
  uint64_t (*now_ns)(void* ctx);
  /* Fills *view, of which the caller has set `size`. */
  void (*view)(void* ctx, const hawser_tenant* tenant, hawser_tenant_view* view);
  /* The policy's own memory for this tenant: hawser_policy.priv_size bytes, zeroed before tenant_add(). */
  void* (*priv)(void* ctx, hawser_tenant* tenant);
  /* The tenant that came after `prev`; NULL begins; NULL ends. */
  hawser_tenant* (*next_tenant)(void* ctx, hawser_tenant* prev);
  /* The same among those who have work, whoever has the device included. */
  hawser_tenant* (*next_runnable)(void* ctx, hawser_tenant* prev);
  /* Asks for the device back, if this tenant has it. select() follows when what is in flight has ended. */
  void (*revoke)(void* ctx, hawser_tenant* tenant);
  /* One timer: on_timer() at or soon after `at_ns`. A later call replaces the earlier; UINT64_MAX: none. From one
   * on_timer() to the next at least 250 us pass, because each wakes the scheduler; what is wanted sooner comes then. */
  void (*timer)(void* ctx, uint64_t at_ns);
  /* A setting of the operator's for this policy, as text; NULL: not set. */
  const char* (*cfg)(void* ctx, const char* key);
  void (*log)(void* ctx, int level, const char* text);
} hawser_host;

/* What a policy offers to the host. Only `name` and `select` must be there; `state` is what init() made. */
typedef struct hawser_policy {
  uint32_t size;
  uint32_t abi_major; /* HAWSER_POLICY_ABI_MAJOR and _MINOR of the header it was compiled with */
  uint32_t abi_minor;
  uint32_t flags; /* none yet: 0 */
  const char* name;
  const char* version;
  uint32_t priv_size; /* at most 65536 */
  uint32_t reserved;
  /* 0: ready. `host` stays valid until after fini(). */
  int (*init)(const hawser_host* host, void** state);
  void (*fini)(void* state);
  /* A tenant comes, goes, is configured anew. It comes without work. tenant_add() other than 0: ends the policy. */
  int (*tenant_add)(void* state, hawser_tenant* tenant, const hawser_tenant_cfg* cfg);
  void (*tenant_del)(void* state, hawser_tenant* tenant);
  void (*tenant_cfg)(void* state, hawser_tenant* tenant, const hawser_tenant_cfg* cfg);
  /* A tenant that had no work has some; a tenant has no work left, neither waiting nor in flight. */
  void (*runnable)(void* state, hawser_tenant* tenant);
  void (*idle)(void* state, hawser_tenant* tenant);
  /* The device is free and somebody has work. */
  int (*select)(void* state, hawser_decision* out);
  /* A tenant used the device for gpu_ns, as far as that was measured: once for each grant in which it did, at its end,
   * before the next select(). What it used alone is told apart, with HAWSER_CHARGE_ALONE, before the runnable() of
   * whoever ended that. A server measures little of it; what must end before the other's turn is charged as usual. */
  void (*charged)(void* state, hawser_tenant* tenant, uint64_t gpu_ns, uint32_t why);
  /* `woken` has just got work while `running` has the device. Not 0: take it back from `running`. */
  int (*preempt)(void* state, hawser_tenant* running, hawser_tenant* woken);
  void (*on_timer)(void* state, uint64_t now_ns);
  /* `running` has just been given the device, and others have work: who is likely to be next, so that it can get ready.
   * NULL: nobody in particular. Without this function: who has waited longest. */
  hawser_tenant* (*stage)(void* state, hawser_tenant* running);
  /* Memory is short: from whom to take `bytes` for `asker`. Memory is free again: who gets `bytes` back.
   * NULL: the host decides (the one furthest above, or below, its share). No host of this version asks. */
  hawser_tenant* (*mem_victim)(void* state, hawser_tenant* asker, uint64_t bytes);
  hawser_tenant* (*mem_winner)(void* state, uint64_t bytes);
  /* Writes its state as JSON, at most `cap` bytes with the final 0; returns the length that it wanted to write. */
  size_t (*dump)(void* state, char* json, size_t cap);
} hawser_policy;

/* The one symbol of a plugin. NULL: this policy cannot run in that host (say why with log()). The returned struct must
 * stay valid until fini() has returned; it may be constant. */
HAWSER_POLICY_EXPORT const hawser_policy* hawser_policy_entry_v1(const hawser_host* host);

#ifdef __cplusplus
}
#endif

#endif /* HAWSER_INCLUDE_HAWSER_POLICY_H_ */
