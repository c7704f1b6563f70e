// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/loader.h"

#include "interposer/core/log.h"
#include "interposer/cudart/errors.h"

namespace hawser::cudart {

using guest::Log;
using guest::LogLevel;

cudaError_t Loader::Load(Module& module) {
  if (!module.tried.load(std::memory_order_acquire)) {
    const std::lock_guard lock(module.mutex);
    if (!module.tried.load(std::memory_order_relaxed)) {
      module.load_error = LoadLocked(module);
      module.tried.store(true, std::memory_order_release);
    }
  }
  return module.load_error;
}

cudaError_t Loader::LoadLocked(Module& module) {
  // The image lies in the program and stays there, so the driver need not copy it.
  CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
  void* values[] = {reinterpret_cast<void*>(uintptr_t{1})};
  const CUresult result =
      driver_.cuLibraryLoadData(&module.library, module.wrapper, nullptr, nullptr, 0, options, values, 1);
  if (result != CUDA_SUCCESS) {
    module.library = nullptr;
    const cudaError_t error = FromDriver(result);
    Log(LogLevel::kWarning, "a device image of the program could not be loaded: %s (%s)", ErrorName(error),
        ErrorText(error));
    return error;
  }
  return PlaceManaged(module);
}

cudaError_t Loader::PlaceManaged(Module& module) {
  for (Variable* variable : module.variables) {
    if (variable->managed == nullptr) continue;
    CUdeviceptr address = 0;
    size_t size = 0;
    const CUresult result = driver_.cuLibraryGetManaged(&address, &size, module.library, variable->name.c_str());
    if (result != CUDA_SUCCESS) {
      Log(LogLevel::kError, "the managed variable '%s' cannot be placed: %s", variable->name.c_str(),
          ErrorText(FromDriver(result)));
      return FromDriver(result);
    }
    // The program will read and write there without asking: what the host cannot reach must not be given out.
    unsigned managed = 0;
    const CUresult asked = driver_.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    if (asked == CUDA_ERROR_INVALID_VALUE || (asked == CUDA_SUCCESS && managed == 0)) {
      Log(LogLevel::kError, "the managed variable '%s' lies in memory of the device that this process cannot reach",
          variable->name.c_str());
      return cudaErrorNotSupported;
    }
    *variable->managed = reinterpret_cast<void*>(address);
    registry_.AddAlias(reinterpret_cast<void*>(address), variable);
  }
  return cudaSuccess;
}

cudaError_t Loader::Kernel(Function& function, CUkernel* kernel) {
  *kernel = function.kernel.load(std::memory_order_acquire);
  if (*kernel != nullptr) return cudaSuccess;
  if (const cudaError_t error = Load(*function.module); error != cudaSuccess) return error;
  const CUresult result = driver_.cuLibraryGetKernel(kernel, function.module->library, function.name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (result == CUDA_SUCCESS) function.kernel.store(*kernel, std::memory_order_release);
  return FromDriver(result);
}

cudaError_t Loader::Address(Variable& variable, uint64_t epoch, CUdeviceptr* address, size_t* size) {
  if (const cudaError_t error = Load(*variable.module); error != cudaSuccess) return error;
  if (variable.managed != nullptr) {
    *address = reinterpret_cast<CUdeviceptr>(*variable.managed);
    *size = variable.size;
    return cudaSuccess;
  }
  CUcontext context = nullptr;
  if (const CUresult result = driver_.cuCtxGetCurrent(&context); result != CUDA_SUCCESS) return FromDriver(result);
  const std::lock_guard lock(variable.mutex);
  std::erase_if(variable.places, [&](const Variable::Place& place) {
    return place.context == context && place.epoch != epoch;  // From before a reset.
  });
  for (const Variable::Place& place : variable.places) {
    if (place.context != context) continue;
    *address = place.address;
    *size = place.size;
    return cudaSuccess;
  }
  const CUresult result = driver_.cuLibraryGetGlobal(address, size, variable.module->library, variable.name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidSymbol;
  // A context of the program's own may be destroyed unseen, and its handle used again.
  if (result == CUDA_SUCCESS && epoch != 0) variable.places.push_back({context, epoch, *address, *size});
  return FromDriver(result);
}

void Loader::Unload(Module& module) {
  const std::lock_guard lock(module.mutex);
  if (module.library != nullptr) driver_.cuLibraryUnload(module.library);
  module.library = nullptr;
  for (Function* function : module.functions) function->kernel.store(nullptr, std::memory_order_release);
  module.load_error = cudaErrorInvalidDeviceFunction;
  module.tried.store(true, std::memory_order_release);
}

}  // namespace hawser::cudart
