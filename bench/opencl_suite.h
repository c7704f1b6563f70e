// SPDX-License-Identifier: Apache-2.0
// Runs the measurements natively and remotely, side by side in interleaved rounds.
//
// Processes: one long-lived hawser-bench-opencl per side, fresh ones for program builds, and, unless
// a server is named, one hawserd of our own. All end with the run. Threading: one thread.
#ifndef HAWSER_BENCH_OPENCL_SUITE_H_
#define HAWSER_BENCH_OPENCL_SUITE_H_

#include <functional>
#include <string>
#include <vector>

#include "bench/results.h"
#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::bench {

struct SuiteOptions {
  std::string worker;          ///< Path of hawser-bench-opencl.
  std::string hawserd;         ///< Path of hawserd; used when `server` is empty.
  std::string icd_directory;   ///< Directory of hawser.icd.
  std::string client_library;  ///< libhawser_opencl.so, for the preload row.
  std::string server;          ///< URI of a running server, or empty.
  std::vector<wire::Transport> transports = {wire::Transport::kShm};
  std::vector<std::string> only;  ///< Row id prefixes; empty: everything.
  std::string device;             ///< Part of the device's name; empty: the first.
  bool quick = false;
  bool native_only = false;
  int rounds = 0;  ///< 0: 3 when quick, otherwise 5.
};

/// `progress` gets a short line now and then.
wire::Result<OpenClResults> RunOpenClSuite(const SuiteOptions& options,
                                           const std::function<void(const std::string&)>& progress);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_OPENCL_SUITE_H_
