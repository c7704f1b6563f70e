// SPDX-License-Identifier: Apache-2.0
// HAWSER_STATS: the session's counters as one JSON object, written when the process exits.
#ifndef HAWSER_INTERPOSER_CORE_STATS_FILE_H_
#define HAWSER_INTERPOSER_CORE_STATS_FILE_H_

#include <string>

#include "interposer/core/session.h"

namespace hawser::guest {

/// {"commands":..,"bytes_up":..,"bytes_down":..,"waits":..,"bulk_up":..,"bulk_down":..}
std::string StatsJson(const Stats& stats);

/// Writes `stats` to `path` when the process exits; an empty path does nothing. `stats` lives for ever.
void WriteStatsAtExit(const std::string& path, const Stats* stats);
/// In a child of fork(): the parent's counters are none of its business.
void ForgetStatsAfterFork();

}  // namespace hawser::guest

#endif  // HAWSER_INTERPOSER_CORE_STATS_FILE_H_
