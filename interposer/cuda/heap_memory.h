// SPDX-License-Identifier: Apache-2.0
// Device memory whose bytes lie in the session's heap: a device that works in the server's memory has them there, and
// this process has them too. Synchronous copies of pageable memory are then one memcpy of the calling thread, as
// natively, once the stream's work so far is over. All other work on such memory goes the usual way.
//
// Threading: thread-safe. Copies hold a reader's lock, so that memory does not leave the heap under them; it is held
// while bytes are copied, never while something is waited for.
#ifndef HAWSER_INTERPOSER_CUDA_HEAP_MEMORY_H_
#define HAWSER_INTERPOSER_CUDA_HEAP_MEMORY_H_

#include <atomic>
#include <functional>
#include <optional>
#include <shared_mutex>

#include "interposer/cuda/entry.h"

namespace hawser::cu {

/// Whole pages of the heap. No size: none.
struct HeapPages {
  uint64_t offset = guest::Session::kNoHeap;
  uint64_t size = 0;
};

class HeapMemory {
 public:
  static HeapMemory& Get();

  /// Pages for an allocation of `size` bytes. None where memory cannot lie there, for small ones, and where the heap
  /// would have little room left for pinned and managed memory.
  HeapPages Take(uint64_t size);
  void Give(const HeapPages& pages);
  /// Where the allocation's pages are.
  static HeapPages PagesOf(const PointerRange& range);

  /// Frees an allocation that has pages; they are used again when the server has freed it.
  CUresult Free(wire::Id context, const PointerRange& range);
  /// The pages are used again when the stream's work so far is over.
  CUresult GiveAfter(StreamCommand& command, const HeapPages& pages);

  enum class Wait : uint8_t {
    kNo,   ///< Only where nothing is known to come before it in its stream.
    kYes,  ///< For what comes before it.
  };
  /// The part of a copy that is done here; the rest is given to somebody else first, once it is known that all of the
  /// copy is possible. An error there ends it, with nothing copied.
  struct Head {
    uint64_t size = 0;
    std::function<CUresult()> give_rest;
  };

  /// Copies to or from device memory, all of it without a `head`. No value: not all of the memory lies in the heap, or
  /// something is to be waited for and must not be; nothing was done.
  std::optional<CUresult> Write(StreamCommand& command, CUdeviceptr to, const std::byte* from, uint64_t size, Wait wait,
                                const Head* head = nullptr);
  std::optional<CUresult> Read(StreamCommand& command, std::byte* to, CUdeviceptr from, uint64_t size, Wait wait,
                               const Head* head = nullptr);

  /// The allocation's bytes will lie elsewhere: when this returns nobody copies in the heap any more. Its pages stay
  /// its own until it is freed.
  void Leave(CUdeviceptr begin);

  /// Allocations from so many bytes on: smaller ones would cost more messages than they save.
  static constexpr uint64_t kLeast = 64u << 10;

 private:
  static constexpr uint64_t kPage = 4096;

  template <typename CopyFunction>
  std::optional<CUresult> Copy(StreamCommand& command, CUdeviceptr address, uint64_t size, Wait wait, const Head* head,
                               CopyFunction&& copy);
  /// True when a copy in the stream has nothing to wait for.
  static bool IsIdle(StreamCommand& command);
  /// Waits for what a copy comes after in the stream.
  static CUresult AwaitWork(StreamCommand& command);

  std::atomic<uint64_t> taken_{0};  ///< Bytes.
  std::shared_mutex copying_;       ///< Before the pointer map's.
};

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_HEAP_MEMORY_H_
