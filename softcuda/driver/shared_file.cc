// SPDX-License-Identifier: Apache-2.0
#include "softcuda/driver/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hawser::soft {
namespace {

constexpr uint32_t kMagic = 0x53494357;  // "WCIS"
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool Is(const struct stat& found, const SharedHandle& handle) {
  return S_ISREG(found.st_mode) && static_cast<uint64_t>(found.st_dev) == handle.file_system &&
         static_cast<uint64_t>(found.st_ino) == handle.file && found.st_size > 0 &&
         static_cast<uint64_t>(found.st_size) >= handle.size;
}

}  // namespace

SharedFile& SharedFile::operator=(SharedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void SharedFile::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool SharedFile::Possible() {
  const char* const shares = std::getenv("HAWSER_SOFT_SHARES");
  return (shares == nullptr || shares != std::string_view("off")) && ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}

bool SharedFile::Create(const char* name, uint64_t size) {
  Close();
  fd_ = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(size)) == 0 && ::fcntl(fd_, F_ADD_SEALS, kSeals) == 0) {
    return true;
  }
  Close();
  return false;
}

bool SharedFile::Duplicate(int fd) {
  Close();
  fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return fd_ >= 0;
}

CUresult SharedFile::Describe(SharedHandle::Kind kind, uint64_t size, int device, SharedHandle* handle) const {
  struct stat found {};
  if (!Possible()) return CUDA_ERROR_NOT_SUPPORTED;
  if (fd_ < 0 || ::fstat(fd_, &found) != 0) return CUDA_ERROR_MAP_FAILED;
  *handle = SharedHandle();
  handle->magic = kMagic;
  handle->kind = kind;
  handle->process = ::getpid();
  handle->descriptor = fd_;
  handle->file_system = static_cast<uint64_t>(found.st_dev);
  handle->file = static_cast<uint64_t>(found.st_ino);
  handle->size = size;
  handle->device = static_cast<uint64_t>(device);
  return CUDA_SUCCESS;
}

CUresult SharedFile::Open(const SharedHandle& handle, SharedHandle::Kind kind) {
  Close();
  const bool sensible =
      handle.magic == kMagic && handle.kind == kind && handle.process > 0 && handle.descriptor >= 0 && handle.size != 0;
  if (!sensible) return CUDA_ERROR_INVALID_HANDLE;
  if (handle.process == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.process, handle.descriptor);
  struct stat found {};
  // Looked at before: opening something else might wait, or do something.
  if (::stat(path, &found) != 0 || !Is(found, handle)) return CUDA_ERROR_INVALID_HANDLE;
  fd_ = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ >= 0 && ::fstat(fd_, &found) == 0 && Is(found, handle) && (::fcntl(fd_, F_GET_SEALS) & F_SEAL_SHRINK) != 0) {
    return CUDA_SUCCESS;
  }
  Close();
  return CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace hawser::soft
