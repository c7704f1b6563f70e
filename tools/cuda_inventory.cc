// SPDX-License-Identifier: Apache-2.0
#include "tools/cuda_inventory.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace hawser::tools {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// The few functions that are needed, by their exported names.
struct Driver {
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDriverGetVersion) version = nullptr;
  decltype(&::cuDeviceGetCount) count = nullptr;
  decltype(&::cuDeviceGet) get = nullptr;
  decltype(&::cuDeviceGetName) name = nullptr;
  decltype(&::cuDeviceTotalMem) memory = nullptr;
  decltype(&::cuDeviceGetAttribute) attribute = nullptr;

  bool Load(void* library) {
    return Find(library, "cuInit", &init) && Find(library, "cuDriverGetVersion", &version) &&
           Find(library, "cuDeviceGetCount", &count) && Find(library, "cuDeviceGet", &get) &&
           Find(library, "cuDeviceGetName", &name) && Find(library, "cuDeviceTotalMem_v2", &memory) &&
           Find(library, "cuDeviceGetAttribute", &attribute);
  }
  template <typename Function>
  static bool Find(void* library, const char* symbol, Function* function) {
    *function = reinterpret_cast<Function>(::dlsym(library, symbol));
    return *function != nullptr;
  }
  uint32_t Number(CUdevice_attribute which, CUdevice device) const {
    int value = 0;
    return attribute(&value, which, device) == CUDA_SUCCESS && value > 0 ? static_cast<uint32_t>(value) : 0;
  }
};

}  // namespace

Result<CudaDriverEntry> ListCudaDevices(const std::string& title, const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return Status(Code::kInvalid, why != nullptr ? why : "cannot open " + library);
  }
  Driver driver;
  if (!driver.Load(handle)) return Status(Code::kInvalid, library + " is no CUDA driver");
  CudaDriverEntry entry;
  entry.title = title;
  int count = 0;
  if (driver.init(0) != CUDA_SUCCESS || driver.count(&count) != CUDA_SUCCESS) return entry;
  int version = 0;
  if (driver.version(&version) == CUDA_SUCCESS) {
    entry.version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    char name[256] = {};
    size_t memory = 0;
    if (driver.get(&device, i) != CUDA_SUCCESS || driver.name(name, sizeof(name) - 1, device) != CUDA_SUCCESS) continue;
    (void)driver.memory(&memory, device);
    CudaDeviceEntry& told = entry.devices.emplace_back();
    told.name = name;
    told.memory_bytes = memory;
    told.capability = std::to_string(driver.Number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)) + "." +
                      std::to_string(driver.Number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    told.multiprocessors = driver.Number(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    told.clock_mhz = driver.Number(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device) / 1000;
  }
  return entry;
}

std::string CudaInventoryText(const std::vector<CudaDriverEntry>& drivers) {
  std::string text;
  for (const CudaDriverEntry& driver : drivers) {
    text += driver.title + (driver.version.empty() ? "" : " (CUDA " + driver.version + ")") + "\n";
    for (const CudaDeviceEntry& device : driver.devices) {
      char line[512];
      std::snprintf(line, sizeof(line), "  %s: capability %s, %.1f GiB, %u multiprocessors", device.name.c_str(),
                    device.capability.c_str(), static_cast<double>(device.memory_bytes) / double(1u << 30),
                    device.multiprocessors);
      text += line;
      if (device.clock_mhz != 0) text += ", " + std::to_string(device.clock_mhz) + " MHz";
      text += "\n";
    }
    if (driver.devices.empty()) text += "  no device\n";
  }
  return text;
}

nlohmann::json CudaInventoryJson(const std::vector<CudaDriverEntry>& drivers) {
  nlohmann::json all = nlohmann::json::array();
  for (const CudaDriverEntry& driver : drivers) {
    nlohmann::json devices = nlohmann::json::array();
    for (const CudaDeviceEntry& device : driver.devices) {
      devices.push_back({{"name", device.name},
                         {"capability", device.capability},
                         {"memory_bytes", device.memory_bytes},
                         {"multiprocessors", device.multiprocessors},
                         {"clock_mhz", device.clock_mhz}});
    }
    all.push_back({{"name", driver.title}, {"version", driver.version}, {"devices", devices}});
  }
  return all;
}

}  // namespace hawser::tools
