// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/create.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "server/backends/cuda/backend.h"
#include "server/backends/cuda/driver_choice.h"
#include "server/backends/cuda/image_store.h"

namespace hawser::server::cuda_backend {

using wire::Result;
using wire::Status;

Result<ChosenBackend> Create(const WorkerSettings& settings, SessionLog* log) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  // What NVIDIA's compiler makes of PTX is kept beside the images of its tenant; without that all tenants share what is
  // in the server's home, or nobody has any.
  if (!settings.cuda_cache.empty()) {
    const std::string kept = settings.cuda_cache + "/" + TenantFolderName(settings.tenant) + "/compiled";
    ::setenv("CUDA_CACHE_PATH", kept.c_str(), /*overwrite=*/0);
  }
  const AddressRanges before = AddressRanges::Reserved();
  Result<ChosenDriver> chosen = ChooseDriver(settings, SoftDriverPlaces(self.parent_path().string()), LoadDriver);
  if (!chosen.ok()) {
    return Status(chosen.status().code(), "the server has no usable CUDA device: " + chosen.status().text());
  }
  std::string text = "CUDA on " + chosen->summary + " (" + chosen->driver.path + ")";
  if (!chosen->why.empty()) text += ", because " + chosen->why;
  // A GPU that is there and cannot be used is not what its owner wants; the processor does the same a thousand times
  // slower.
  const bool has_gpu = chosen->soft && !chosen->why.empty() && ::access("/dev/nvidiactl", F_OK) == 0;
  if (has_gpu) {
    text +=
        "; but this machine has NVIDIA's driver: is nvidia-uvm loaded (nvidia-modprobe -c 0 -u), and may the worker "
        "use "
        "/dev/nvidia*? --device nvidia refuses instead";
  }
  log->Write(has_gpu ? "warning" : "info", text);
  if (!chosen->driver.missing.empty()) {
    log->Write("info", "the driver lacks " + std::to_string(chosen->driver.missing.size()) + " entry points, " +
                           chosen->driver.missing.front() + " among them; calls that need one are not supported");
  }
  ChosenBackend backend;
  backend.reserves_addresses = !chosen->soft;
  backend.backend = std::make_unique<CudaBackend>(std::move(*chosen), settings, before);
  return backend;
}

}  // namespace hawser::server::cuda_backend
