// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: honest about versions and about the per-thread default stream, from the table that is generated out
// of the toolkit's headers.
#include "interposer/cuda/driver_api.h"
#include "proto/cuda_api/interop.h"
#include "proto/cuda_api/proc_table.h"

namespace hawser::cu {
namespace {

void* const kAddresses[] = {
#define HAWSER_CUDA_PROC(name, version, per_thread, symbol) reinterpret_cast<void*>(&symbol),
#include "cuda_api/proc_address.inc"
#undef HAWSER_CUDA_PROC
};

constexpr cuda_api::ProcTable kTable(kAddresses, CUDA_VERSION);

}  // namespace
}  // namespace hawser::cu

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* result) {
  int status = 0;
  const int error = hawser::cu::kTable.Get(symbol, function, version, flags, result != nullptr ? &status : nullptr);
  if (result != nullptr) *result = static_cast<CUdriverProcAddressQueryResult>(status);
  return static_cast<CUresult>(error);
}

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return static_cast<CUresult>(hawser::cu::kTable.GetV1(symbol, function, version, flags));
}
