// SPDX-License-Identifier: Apache-2.0
// Whether and how launches are split. Read from the worker's environment:
//
//   HAWSER_CUDA_SPLIT          gate          as the scheduler's gate says: never while a tenant is alone (the default)
//                              off           nothing is split; the gate is asked for whole launches
//                              blocks=N      always, into parts of N blocks: for tests
//                              ...,cores=N   cores of the device for first rounds; default: 128 x multiprocessors
//                              ...,beta=X    the factor of paper 004's formula; default 4
//                              ...,refuse=N  instead of the scheduler's a gate that is never open and refuses each
//                                            N-th question for a moment: for tests
//   HAWSER_CUDA_SPLIT_HISTORY  a file where speeds of kernels are kept from run to run; default: none
#ifndef HAWSER_SERVER_BACKENDS_CUDA_SPLIT_SETTINGS_H_
#define HAWSER_SERVER_BACKENDS_CUDA_SPLIT_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::server::cuda_backend {

struct SplitSettings {
  bool splits = true;
  uint64_t blocks = 0;  ///< Of each part; 0: as the gate says.
  uint64_t cores = 0;   ///< 0: from the device.
  double beta = 4;
  uint64_t refuse = 0;  ///< 0: the scheduler's gate.
  std::string history;

  static wire::Result<SplitSettings> Parse(std::string_view text);
  /// From the environment; what is wrong there is told in *problem and means off.
  static SplitSettings FromEnvironment(std::string* problem);
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_SPLIT_SETTINGS_H_
