// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/driver_choice.h"

#include <unistd.h>

#include <utility>

namespace hawser::server::cuda_backend {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

/// Under this name every installation of NVIDIA's driver has it.
constexpr const char* kNvidiaLibrary = "libcuda.so.1";

std::string Describe(const LoadedDriver& driver, int devices) {
  char name[256] = "a device without a name";
  CUdevice device = 0;
  if (driver.table.cuDeviceGet(&device, 0) == CUDA_SUCCESS) {
    (void)driver.table.cuDeviceGetName(name, sizeof(name), device);
    name[sizeof(name) - 1] = 0;
  }
  std::string text(name);
  if (devices > 1) text += " and " + std::to_string(devices - 1) + " more";
  return text + ", driver " + std::to_string(driver.version / 1000) + "." + std::to_string(driver.version % 1000 / 10);
}

Result<ChosenDriver> Try(const std::string& library, const Loader& load) {
  Result<LoadedDriver> loaded = load(library);
  if (!loaded.ok()) return loaded.status();
  ChosenDriver chosen;
  chosen.driver = std::move(*loaded);
  const DriverTable& table = chosen.driver.table;
  const auto fail = [&](const char* call, CUresult result) {
    return Status(Code::kInvalid,
                  chosen.driver.path + ": " + call + " returned " + ErrorText(chosen.driver.table, result));
  };
  if (const CUresult result = table.cuInit(0); result != CUDA_SUCCESS) return fail("cuInit", result);
  if (const CUresult result = table.cuDeviceGetCount(&chosen.devices); result != CUDA_SUCCESS) {
    return fail("cuDeviceGetCount", result);
  }
  if (chosen.devices <= 0) return Status(Code::kInvalid, chosen.driver.path + " has no device");
  chosen.summary = Describe(chosen.driver, chosen.devices);
  return chosen;
}

Result<ChosenDriver> TrySoft(const std::vector<std::string>& places, const Loader& load) {
  for (const std::string& place : places) {
    if (::access(place.c_str(), R_OK) != 0) continue;
    Result<ChosenDriver> chosen = Try(place, load);
    if (chosen.ok()) chosen->soft = true;
    return chosen;
  }
  return Status(Code::kInvalid, "the software device is not installed beside the worker (" +
                                    (places.empty() ? std::string("no place to look") : places.front()) + ")");
}

bool IsOneOf(const std::string& path, const std::vector<std::string>& places) {
  char real[4096];
  for (const std::string& place : places) {
    if (path == place || (::realpath(place.c_str(), real) != nullptr && path == real)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> SoftDriverPlaces(const std::string& directory) {
  return {directory + "/soft/libcuda.so.1", directory + "/../soft/libcuda.so.1",
          directory + "/../../lib/hawser/soft/libcuda.so.1", directory + "/../../lib64/hawser/soft/libcuda.so.1",
          directory + "/../../lib/x86_64-linux-gnu/hawser/soft/libcuda.so.1"};
}

Result<ChosenDriver> ChooseDriver(const WorkerSettings& settings, const std::vector<std::string>& soft_places,
                                  const Loader& load) {
  if (!settings.cuda_driver.empty()) {
    Result<ChosenDriver> chosen = Try(settings.cuda_driver, load);
    if (chosen.ok()) chosen->soft = IsOneOf(chosen->driver.path, soft_places);
    return chosen;
  }
  if (settings.cuda_device == CudaDevice::kSoft) return TrySoft(soft_places, load);
  Result<ChosenDriver> nvidia = Try(kNvidiaLibrary, load);
  // Somebody's LD_LIBRARY_PATH may make the loader find the software device under that name.
  if (nvidia.ok() && IsOneOf(nvidia->driver.path, soft_places)) nvidia->soft = true;
  if (settings.cuda_device == CudaDevice::kNvidia) {
    if (nvidia.ok() && nvidia->soft) {
      return Status(Code::kInvalid,
                    std::string(kNvidiaLibrary) + " is the software device here, " + nvidia->driver.path);
    }
    return nvidia;
  }
  if (nvidia.ok()) return nvidia;
  Result<ChosenDriver> soft = TrySoft(soft_places, load);
  if (!soft.ok()) return Status(Code::kInvalid, nvidia.status().text() + "; " + soft.status().text());
  soft->why = nvidia.status().text();
  return soft;
}

}  // namespace hawser::server::cuda_backend
