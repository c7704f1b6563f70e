// SPDX-License-Identifier: Apache-2.0
// What a transport can do by itself, with no call, no server and no device: the limit that remote
// calls are compared with.
#ifndef HAWSER_BENCH_RAW_TRANSPORT_H_
#define HAWSER_BENCH_RAW_TRANSPORT_H_

#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::bench {

struct RawResult {
  double rtt_p50_us = 0;  ///< 64 bytes there and 64 back, microseconds.
  double rtt_p99_us = 0;
  double bulk_gib_s = 0;  ///< 1 MiB messages one way, GiB per second, median of batches.
  double record_ns = 0;   ///< 100-byte records one way, nanoseconds each, median of batches.
};

/// Measures shm, unix or tcp (loopback) between this process and a child that it forks and reaps.
/// `through_channel`: through wire::Channel, as sessions do. Otherwise the bare thing below it:
/// blocking send() and recv() on the socket (one per record), or the two rings with nothing but a
/// spin. `quick` takes about a second, otherwise a few.
///
/// The child runs no code but this measurement and ends with _exit, so a caller may have threads;
/// measure before starting them all the same, because they take the cores.
wire::Result<RawResult> MeasureRaw(wire::Transport transport, bool through_channel, bool quick);

/// Microseconds, median: 64 bytes there and 64 back where both ends have long slept, as they do around work of some
/// milliseconds, when nobody may spin: the time from one's write to the other's read, there and back, through
/// wire::Channel. What the other end does in between is not counted. Takes less than a second.
wire::Result<double> MeasureParkedRoundTrip(wire::Transport transport, bool quick);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_RAW_TRANSPORT_H_
