// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/chunk_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "softcuda/driver/address_range.h"

namespace hawser::soft {
namespace {

/// What lies behind the chunk's bytes.
struct Label {
  uint64_t magic = 0;
  uint64_t size = 0;
  int32_t device = 0;
  uint32_t unused = 0;
};

constexpr uint64_t kMagic = 0x31'4b'4e'55'48'43'57'48;  // "HWCHUNK1"
constexpr uint64_t kPage = AddressRange::kPage;

}  // namespace

bool CreateChunkFile(const ChunkFacts& facts, SharedFile* file) {
  SharedFile made;
  if (facts.size > INT64_MAX - kPage || !made.Create("hawser-soft-chunk", facts.size + kPage)) return false;
  const Label label{kMagic, facts.size, facts.device, 0};
  const auto at = static_cast<off_t>(facts.size);
  if (::pwrite(made.fd(), &label, sizeof(label), at) != static_cast<ssize_t>(sizeof(label))) return false;
  *file = std::move(made);
  return true;
}

CUresult OpenChunkFile(int descriptor, SharedFile* file, ChunkFacts* facts) {
  struct stat found {};
  if (descriptor < 0 || ::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) return CUDA_ERROR_INVALID_VALUE;
  // Only files in memory have seals, so reading one does not wait.
  constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (seals != kSealed || flags < 0 || (flags & O_ACCMODE) != O_RDWR) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = static_cast<uint64_t>(found.st_size);
  if (bytes <= kPage || bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  Label label;
  const ssize_t got = ::pread(descriptor, &label, sizeof(label), static_cast<off_t>(bytes - kPage));
  if (got != static_cast<ssize_t>(sizeof(label)) || label.magic != kMagic || label.size != bytes - kPage ||
      label.device < 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SharedFile own;
  if (!own.Duplicate(descriptor)) return CUDA_ERROR_OPERATING_SYSTEM;
  *file = std::move(own);
  *facts = {label.size, label.device};
  return CUDA_SUCCESS;
}

}  // namespace hawser::soft
