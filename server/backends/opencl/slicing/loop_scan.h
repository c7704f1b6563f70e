// SPDX-License-Identifier: Apache-2.0
// Finds loops that may wait for another work-group. Such a kernel must run whole: a part of it could wait for ever for
// a group of a later part. (Waiting for a group of the same or an earlier part is harmless: parts run in ascending
// order, and all groups of one part are launched together.)
//
// A loop waits when it looks at memory that others change and its end may depend on what it sees. It looks by: an
// atomic whose result is used, a fence, a global barrier, something volatile, or a function that does one of these.
// Its end does not depend on that when it is counted: a for whose condition's names are not assigned in the body, and
// that nothing leaves early. Not waits either: atomics whose result nobody uses (histograms), and the update loop with
// compare and exchange whose expected and new value are computed in the loop (atomic addition of floats): somebody
// always gets on. A lock taken in a loop counts as a wait: what it waits for cannot be told from the text. And a loop
// waits that only reads, with or without a barrier of its group: nothing of its own could end it.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_LOOP_SCAN_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_LOOP_SCAN_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/backends/opencl/slicing/program_text.h"

namespace hawser::server::slicing {

/// What a part does, in bits; they only ever grow while more is known about what it names.
enum Behaviour : uint8_t {
  kObserves = 1 << 0,     ///< Looks at memory that others change, and may hand on what it saw.
  kUpdates = 1 << 1,      ///< Its value may be the result of an atomic update.
  kWaits = 1 << 2,        ///< Has a loop that may wait.
  kOpenLoop = 1 << 3,     ///< A macro with the beginning of a loop only.
  kHasVolatile = 1 << 4,  ///< A macro or type with `volatile` in it.
};

/// `behaviour_of(name)` gives what is known so far of everything with that name. `*budget` counts steps down; at 0
/// the answer is not to be used.
uint8_t ScanLoops(const Part& part, const std::function<uint8_t(std::string_view)>& behaviour_of, int64_t* budget);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_LOOP_SCAN_H_
