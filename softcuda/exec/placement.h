// SPDX-License-Identifier: Apache-2.0
// Where things that warps touch on every instruction lie within a page of the processor's memory: at the same place in
// every process.
//
// A processor compares only the last 12 bits of addresses when it looks for stores that a load must wait for. Which
// instructions, constants and registers of a kernel get into each other's way like that depends on where malloc put
// them, and one process ran a kernel by 3 to 11 % slower than another, all its life (docs/decisions/0028). A tenant has
// a process of its own, and equal time is to be equal work.
#ifndef HAWSER_SOFTCUDA_EXEC_PLACEMENT_H_
#define HAWSER_SOFTCUDA_EXEC_PLACEMENT_H_

#include <cstddef>
#include <new>

namespace hawser::exec {

inline constexpr size_t kPage = 4096;

/// For containers whose memory begins with a page.
template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert.
  T* allocate(size_t count) { return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kPage})); }
  void deallocate(T* memory, size_t) { ::operator delete (memory, std::align_val_t{kPage}); }
  bool operator==(const PageAllocator&) const { return true; }
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_PLACEMENT_H_
