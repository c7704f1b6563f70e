// SPDX-License-Identifier: Apache-2.0
// Files that calls name by path: they are on the guest's machine, so the guest reads them.
#ifndef HAWSER_INTERPOSER_CUDA_FILE_BYTES_H_
#define HAWSER_INTERPOSER_CUDA_FILE_BYTES_H_

#include <vector>

#include "interposer/cuda/driver_api.h"

namespace hawser::cu {

/// The file's bytes and a zero byte behind them (PTX is text). CUDA_ERROR_FILE_NOT_FOUND, or _OUT_OF_MEMORY above 2
/// GiB.
CUresult ReadFile(const char* path, std::vector<std::byte>* bytes);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_FILE_BYTES_H_
