// SPDX-License-Identifier: Apache-2.0
#include "interposer/opencl/svm_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace hawser::ocl {
namespace {

uintptr_t PageSize() {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

bool MapAt(uintptr_t address, size_t size) {
  void* wanted = reinterpret_cast<void*>(address);
  void* got = mmap(wanted, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return true;
  if (got != MAP_FAILED) munmap(got, size);  // A kernel that takes the address as a hint.
  return false;
}

void UnmapAt(uintptr_t address, size_t size) { munmap(reinterpret_cast<void*>(address), size); }

}  // namespace

SvmPages& SvmPages::Get() {
  static auto* pages = new SvmPages;
  return *pages;
}

bool SvmPages::TakePage(uintptr_t page) {
  const auto found = shared_.find(page);
  if (found != shared_.end()) {
    ++found->second;
    return true;
  }
  if (!MapAt(page, PageSize())) return false;
  shared_[page] = 1;
  return true;
}

void SvmPages::DropPage(uintptr_t page) {
  const auto found = shared_.find(page);
  if (found == shared_.end() || --found->second != 0) return;
  shared_.erase(found);
  UnmapAt(page, PageSize());
}

bool SvmPages::Map(uintptr_t address, size_t size) {
  const uintptr_t mask = ~(PageSize() - 1);
  const uintptr_t first = address & mask;
  const uintptr_t last = (address + size - 1) & mask;
  if (size == 0 || last < first) return false;
  std::lock_guard lock(mutex_);
  if (!TakePage(first)) return false;
  if (last == first) return true;
  if (!TakePage(last)) {
    DropPage(first);
    return false;
  }
  const uintptr_t inner = first + PageSize();
  if (inner == last || MapAt(inner, last - inner)) return true;
  DropPage(first);
  DropPage(last);
  return false;
}

void SvmPages::Unmap(uintptr_t address, size_t size) {
  const uintptr_t mask = ~(PageSize() - 1);
  const uintptr_t first = address & mask;
  const uintptr_t last = (address + size - 1) & mask;
  std::lock_guard lock(mutex_);
  const uintptr_t inner = first + PageSize();
  if (inner < last) UnmapAt(inner, last - inner);
  if (last != first) DropPage(last);
  DropPage(first);
}

}  // namespace hawser::ocl
