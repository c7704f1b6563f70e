// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Library Management": device images that the program loads itself.
#include <vector>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/kernel_handles.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

namespace {

// The runtime numbers the options of the compiler as the driver does.
static_assert(int{cudaJitMaxRegisters} == int{CU_JIT_MAX_REGISTERS});
static_assert(int{cudaJitOptimizationLevel} == int{CU_JIT_OPTIMIZATION_LEVEL});
static_assert(int{cudaLibraryBinaryIsPreserved} == int{CU_LIBRARY_BINARY_IS_PRESERVED});

CUjit_option* Options(cudaJitOption* options) { return reinterpret_cast<CUjit_option*>(options); }
CUlibraryOption* Options(cudaLibraryOption* options) { return reinterpret_cast<CUlibraryOption*>(options); }

template <typename Get>
cudaError_t Place(void** pointer, Get get) {
  CUdeviceptr address = 0;
  const CUresult result = get(&address);
  if (result == CUDA_SUCCESS && pointer != nullptr) *pointer = reinterpret_cast<void*>(address);
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorSymbolNotFound : FromDriver(result);
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit_options, void** jit_values,
                                unsigned jit_count, cudaLibraryOption* library_options, void** library_values,
                                unsigned library_count) {
  return InContext([&](const Driver& driver) {
    if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuLibraryLoadData(library, code, Options(jit_options), jit_values, jit_count,
                                    Options(library_options), library_values, library_count);
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jit_options,
                                    void** jit_values, unsigned jit_count, cudaLibraryOption* library_options,
                                    void** library_values, unsigned library_count) {
  return InContext([&](const Driver& driver) {
    if (library == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return driver.cuLibraryLoadFromFile(library, path, Options(jit_options), jit_values, jit_count,
                                        Options(library_options), library_values, library_count);
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return InContext([&](const Driver& driver) { return driver.cuLibraryUnload(library); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return InContext([&](const Driver& driver) {
    if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = driver.cuLibraryGetKernel(kernel, library, name);
    if (result == CUDA_SUCCESS) KernelHandles::Get().Add(*kernel);
    return result;
  });
}

cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* size, cudaLibrary_t library, const char* name) {
  return InContext([&](const Driver& driver) {
    return Place(pointer,
                 [&](CUdeviceptr* address) { return driver.cuLibraryGetGlobal(address, size, library, name); });
  });
}

cudaError_t cudaLibraryGetManaged(void** pointer, size_t* size, cudaLibrary_t library, const char* name) {
  return InContext([&](const Driver& driver) {
    return Place(pointer,
                 [&](CUdeviceptr* address) { return driver.cuLibraryGetManaged(address, size, library, name); });
  });
}

cudaError_t cudaLibraryGetUnifiedFunction(void** pointer, cudaLibrary_t library, const char* name) {
  return InContext([&](const Driver& driver) { return driver.cuLibraryGetUnifiedFunction(pointer, library, name); });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return InContext([&](const Driver& driver) {
    return count == nullptr ? CUDA_ERROR_INVALID_VALUE : driver.cuLibraryGetKernelCount(count, library);
  });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return InContext([&](const Driver& driver) {
    if (kernels == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
    unsigned exist = 0;
    CUresult result = driver.cuLibraryGetKernelCount(&exist, library);
    if (result == CUDA_SUCCESS) result = driver.cuLibraryEnumerateKernels(kernels, count, library);
    if (result == CUDA_SUCCESS) {
      for (unsigned i = 0; i < count && i < exist; ++i) KernelHandles::Get().Add(kernels[i]);
    }
    return result;
  });
}

}  // extern "C"
