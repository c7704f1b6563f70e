// SPDX-License-Identifier: Apache-2.0
// Device memory whose bytes lie in the session's heap, which the guest maps too: so the guest copies into it and out of
// it by itself. For a device that works in the server's own memory, the software device: the heap is imported as
// external memory, and each allocation is a window of it, in pages that the guest has set aside.
//
// What the guest writes there, and when, is its own affair, as with everything else that it gives its kernels.
//
// Threads: the executor's.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_HEAP_MEMORY_H_
#define HAWSER_SERVER_BACKENDS_CUDA_HEAP_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>

#include "server/backends/cuda/driver_table.h"
#include "server/worker/services.h"

namespace hawser::server::cuda_backend {

/// Pages of the heap, as a guest names them.
struct HeapPages {
  uint64_t offset = 0;
  uint64_t size = 0;  ///< 0: none.
};

class HeapMemory {
 public:
  static constexpr uint64_t kPage = 4096;

  /// `driver` is borrowed. Of no use before Offer().
  explicit HeapMemory(const DriverTable* driver) : driver_(driver) {}
  HeapMemory(const HeapMemory&) = delete;
  HeapMemory& operator=(const HeapMemory&) = delete;

  /// The heap may be used for memory.
  void Offer(const Heap& heap) { heap_ = heap; }
  /// Whether the current context can have memory there; tried once for each. False after setting *why, the first time.
  bool Usable(CUcontext current, std::string* why);
  /// Whether `size` bytes are to lie in just these pages, and they are the heap's.
  bool Fits(const HeapPages& pages, uint64_t size) const;
  /// Memory of the current context, which is usable, in pages that fit. It is freed by cuMemFree.
  CUresult Allocate(CUcontext current, const HeapPages& pages, uint64_t size, CUdeviceptr* address);
  /// Before the context ends; it is current.
  void EndContext(CUcontext context);

 private:
  const DriverTable* const driver_;
  Heap heap_;
  std::map<CUcontext, CUexternalMemory> imported_;  ///< Null: the driver does not take it.
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_HEAP_MEMORY_H_
