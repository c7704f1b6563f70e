// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/external_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softcuda/driver/address_range.h"

namespace hawser::soft {

ExternalMemory::~ExternalMemory() {
  if (file >= 0) ::close(file);
}

CUresult ExternalMemory::Check(int file, uint64_t size) {
  struct stat facts {};
  if (file < 0 || ::fstat(file, &facts) != 0) return CUDA_ERROR_INVALID_HANDLE;
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return CUDA_ERROR_INVALID_HANDLE;
  return size != 0 && size <= static_cast<uint64_t>(facts.st_size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ExternalMemory::Window(uint64_t offset, uint64_t bytes, FileWindow* window) const {
  if (bytes == 0 || offset % AddressRange::kPage != 0 || offset > size || bytes > size - offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *window = {file, offset};
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
