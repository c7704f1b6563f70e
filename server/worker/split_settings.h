// SPDX-License-Identifier: Apache-2.0
// Whether and how a backend splits launches; for operators: docs/operating.md. Read from the worker's environment
// ([opencl] env of hawserd's configuration, which all workers get); X is OPENCL or CUDA, UNITS items (work-items) or
// blocks:
//
//   HAWSER_X_SPLIT          gate          as the scheduler's gate says: never while a tenant is alone (the default
//                                         where there is a scheduler)
//                           off           nothing is split; the gate is asked for whole launches
//                           UNITS=N       always, into parts of about N: for tests
//                           ...,cores=N   cores of the device for first rounds; default: from the device
//                           ...,beta=X    the factor of paper 004's formula; default 4
//                           ...,refuse=N  CUDA: instead of the scheduler's a gate that is never open and refuses each
//                                         N-th question for a moment: for tests
//                           ...,hold=MS   OpenCL: how long a launch waits at most because a lone queue is far ahead of
//                                         the device; default 100: for tests
//   HAWSER_X_SPLIT_HISTORY  a file where speeds of kernels are kept from run to run; default: none
#ifndef HAWSER_SERVER_WORKER_SPLIT_SETTINGS_H_
#define HAWSER_SERVER_WORKER_SPLIT_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::server {

/// What the settings of one backend are called.
struct SplitWords {
  const char* variable;
  const char* history;
  std::string_view units;
  bool refuses = false;     ///< Knows refuse=N.
  bool holds = false;       ///< Knows hold=MS.
  bool by_default = false;  ///< Whether nothing said means gate.
};
inline constexpr SplitWords kOpenClSplit{"HAWSER_OPENCL_SPLIT", "HAWSER_OPENCL_SPLIT_HISTORY", "items",
                                         /*refuses=*/false, /*holds=*/true};
inline constexpr SplitWords kCudaSplit{"HAWSER_CUDA_SPLIT", "HAWSER_CUDA_SPLIT_HISTORY", "blocks",
                                       /*refuses=*/true,
                                       /*holds=*/false,
                                       /*by_default=*/true};

struct SplitSettings {
  bool splits = false;
  uint64_t size = 0;   ///< Units of each part; 0: as the gate says.
  uint64_t cores = 0;  ///< 0: from the device.
  double beta = 4;
  uint64_t refuse = 0;  ///< 0: the scheduler's gate.
  uint64_t hold_ms = 100;
  std::string history;

  static wire::Result<SplitSettings> Parse(const SplitWords& words, std::string_view text);
  /// From the environment; what is wrong there is told in *problem and means off.
  static SplitSettings FromEnvironment(const SplitWords& words, bool has_gate, std::string* problem);
};

}  // namespace hawser::server

#endif  // HAWSER_SERVER_WORKER_SPLIT_SETTINGS_H_
