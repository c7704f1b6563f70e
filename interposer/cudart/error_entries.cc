// SPDX-License-Identifier: Apache-2.0
// CUDA runtime API, "Error Handling", "Version Management", "Profiler Control", "Driver Entry Point Access".
#include "interposer/cudart/entry.h"

using namespace hawser::cudart;  // NOLINT: an entry point is not in a namespace

extern "C" {

cudaError_t cudaGetLastError() { return CurrentThread().last_error.Take(); }
cudaError_t cudaPeekAtLastError() { return CurrentThread().last_error.Peek(); }

const char* cudaGetErrorName(cudaError_t error) {
  const char* name = ErrorName(error);
  return name != nullptr ? name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const char* text = ErrorText(error);
  return text != nullptr ? text : "unrecognized error code";
}

// Without a driver the version is 0, and that is no error.
cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Record(cudaErrorInvalidValue);
  *version = 0;
  Runtime& runtime = Runtime::Get();
  if (const cudaError_t error = runtime.Start(); error == cudaErrorInsufficientDriver) return cudaSuccess;
  return Record(FromDriver(runtime.driver().cuDriverGetVersion(version)));
}

cudaError_t cudaProfilerStart() {
  return InContext([](const Driver& driver) { return driver.cuProfilerStart(); });
}
cudaError_t cudaProfilerStop() {
  return InContext([](const Driver& driver) { return driver.cuProfilerStop(); });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return WithDriver([&](const Driver& driver) {
    if (symbol == nullptr || function == nullptr || flags > cudaEnablePerThreadDefaultStream) {
      return cudaErrorInvalidValue;
    }
    if (flags == cudaEnableDefault) {
      flags = PerThreadDefault() ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
    }
    void* found = nullptr;
    auto answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult result =
        driver.cuGetProcAddress(symbol, &found, static_cast<int>(version), static_cast<cuuint64_t>(flags), &answer);
    // What the driver does not have is an answer, not an error.
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND) return FromDriver(result);
    *function = result == CUDA_SUCCESS && answer == CU_GET_PROC_ADDRESS_SUCCESS ? found : nullptr;
    if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(answer);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return cudaGetDriverEntryPointByVersion(symbol, function, static_cast<unsigned>(version), flags, status);
}

// Private interfaces are not offered.
cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* /*id*/) {
  if (table != nullptr) *table = nullptr;
  return Record(cudaErrorSymbolNotFound);
}

}  // extern "C"
