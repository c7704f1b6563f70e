/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a policy's settings. Numbers are written plainly: "2000", not "2ms"; the key's ending says the unit. */
#ifndef HAWSER_SCHEDULER_POLICIES_SETTINGS_H_
#define HAWSER_SCHEDULER_POLICIES_SETTINGS_H_

#include <stdlib.h>

#include "hawser/policy.h"

/* The setting `key`, a whole number of microseconds at most an hour, in nanoseconds; `otherwise` if it is not there or
 * is no such number. */
static inline uint64_t hawser_setting_us(const hawser_host* host, const char* key, uint64_t otherwise_ns) {
  const char* text = host->cfg(host->ctx, key);
  if (text == NULL || *text < '0' || *text > '9') return otherwise_ns;
  char* end = NULL;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*end != '\0' || value > 3600000000ull) {
    host->log(host->ctx, HAWSER_LOG_WARNING, key);
    return otherwise_ns;
  }
  return (uint64_t)value * 1000u;
}

static inline hawser_tenant_view hawser_look(const hawser_host* host, const hawser_tenant* tenant) {
  hawser_tenant_view view;
  view.size = (uint32_t)sizeof(view);
  host->view(host->ctx, tenant, &view);
  return view;
}

#endif /* HAWSER_SCHEDULER_POLICIES_SETTINGS_H_ */
