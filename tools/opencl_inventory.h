// SPDX-License-Identifier: Apache-2.0
// What the OpenCL loader of this machine finds. The loader is opened at run time, so that `hawser`
// starts, and can say what to install, where there is none.
#ifndef HAWSER_TOOLS_OPENCL_INVENTORY_H_
#define HAWSER_TOOLS_OPENCL_INVENTORY_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "wire/status.h"

namespace hawser::tools {

struct DeviceEntry {
  std::string name;
  std::string type;  ///< "CPU", "GPU", "accelerator", "custom".
  std::string version;
  std::string driver;
  uint32_t compute_units = 0;
  uint32_t clock_mhz = 0;
  uint64_t memory_bytes = 0;
};

struct PlatformEntry {
  std::string name;
  std::string vendor;
  std::string version;
  std::vector<DeviceEntry> devices;
};

/// Asks the loader with this process's environment (OCL_ICD_VENDORS, HAWSER_SERVER). Platforms
/// without devices are listed too. No platform at all is an empty list, not an error.
wire::Result<std::vector<PlatformEntry>> ListPlatforms();

/// The file from which the OpenCL loader comes, or why there is none and what to install.
wire::Result<std::string> FindOpenClLoader();

std::string InventoryText(const std::vector<PlatformEntry>& platforms);
nlohmann::json InventoryJson(const std::vector<PlatformEntry>& platforms);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_OPENCL_INVENTORY_H_
