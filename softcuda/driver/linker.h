// SPDX-License-Identifier: Apache-2.0
// cuLink*: PTX texts that are linked into one image; and the reading of images with their logs.
//
// Threads: one at a time per state, CUDA's rule.
#ifndef HAWSER_SOFTCUDA_DRIVER_LINKER_H_
#define HAWSER_SOFTCUDA_DRIVER_LINKER_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "softcuda/driver/module_store.h"

namespace hawser::soft {

/// Image to parsed units; what goes wrong is put into the error log and said on stderr.
CUresult ReadImage(const void* image, uint32_t capability, const JitLogs& logs, Units* units);
/// A whole file, zero-terminated. CUDA_ERROR_FILE_NOT_FOUND, CUDA_ERROR_INVALID_VALUE.
CUresult ReadImageFile(const char* path, std::string* bytes);

struct LinkState {
  uint64_t handle = 0;
  uint32_t capability = 0;
  JitLogs logs;
  std::vector<std::string> texts;
  std::vector<std::byte> linked;  ///< After Complete().

  /// PTX text, fatbins with PTX, object files and archives with such fatbins. CUDA_ERROR_NO_BINARY_FOR_GPU for machine
  /// code.
  CUresult Add(CUjitInputType type, std::span<const std::byte> data, const std::string& name);
  CUresult Complete();
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_LINKER_H_
