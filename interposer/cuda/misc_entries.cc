// SPDX-License-Identifier: Apache-2.0
// Names of errors, the profiler's switches, and what this library does not have by intent.
#include <atomic>
#include <string>

#include "interposer/core/log.h"
#include "interposer/cuda/entry.h"
#include "proto/cuda_api/error_text.h"
#include "proto/cuda_api/private_interface.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = cuda_api::ErrorName(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = cuda_api::ErrorText(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The driver's private interfaces are neither implemented nor imitated.
CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  static std::atomic_flag said;
  const std::string text = cuda_api::PrivateInterfaceText(__builtin_return_address(0));
  if (!text.empty() && !said.test_and_set(std::memory_order_relaxed)) {
    guest::Log(guest::LogLevel::kWarning, "%s", text.c_str());
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuProfilerStart() {
  CUctx_st* context = nullptr;
  return CurrentContext(&context, /*earlier=*/false);
}

CUresult CUDAAPI cuProfilerStop() {
  CUctx_st* context = nullptr;
  return CurrentContext(&context, /*earlier=*/false);
}

CUresult CUDAAPI cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return CUDA_ERROR_PROFILER_DISABLED;  // What drivers of today say.
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult error = Client::Get().Check(); error != CUDA_SUCCESS) return error;
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(ThreadState::Get().capture_mode, *mode);
  return CUDA_SUCCESS;
}

// No other device writes into the memory of a guest's (Client::Correct).
CUresult CUDAAPI cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope) {
  CUctx_st* context = nullptr;
  const CUresult error = CurrentContext(&context, /*earlier=*/false);
  return error != CUDA_SUCCESS ? error : CUDA_ERROR_NOT_SUPPORTED;
}
