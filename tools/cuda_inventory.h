// SPDX-License-Identifier: Apache-2.0
// The CUDA devices that a driver library offers. The library is opened at run time: the guest's, NVIDIA's or the
// software device's.
#ifndef HAWSER_TOOLS_CUDA_INVENTORY_H_
#define HAWSER_TOOLS_CUDA_INVENTORY_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "wire/status.h"

namespace hawser::tools {

struct CudaDeviceEntry {
  std::string name;
  std::string capability;  ///< "9.0"
  uint64_t memory_bytes = 0;
  uint32_t multiprocessors = 0;
  uint32_t clock_mhz = 0;
};

struct CudaDriverEntry {
  std::string title;    ///< "CUDA", "software device"
  std::string version;  ///< "13.0"
  std::vector<CudaDeviceEntry> devices;
};

/// Asks the driver in `library`, with this process's environment. A driver without devices is an empty list; a library
/// that is not there, or is no driver, is an error.
wire::Result<CudaDriverEntry> ListCudaDevices(const std::string& title, const std::string& library);

std::string CudaInventoryText(const std::vector<CudaDriverEntry>& drivers);
nlohmann::json CudaInventoryJson(const std::vector<CudaDriverEntry>& drivers);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_CUDA_INVENTORY_H_
