// SPDX-License-Identifier: Apache-2.0
// Entry points: start, versions, errors, look-up of entry points, profiler.
#include <cudaProfiler.h>

#include <atomic>
#include <string>

#include "proto/cuda_api/error_text.h"
#include "proto/cuda_api/interop.h"
#include "proto/cuda_api/private_interface.h"
#include "proto/cuda_api/proc_table.h"
#include "softcuda/driver/entry.h"
#include "softcuda/driver/log.h"

namespace hawser::soft {
namespace {

void* const kAddresses[] = {
#define HAWSER_CUDA_PROC(name, version, per_thread, symbol) reinterpret_cast<void*>(&::symbol),
#include "cuda_api/proc_address.inc"
#undef HAWSER_CUDA_PROC
};

constexpr int kDriverVersion = CUDA_VERSION;

const cuda_api::ProcTable& Table() {
  static const cuda_api::ProcTable table(kAddresses, kDriverVersion);
  return table;
}

CUresult GiveText(const char* text, const char** to) {
  if (to == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *to = text;
  return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace hawser::soft

using namespace hawser::soft;  // NOLINT(google-build-using-namespace): entry points are global.

extern "C" {

CUresult CUDAAPI cuInit(unsigned int flags) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : StartDriver(); }

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  return GiveText(hawser::cuda_api::ErrorName(error), text);
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  return GiveText(hawser::cuda_api::ErrorText(error), text);
}

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** address, int version, cuuint64_t flags) {
  return static_cast<CUresult>(Table().GetV1(symbol, address, version, flags));
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** address, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  int found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const int result = Table().Get(symbol, address, version, flags, &found);
  if (status != nullptr && result == CUDA_SUCCESS) *status = static_cast<CUdriverProcAddressQueryResult>(found);
  return static_cast<CUresult>(result);
}

CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid*) {
  if (table == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;  // Private interfaces of another driver: there are none here.
  static std::atomic_flag said;
  const std::string text = hawser::cuda_api::PrivateInterfaceText(__builtin_return_address(0));
  if (!text.empty() && !said.test_and_set(std::memory_order_relaxed)) Log(text);
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return CUDA_ERROR_PROFILER_DISABLED;  // What drivers of today say.
}

CUresult CUDAAPI cuProfilerStart(void) { return CUDA_SUCCESS; }

CUresult CUDAAPI cuProfilerStop(void) { return CUDA_SUCCESS; }

}  // extern "C"
