// SPDX-License-Identifier: Apache-2.0
#include "interposer/cuda/file_bytes.h"

#include <cstddef>
#include <fstream>

#include "proto/facts/fatbin.h"

namespace hawser::cu {

CUresult ReadFile(const char* path, std::vector<std::byte>* bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::streamoff size = file.tellg();
  if (size < 0) return CUDA_ERROR_FILE_NOT_FOUND;
  if (static_cast<uint64_t>(size) > fatbin::kMaxImageBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  bytes->resize(static_cast<size_t>(size) + 1);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes->data()), size);
  if (file.gcount() != size) return CUDA_ERROR_FILE_NOT_FOUND;
  bytes->back() = std::byte{0};
  return CUDA_SUCCESS;
}

}  // namespace hawser::cu
