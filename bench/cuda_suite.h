// SPDX-License-Identifier: Apache-2.0
// Runs the CUDA measurements on a driver directly and remotely, side by side in interleaved rounds.
//
// Processes: one long-lived hawser-bench-cuda per side, fresh ones for module loads and for counting waits, and, unless
// a server is named, one hawserd of our own. All end with the run. Threading: one thread.
#ifndef HAWSER_BENCH_CUDA_SUITE_H_
#define HAWSER_BENCH_CUDA_SUITE_H_

#include <functional>
#include <string>
#include <vector>

#include "bench/results.h"
#include "wire/endpoint.h"
#include "wire/status.h"

namespace hawser::bench {

struct CudaSuiteOptions {
  std::string worker;           ///< Path of hawser-bench-cuda.
  std::string hawserd;          ///< Path of hawserd; used when `server` is empty.
  std::string guest_directory;  ///< Has the guest's libcuda.so.1.
  /// Has the native libcuda.so.1; empty: the system's.
  std::string native_directory;
  std::string device;  ///< --device of the hawserd that is started: "soft" or "nvidia".
  std::string server;  ///< URI of a running server, or empty.
  std::vector<wire::Transport> transports = {wire::Transport::kShm};
  std::vector<std::string> only;  ///< Row id prefixes; empty: everything.
  bool quick = false;
  int rounds = 0;  ///< 0: 3 when quick, otherwise 5.
};

/// `progress` gets a short line now and then.
wire::Result<OpenClResults> RunCudaSuite(const CudaSuiteOptions& options,
                                         const std::function<void(const std::string&)>& progress);

}  // namespace hawser::bench

#endif  // HAWSER_BENCH_CUDA_SUITE_H_
