// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/near_memory.h"

#include <sys/mman.h>

namespace hawser::redirect {
namespace {

constexpr uintptr_t kReach = (uintptr_t{1} << 31) - (1 << 20);
constexpr uintptr_t kStep = 1 << 20;
constexpr uintptr_t kPage = 4096;

void* TryAt(uintptr_t address, size_t size) {
  void* memory = mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Kernels before 4.17 take the address as a hint.
  if (reinterpret_cast<uintptr_t>(memory) == address) return memory;
  munmap(memory, size);
  return nullptr;
}

}  // namespace

void* MapNear(uintptr_t low, uintptr_t high, size_t size) {
  const uintptr_t above = (high + kPage - 1) & ~(kPage - 1);
  const uintptr_t below = low & ~(kPage - 1);
  for (uintptr_t distance = 0; distance < kReach; distance += kStep) {
    const uintptr_t up = above + distance;
    if (up + size > up && up + size - low < kReach) {
      if (void* memory = TryAt(up, size); memory != nullptr) return memory;
    }
    if (below < distance + size + (1 << 16)) continue;
    const uintptr_t down = below - distance - size;
    if (high - down < kReach) {
      if (void* memory = TryAt(down & ~(kPage - 1), size); memory != nullptr) return memory;
    }
  }
  return nullptr;
}

}  // namespace hawser::redirect
