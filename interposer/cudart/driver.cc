// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/driver.h"

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <cstring>
#include <type_traits>

#include "interposer/core/log.h"

namespace hawser::cudart {
namespace {

#define X(name, text, symbol, version) \
  static_assert(std::is_same_v<PFN_##name##_v##version, decltype(&::name)>, text " changed its type at " #version);
#include "interposer/cudart/driver_functions.inc"
#undef X

DriverLookup g_test_lookup = nullptr;
PFN_cuGetProcAddress_v12000 g_get_proc_address = nullptr;
void* g_library = nullptr;

// Stands for each function that the driver lacks.
template <typename... Arguments>
CUresult Missing(Arguments...) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

void* LookupInLibrary(const char* name, const char* symbol, int version) {
  if (g_get_proc_address == nullptr) return dlsym(g_library, symbol);
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = g_get_proc_address(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
  return result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
}

template <typename... Arguments>
void Fill(CUresult (*&member)(Arguments...), const char* name, const char* symbol, int version, DriverLookup lookup) {
  void* function = lookup(name, symbol, version);
  if (function == nullptr && std::strcmp(symbol, "cuEventElapsedTime_v2") == 0) {
    // The same function under the same type: only the meaning of events still being recorded was made precise.
    function = lookup(name, name, 2000);
  }
  member = function != nullptr ? reinterpret_cast<CUresult (*)(Arguments...)>(function) : &Missing<Arguments...>;
}

template <typename... Arguments>
bool IsMissing(CUresult (*member)(Arguments...)) {
  return member == &Missing<Arguments...>;
}

}  // namespace

bool FillDriver(Driver& driver, DriverLookup lookup) {
#define X(name, text, symbol, version) Fill(driver.name, text, symbol, version, lookup);
#include "interposer/cudart/driver_functions.inc"
#undef X
  return !IsMissing(driver.cuInit) && !IsMissing(driver.cuDeviceGetCount) &&
         !IsMissing(driver.cuDevicePrimaryCtxRetain) && !IsMissing(driver.cuCtxSetCurrent) &&
         !IsMissing(driver.cuLibraryLoadData);
}

bool OpenDriver(Driver& driver) {
  using guest::Log;
  using guest::LogLevel;
  if (g_test_lookup != nullptr) return FillDriver(driver, g_test_lookup);
  // Never closed: the driver may have threads, and it is called while the process ends.
  g_library = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_library == nullptr) {
    Log(LogLevel::kInfo, "no CUDA driver: %s", dlerror());
    return false;
  }
  g_get_proc_address = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(g_library, "cuGetProcAddress_v2"));
  if (FillDriver(driver, &LookupInLibrary)) return true;
  Log(LogLevel::kError, "the CUDA driver (libcuda.so.1) is too old: it has no cuLibraryLoadData, which came with 12.0");
  return false;
}

void SetDriverLookupForTest(DriverLookup lookup) { g_test_lookup = lookup; }

}  // namespace hawser::cudart
