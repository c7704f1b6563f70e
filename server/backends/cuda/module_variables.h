// SPDX-License-Identifier: Apache-2.0
// Where a loaded module's variables lie, for the copies of its kernels (slicing/variables.h). The builder of copies
// asks while the executor may end the module.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_MODULE_VARIABLES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_MODULE_VARIABLES_H_

#include <mutex>
#include <string>

#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

/// Thread-safe. Lock: mutex_, a leaf but for the driver's call: the module does not end while it is asked.
class ModuleVariables {
 public:
  /// One of both is not null; neither is owned.
  void Begin(CUmodule module, CUlibrary library) {
    const std::lock_guard<std::mutex> lock(mutex_);
    module_ = module;
    library_ = library;
  }
  /// Before the module ends. Waits for who is asking.
  void End() { Begin(nullptr, nullptr); }

  /// Its address in the current context. CUDA_ERROR_NOT_FOUND also before Begin() and after End().
  CUresult Find(const DriverTable& driver, const std::string& name, CUdeviceptr* address) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t size = 0;
    if (module_ != nullptr) return driver.cuModuleGetGlobal(address, &size, module_, name.c_str());
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (library_ == nullptr) return result;
    if (driver.cuLibraryGetManaged != nullptr) {
      result = driver.cuLibraryGetManaged(address, &size, library_, name.c_str());
    }
    if (result != CUDA_SUCCESS && driver.cuLibraryGetGlobal != nullptr) {
      result = driver.cuLibraryGetGlobal(address, &size, library_, name.c_str());
    }
    return result;
  }

 private:
  mutable std::mutex mutex_;
  CUmodule module_ = nullptr;
  CUlibrary library_ = nullptr;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_MODULE_VARIABLES_H_
