// SPDX-License-Identifier: Apache-2.0
// Entry points: libraries (code without a context) and their kernels.
#include <string>

#include "proto/facts/fatbin.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/function_info.h"
#include "softcuda/driver/linker.h"

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

namespace {

using LibraryPtr = std::shared_ptr<Library>;

CUresult Load(CUlibrary* to, const void* image, const JitLogs& logs) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  if (to == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto library = std::make_shared<Library>();
  HAWSER_TRY(ReadImage(image, driver->settings.capability(), logs, &library->units));
  const uint64_t handle = driver->libraries.Add(library);
  for (const auto& unit : library->units) {
    for (const hawser::ptx::Function& function : unit->functions) {
      if (!function.entry || !function.defined) continue;
      auto kernel = std::make_shared<Kernel>();
      kernel->library = library;
      kernel->name = function.name;
      driver->kernels.Add(kernel);
      library->kernels.push_back(std::move(kernel));
    }
  }
  *to = reinterpret_cast<CUlibrary>(handle);
  return CUDA_SUCCESS;
}

CUresult FindLibrary(CUlibrary handle, LibraryPtr* library) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *library = driver->libraries.Find(handle);
  return *library == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/// The library's code in the current context.
CUresult CurrentModule(CUlibrary handle, ModulePtr* module) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  LibraryPtr library;
  HAWSER_TRY(FindLibrary(handle, &library));
  return ModuleFor(library, context, module);
}

CUresult Variable(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name, bool managed) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ModulePtr module;
  HAWSER_TRY(CurrentModule(library, &module));
  const int index = module->program->FindSymbol(name);
  if (index < 0) return CUDA_ERROR_NOT_FOUND;
  const auto& symbol = module->program->symbols()[static_cast<size_t>(index)];
  if (managed && !symbol.managed) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = module->variables[static_cast<size_t>(index)]->begin;
  if (bytes != nullptr) *bytes = symbol.size;
  return CUDA_SUCCESS;
}

CUresult FindKernel(CUkernel handle, std::shared_ptr<Kernel>* kernel) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  *kernel = driver->kernels.Find(handle);
  return *kernel == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult KernelFunction(CUkernel handle, FunctionPtr* function) {
  ContextPtr context;
  HAWSER_TRY(WorkingContext(&context));
  return ResolveKernel(handle, context, function);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* options, void** values,
                                   unsigned int count, CUlibraryOption* library_options, void**,
                                   unsigned int library_count) {
  if (library_count != 0 && library_options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  JitLogs logs;
  HAWSER_TRY(ReadJitOptions(count, options, values, &logs));
  return Load(library, image, logs);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* name, CUjit_option* options, void** values,
                                       unsigned int count, CUlibraryOption*, void**, unsigned int) {
  JitLogs logs;
  HAWSER_TRY(ReadJitOptions(count, options, values, &logs));
  std::string file;
  HAWSER_TRY(ReadImageFile(name, &file));
  if (!hawser::fatbin::ImageBytes(file.c_str(), file.size() + 1).ok()) return CUDA_ERROR_INVALID_IMAGE;
  return Load(library, file.c_str(), logs);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
  Driver* driver = nullptr;
  HAWSER_TRY(GetReady(&driver));
  const LibraryPtr library = driver->libraries.Remove(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& kernel : library->kernels) driver->kernels.Remove(kernel->handle);
  std::map<uint64_t, ModulePtr> modules;
  {
    const std::lock_guard lock(library->mutex);
    modules.swap(library->modules);
  }
  for (const auto& [context, module] : modules) {
    if (driver->modules.Remove(module->handle) != nullptr) UnloadModule(module);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* to, CUlibrary handle, const char* name) {
  LibraryPtr library;
  HAWSER_TRY(FindLibrary(handle, &library));
  if (to == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& kernel : library->kernels) {
    if (kernel->name == name) {
      *to = reinterpret_cast<CUkernel>(kernel->handle);
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  LibraryPtr library;
  HAWSER_TRY(FindLibrary(handle, &library));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* to, unsigned int count, CUlibrary handle) {
  LibraryPtr library;
  HAWSER_TRY(FindLibrary(handle, &library));
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count && i < library->kernels.size(); ++i) {
    to[i] = reinterpret_cast<CUkernel>(library->kernels[i]->handle);
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* to, CUlibrary library) {
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ModulePtr module;
  HAWSER_TRY(CurrentModule(library, &module));
  *to = reinterpret_cast<CUmodule>(module->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return Variable(address, bytes, library, name, false);
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return Variable(address, bytes, library, name, true);
}

// The host cannot call what is a kernel's function here, so there are none that are unified.
CUresult CUDAAPI cuLibraryGetUnifiedFunction(void** function, CUlibrary handle, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LibraryPtr library;
  HAWSER_TRY(FindLibrary(handle, &library));
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* to, CUkernel kernel) {
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FunctionPtr function;
  HAWSER_TRY(KernelFunction(kernel, &function));
  *to = reinterpret_cast<CUfunction>(function->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* to, CUkernel handle) {
  std::shared_ptr<Kernel> kernel;
  HAWSER_TRY(FindKernel(handle, &kernel));
  const LibraryPtr library = kernel->library.lock();
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *to = reinterpret_cast<CUlibrary>(library->handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel handle) {
  std::shared_ptr<Kernel> kernel;
  HAWSER_TRY(FindKernel(handle, &kernel));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  FunctionPtr function;
  HAWSER_TRY(KernelFunction(kernel, &function));
  return GetFunctionAttribute(*device, *function, attribute, value);
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  FunctionPtr function;
  HAWSER_TRY(KernelFunction(kernel, &function));
  return SetFunctionAttribute(*device, function.get(), attribute, value);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice number) {
  Device* device = nullptr;
  HAWSER_TRY(GetDevice(number, &device));
  FunctionPtr function;
  HAWSER_TRY(KernelFunction(kernel, &function));
  function->settings.cache_config = config;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  FunctionPtr function;
  HAWSER_TRY(KernelFunction(kernel, &function));
  return GetParameter(*function, index, offset, size);
}

}  // extern "C"
