// SPDX-License-Identifier: Apache-2.0
// The runtime's error numbers: from the driver's, and to names and words.
#ifndef HAWSER_INTERPOSER_CUDART_ERRORS_H_
#define HAWSER_INTERPOSER_CUDART_ERRORS_H_

#include <cuda.h>
#include <driver_types.h>

namespace hawser::cudart {

/// Both interfaces share their numbers since CUDA 10.1; what the runtime does not have becomes cudaErrorUnknown.
cudaError_t FromDriver(CUresult result);
inline cudaError_t FromDriver(cudaError_t error) { return error; }

/// True for errors that end a context: each later call returns them until cudaDeviceReset().
bool IsSticky(cudaError_t error);

/// Static storage; null for numbers that the runtime does not have.
const char* ErrorName(cudaError_t error);
const char* ErrorText(cudaError_t error);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_ERRORS_H_
