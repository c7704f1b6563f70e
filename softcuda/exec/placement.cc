// SPDX-License-Identifier: Apache-2.0
#include "softcuda/exec/placement.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace hawser::exec {
namespace {

size_t PagesOf(size_t bytes) { return (bytes + kPage - 1) / kPage; }

}  // namespace

PageRegion& PageRegion::Get() {
  static PageRegion* const region = new PageRegion;
  return *region;
}

PageRegion::PageRegion() {
#if defined(__SANITIZE_ADDRESS__)
  return;  // That sanitizer knows where what the heap gives ends.
#endif
  void* const place =
      ::mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return;  // A process whose address space is limited.
  char* const mapped = static_cast<char*>(place);
  const size_t before = (kSize - reinterpret_cast<uintptr_t>(place) % kSize) % kSize;
  begin_ = mapped + before;
  if (before != 0) ::munmap(mapped, before);
  ::munmap(begin_ + kSize, kSize - before);
  taken_.resize(kPages);
}

PageRegion::~PageRegion() {
  if (begin_ != nullptr) ::munmap(begin_, kSize);
}

char* PageRegion::Take(size_t bytes) {
  const size_t pages = PagesOf(bytes);
  if (begin_ != nullptr && bytes <= kLargest) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (first_free_ < kPages && taken_[first_free_]) ++first_free_;
    size_t run = 0;
    for (size_t at = first_free_; at < kPages; ++at) {
      run = taken_[at] ? 0 : run + 1;
      if (run < pages) continue;
      const size_t first = at + 1 - run;
      std::fill_n(taken_.begin() + static_cast<ptrdiff_t>(first), pages, true);
      return begin_ + first * kPage;
    }
  }
  return bytes > SIZE_MAX - kPage ? nullptr : static_cast<char*>(std::aligned_alloc(kPage, pages * kPage));
}

void PageRegion::Give(char* memory, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(begin_);
  if (begin_ == nullptr || memory == nullptr || at >= kSize) {
    std::free(memory);
    return;
  }
  const size_t first = at / kPage;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::fill_n(taken_.begin() + static_cast<ptrdiff_t>(first), PagesOf(bytes), false);
  first_free_ = std::min(first_free_, first);
}

}  // namespace hawser::exec
