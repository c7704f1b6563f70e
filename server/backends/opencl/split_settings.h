// SPDX-License-Identifier: Apache-2.0
// Whether and how launches are split. Read from the worker's environment (hawserd: [opencl] env):
//
//   HAWSER_OPENCL_SPLIT          gate            as the scheduler's gate says: never while a tenant is alone (the
//                                                default where there is a scheduler)
//                                off             nothing is split, programs are built as they are
//                                items=N         always, into parts of about N work-items: for tests; below 64 parts
//                                                need not be a multiple of 64
//                                ...,cores=N     cores of the device for first rounds; default: 64 x compute units
//                                ...,beta=X      the factor of paper 004's formula; default 4
//   HAWSER_OPENCL_SPLIT_HISTORY  a file where speeds of kernels are kept from run to run; default: none
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SPLIT_SETTINGS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SPLIT_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/status.h"

namespace hawser::server::ocl {

struct SplitSettings {
  bool enabled = false;
  uint64_t items = 0;  ///< Of each part; 0: as the gate says.
  uint64_t cores = 0;  ///< 0: from the device.
  double beta = 4;
  std::string history;

  static wire::Result<SplitSettings> Parse(std::string_view text);
  /// From the environment; what is wrong there is told in *problem and means off.
  static SplitSettings FromEnvironment(bool has_gate, std::string* problem);
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SPLIT_SETTINGS_H_
