// SPDX-License-Identifier: Apache-2.0
#include "bench/targets.h"

namespace hawser::bench {
namespace {

using wire::Transport;

Target AtMost(double value, double limit, std::string text) { return {std::move(text), limit, value <= limit}; }
Target AtLeast(double value, double limit, std::string text) { return {std::move(text), limit, value >= limit}; }

}  // namespace

std::optional<Target> TargetFor(const std::string& id, Transport transport, std::optional<double> native, double remote,
                                const RawTransport* raw) {
  const bool shm = transport == Transport::kShm;
  const bool tcp = transport == Transport::kTcp;

  if (id == "launch_burst_rate") {
    if (shm && native) return AtLeast(remote, 0.75 * *native, ">= 0.75x native");
    if (tcp) return AtLeast(remote, 300e3, ">= 300 k/s");
  }
  if (id == "launch_burst_enqueue") return AtMost(remote, 0.5, "<= 0.5 us");
  if ((id == "launch_finish_p50" || id == "read_small_p50") && native) {
    if (shm) return AtMost(remote, *native + 5, "<= native + 5 us");
    if (raw != nullptr) return AtMost(remote, *native + 1.5 * raw->round_trip_us, "<= native + 1.5 raw round trips");
  }
  if (id == "step_p50" && shm && native) return AtMost(remote, 1.5 * *native, "<= 1.5x native");
  if (id == "step_waits") return AtMost(remote, 1.0, "1 waiting round trip");
  if (id == "create_release") return AtMost(remote, 1.0, "<= 1 us");
  if (id == "create_release_waits") return AtMost(remote, 0.0, "no round trip");
  if (id == "write_burst_rate" && shm) return AtLeast(remote, 100e3, ">= 100 k/s");
  if (id == "h2d_pageable_256MiB" || id == "d2h_pageable_256MiB") {
    if (shm && native) return AtLeast(remote, 0.9 * *native, ">= 0.9x native");
    if (tcp && raw != nullptr) return AtLeast(remote, 0.85 * raw->one_way_gib_s, ">= 0.85x the raw socket");
  }
  if ((id == "h2d_mapped_256MiB" || id == "d2h_mapped_256MiB") && shm && native) {
    return AtLeast(remote, 0.97 * *native, ">= 0.97x native");
  }
  if (id == "build_cold" && native) return AtMost(remote, 1.1 * *native, "<= 1.1x native");
  if (id == "build_cached" && native && raw != nullptr) {
    // Nobody spins while a program is built.
    return AtMost(remote, *native + 2 * raw->parked_round_trip_us * 1e-3, "<= native + 2 parked round trips");
  }
  if (id == "cuda_burst_enqueue" && shm) return AtMost(remote, 0.5, "<= 0.5 us");
  if (id == "cuda_step_waits") return AtMost(remote, 4.0, "<= 4 waiting round trips");
  if (id.rfind("cuda_streams_", 0) == 0 && shm && native) return AtMost(remote, 1.01 * *native, "<= 1.01x native");
  if (shm && native && (id.rfind("cuda_h2d_p", 0) == 0 || id.rfind("cuda_d2h_p", 0) == 0)) {
    const bool small = id.ends_with("_4KiB") || id.ends_with("_32KiB");
    if (id.find("_pinned_") != std::string::npos && !small) return AtLeast(remote, 0.97 * *native, ">= 0.97x native");
    if (id.find("_pageable_") != std::string::npos && !small) return AtLeast(remote, 0.9 * *native, ">= 0.9x native");
  }
  if (id.rfind("stall_", 0) == 0 && native) return AtMost(remote, *native + 1000, "<= native + 1 ms");
  if (id == "preload" && native) return AtMost(remote, *native + 300, "<= without + 0.3 ms");
  return std::nullopt;
}

}  // namespace hawser::bench
