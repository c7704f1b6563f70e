// SPDX-License-Identifier: Apache-2.0
// hawser-bench-raw [--quick]: what each transport of this machine can do by itself.
#include <cstdio>
#include <string>

#include "bench/raw_transport.h"

int main(int argc, char** argv) {
  using hawser::wire::Transport;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--quick") {
      quick = true;
      continue;
    }
    std::fprintf(stderr, "usage: %s [--quick]\n", argv[0]);
    return 2;
  }
  std::printf("%-5s %-8s %14s %14s %16s %18s\n", "", "", "64 B rtt p50", "64 B rtt p99", "1 MiB messages",
              "100 B records");
  for (const Transport transport : {Transport::kShm, Transport::kUnix, Transport::kTcp}) {
    for (const bool through_channel : {true, false}) {
      const auto measured = hawser::bench::MeasureRaw(transport, through_channel, quick);
      if (!measured.ok()) {
        std::fprintf(stderr, "hawser-bench-raw: %s\n", measured.status().text().c_str());
        return 1;
      }
      const hawser::bench::RawResult& r = measured.value();
      std::printf("%-5s %-8s %11.2f us %11.2f us %10.2f GiB/s %11.1f ns each\n",
                  std::string(TransportName(transport)).c_str(), through_channel ? "channel" : "bare", r.rtt_p50_us,
                  r.rtt_p99_us, r.bulk_gib_s, r.record_ns);
    }
  }
  return 0;
}
