// SPDX-License-Identifier: Apache-2.0
// What each measure must reach. Reported, never asserted in a test.
#ifndef HAWSER_BENCH_TARGETS_H_
#define HAWSER_BENCH_TARGETS_H_

#include <optional>
#include <string>

#include "bench/results.h"

namespace hawser::bench {

/// The target of row `id` over `transport`, given what was measured; nothing when there is none, or
/// when what it is relative to was not measured. `raw` may be null.
std::optional<Target> TargetFor(const std::string& id, wire::Transport transport, std::optional<double> native,
                                double remote, const RawTransport* raw);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_TARGETS_H_
