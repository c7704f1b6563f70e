// SPDX-License-Identifier: Apache-2.0
// Pageable memory on its way through the session's heap: this process copies it into a slot there, or out of one, while
// the server's device copies the slot before or after it. So large copies cost one memcpy here and none in between.
//
// Threading: thread-safe. A slot belongs to whoever took it until it was given back; one that the device still reads
// comes back by the server's answer, on whichever thread receives.
#ifndef HAWSER_INTERPOSER_CUDA_HEAP_STAGING_H_
#define HAWSER_INTERPOSER_CUDA_HEAP_STAGING_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "interposer/cuda/entry.h"

namespace hawser::cu {

class HeapStaging {
 public:
  static HeapStaging& Get();

  /// True when there is a heap with room for at least one slot.
  bool Usable();

  /// Writes to device memory. `from` is free when this returns; the device may get the last bytes later.
  CUresult Write(StreamCommand& command, CUdeviceptr to, const std::byte* from, uint64_t size);
  /// Reads device memory and waits for it.
  CUresult Read(StreamCommand& command, std::byte* to, CUdeviceptr from, uint64_t size);

 private:
  struct Slot;

  /// A slot that nobody uses; waits for the oldest if need be. Null: the heap is full and no slot is on its way.
  Slot* Take(guest::Session* session);
  /// A slot if one is to be had without waiting.
  Slot* TryTake(guest::Session* session);
  void Return(guest::Session* session, Slot* slot);
  /// Enqueues the device's part and asks for an answer when it is over.
  static CUresult Start(StreamCommand& command, Slot* slot, CUdeviceptr address, uint64_t size, bool to_heap);

  std::mutex mutex_;  ///< Guards what follows.
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;  ///< The last one given back is taken first: it is in the cache.
  unsigned waiting_ = 0;     ///< Threads that wait for a slot.
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_HEAP_STAGING_H_
