// SPDX-License-Identifier: Apache-2.0
// What every entry point begins with: is there a driver, is there a context, which stream is meant.
//
// Entry points are found by generate.py when a line begins with "CUresult CUDAAPI cuName("; they must be inside extern
// "C". cuda.h declares old and new variants under their own names because of __CUDA_API_VERSION_INTERNAL.
#ifndef HAWSER_SOFTCUDA_DRIVER_ENTRY_H_
#define HAWSER_SOFTCUDA_DRIVER_ENTRY_H_

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include "softcuda/driver/driver.h"
#include "softcuda/driver/thread_state.h"

namespace hawser::soft {

/// CUDA_ERROR_NOT_INITIALIZED before cuInit and in a child of fork().
CUresult GetReady(Driver** driver);
/// The calling thread's context; CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED, or NOT_INITIALIZED.
/// Ignores the context's first error.
CUresult CurrentContext(ContextPtr* context);
/// The same, and the context's first error.
CUresult WorkingContext(ContextPtr* context);
/// A device number.
CUresult GetDevice(CUdevice number, Device** device);
/// The stream that a handle means to the calling thread: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or a stream's own.
CUresult GetStream(CUstream handle, StreamPtr* stream);

/// Waits for all work of all contexts: for whoever frees what kernels may use.
void DrainAll();

/// Leaves the function with what went wrong.
#define HAWSER_TRY(expression)                                                        \
  do {                                                                                \
    if (const CUresult hawser_result = (expression); hawser_result != CUDA_SUCCESS) { \
      return hawser_result;                                                           \
    }                                                                                 \
  } while (false)

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_ENTRY_H_
