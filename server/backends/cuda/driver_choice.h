// SPDX-License-Identifier: Apache-2.0
// Which CUDA driver a worker loads: NVIDIA's where it works and has a device, else the software device.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_DRIVER_CHOICE_H_
#define HAWSER_SERVER_BACKENDS_CUDA_DRIVER_CHOICE_H_

#include <functional>
#include <string>
#include <vector>

#include "server/backends/cuda/driver_table.h"
#include "server/worker_settings.h"
#include "wire/status.h"

namespace hawser::server::cuda_backend {

struct ChosenDriver {
  LoadedDriver driver;
  int devices = 0;
  bool soft = false;    ///< Hawser's software device.
  std::string summary;  ///< For the log and for guests: "software device", "NVIDIA H200 and 1 more, driver 13.0".
  std::string why;      ///< Why this one, when there was a choice.
};

/// Where the software device may be, for a worker in `directory`: of a build tree, of an installation.
std::vector<std::string> SoftDriverPlaces(const std::string& directory);

/// As the settings say. `load` is LoadDriver, or a test's. Calls cuInit of the driver that it chooses (and, for auto,
/// of one that it does not). kInvalid: none works; the text says why each does not.
using Loader = std::function<wire::Result<LoadedDriver>(const std::string& library)>;
wire::Result<ChosenDriver> ChooseDriver(const WorkerSettings& settings, const std::vector<std::string>& soft_places,
                                        const Loader& load);

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_DRIVER_CHOICE_H_
