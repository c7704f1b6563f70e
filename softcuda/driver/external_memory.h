// SPDX-License-Identifier: Apache-2.0
// Memory that something else made and this device works in: a file that is given by its descriptor
// (CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD), of which windows become device memory. It must be one in memory whose
// size is sealed (memfd_create), so that whoever works in a window never faults.
//
// Source: CUDA driver API, "External Resource Interoperability". A window is freed like other device memory, counts
// against the device's capacity like other device memory, and is checked to the byte.
//
// Threads: not changed once it is in the driver's table.
#ifndef HAWSER_SOFTCUDA_DRIVER_EXTERNAL_MEMORY_H_
#define HAWSER_SOFTCUDA_DRIVER_EXTERNAL_MEMORY_H_

#include <cuda.h>

#include <cstdint>

namespace hawser::soft {

/// Where the bytes of an allocation lie. No file: in memory of its own.
struct FileWindow {
  int file = -1;        ///< Borrowed.
  uint64_t offset = 0;  ///< A multiple of the page size.
};

struct ExternalMemory {
  uint64_t handle = 0;
  uint64_t context = 0;
  uint64_t size = 0;  ///< Bytes that may be used, from the file's beginning.
  int file = -1;      ///< Owned.

  ExternalMemory() = default;
  ~ExternalMemory();
  ExternalMemory(const ExternalMemory&) = delete;
  ExternalMemory& operator=(const ExternalMemory&) = delete;

  /// CUDA_SUCCESS when the first `size` bytes of the file can be device memory.
  static CUresult Check(int file, uint64_t size);
  /// Where [offset, offset + size) lies. CUDA_ERROR_INVALID_VALUE: not inside, or it does not begin a page.
  CUresult Window(uint64_t offset, uint64_t bytes, FileWindow* window) const;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_EXTERNAL_MEMORY_H_
