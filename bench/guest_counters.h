// SPDX-License-Identifier: Apache-2.0
// The guest library's own counters, when the platform under test is Hawser's.
#ifndef HAWSER_BENCH_GUEST_COUNTERS_H_
#define HAWSER_BENCH_GUEST_COUNTERS_H_

#include <CL/cl.h>

#include <cstdint>

namespace hawser::bench {

/// Totals since the process began.
struct GuestCounts {
  uint64_t commands = 0;    ///< Commands sent.
  uint64_t bytes_up = 0;    ///< On the command channel, guest to server.
  uint64_t bytes_down = 0;  ///< On the command channel, server to guest.
  uint64_t waits = 0;       ///< Times a guest thread waited for an answer.
  uint64_t bulk_up = 0;     ///< On the bulk channel, guest to server.
  uint64_t bulk_down = 0;   ///< On the bulk channel, server to guest.
};

class GuestCounters {
 public:
  explicit GuestCounters(cl_platform_id platform);

  /// False on a native platform: then Read() is all zeros.
  bool available() const { return read_ != nullptr; }
  GuestCounts Read() const;

 private:
  using ReadFunction = void(CL_CALLBACK*)(uint64_t out[6]);
  ReadFunction read_ = nullptr;
};

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_GUEST_COUNTERS_H_
