// SPDX-License-Identifier: Apache-2.0
// Memory that several processes map: an unnamed file of one of them, which others of the same user open through /proc.
// So nothing has to be tidied up: the file ends with its last mapping, whoever dies first and however.
//
// A handle names process, descriptor and file. The file's number is compared, so a handle of a file that is gone opens
// nothing else. Its size is sealed, so whoever maps all of it never faults.
//
// Threads: any.
#ifndef HAWSER_SOFTCUDA_DRIVER_SHARED_FILE_H_
#define HAWSER_SOFTCUDA_DRIVER_SHARED_FILE_H_

#include <cuda.h>

#include <cstdint>

namespace hawser::soft {

/// What a CUipcMemHandle or CUipcEventHandle contains.
struct SharedHandle {
  enum class Kind : uint32_t { kMemory = 1, kEvent = 2 };

  uint32_t magic = 0;
  Kind kind = Kind::kMemory;
  int32_t process = 0;
  int32_t descriptor = 0;
  uint64_t file_system = 0;
  uint64_t file = 0;
  uint64_t size = 0;    ///< Bytes that are shared; the file has whole pages.
  uint64_t device = 0;  ///< Ordinal.
  uint64_t unused[2] = {};
};
static_assert(sizeof(SharedHandle) == sizeof(CUipcMemHandle) && sizeof(SharedHandle) == sizeof(CUipcEventHandle));

/// An open descriptor, closed with its owner.
class SharedFile {
 public:
  SharedFile() = default;
  ~SharedFile() { Close(); }
  SharedFile(SharedFile&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  SharedFile& operator=(SharedFile&& other) noexcept;

  /// A file of zeros. False when the system gives none.
  bool Create(const char* name, uint64_t size);
  /// The file that another process shares. CUDA_ERROR_INVALID_HANDLE: nonsense, or gone, or of another user.
  /// CUDA_ERROR_INVALID_CONTEXT: it is this process's own.
  CUresult Open(const SharedHandle& handle, SharedHandle::Kind kind);
  /// What others open it with. Only for a file that this process made.
  CUresult Describe(SharedHandle::Kind kind, uint64_t size, int device, SharedHandle* handle) const;
  /// A descriptor of its own of what `fd` is. False: the system gives none.
  bool Duplicate(int fd);
  void Close();

  bool valid() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  /// Whether other processes of this user can open files of this one. Not when it has changed its user: the system
  /// then keeps it shut. Nor where HAWSER_SOFT_SHARES is "off", which says that the system keeps those of others shut.
  static bool Possible();

 private:
  int fd_ = -1;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_SHARED_FILE_H_
