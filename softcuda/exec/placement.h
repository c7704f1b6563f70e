// SPDX-License-Identifier: Apache-2.0
// Where things that warps touch on every instruction lie: at the same place of a page, and the pages at the same
// distances from each other, in every process.
//
// A processor compares only the last 12 bits of addresses when it looks for stores that a load must wait for, and some
// foretell by a few bits made of the others where in their cache a line is. Which instructions, constants and registers
// of a kernel get into each other's way like that depends on where malloc put them, and one process ran a kernel by 3
// to 15 % slower than another, all its life (docs/decisions/0028). A tenant has a process of its own, and equal time is
// to be equal work.
#ifndef HAWSER_SOFTCUDA_EXEC_PLACEMENT_H_
#define HAWSER_SOFTCUDA_EXEC_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

namespace hawser::exec {

inline constexpr size_t kPage = 4096;

/// Runs of pages of one region that begins at a multiple of its size: so that bits made of the addresses of two of its
/// pages differ, or are equal, in every process alike, wherever the region is. Any thread.
class PageRegion {
 public:
  /// A power of two.
  static constexpr size_t kSize = size_t{64} << 20;
  /// What is larger is not touched all the time, and does not come from here.
  static constexpr size_t kLargest = size_t{256} << 10;

  /// The process's. Never ends: programs and launches may outlive static objects.
  static PageRegion& Get();

  PageRegion();
  ~PageRegion();
  PageRegion(const PageRegion&) = delete;
  PageRegion& operator=(const PageRegion&) = delete;

  /// The lowest place with so many bytes, from a page's begin; not zeroed. From the heap when they are more than
  /// kLargest or there is no room. Null: out of memory.
  char* Take(size_t bytes);
  /// The same `bytes`. Null is fine.
  void Give(char* memory, size_t bytes);

 private:
  static constexpr size_t kPages = kSize / kPage;

  char* begin_ = nullptr;  ///< Null: there is none.
  std::mutex mutex_;
  std::vector<bool> taken_;
  size_t first_free_ = 0;  ///< All before are taken.
};

/// For containers whose memory begins with a page.
template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert.
  T* allocate(size_t count) {
    char* const memory = count > SIZE_MAX / sizeof(T) ? nullptr : PageRegion::Get().Take(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return reinterpret_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    PageRegion::Get().Give(reinterpret_cast<char*>(memory), count * sizeof(T));
  }
  bool operator==(const PageAllocator&) const { return true; }
};

}  // namespace hawser::exec

#endif  // HAWSER_SOFTCUDA_EXEC_PLACEMENT_H_
