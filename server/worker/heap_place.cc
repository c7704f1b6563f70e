// SPDX-License-Identifier: Apache-2.0
#include "server/worker/heap_place.h"

#include <sys/mman.h>
#include <sys/random.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace hawser::server {
namespace {

constexpr uint64_t kAlignment = uint64_t{2} << 20;  // Of huge pages.
constexpr int kTries = 4;
constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kFlags = MAP_SHARED | MAP_NORESERVE;

/// A random place for `size` bytes. 0: there is none.
uint64_t Place(uint64_t size) {
#if defined(__SANITIZE_THREAD__)
  return 0;  // That sanitizer allows no addresses of our choice.
#endif
  constexpr uint64_t kAll = kHeapsEnd - kHeapsBegin;
  uint64_t random = 0;
  if (size > kAll || ::getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) return 0;
  const uint64_t places = (kAll - size) / kAlignment + 1;
  return kHeapsBegin + random % places * kAlignment;
}

}  // namespace

wire::Result<std::byte*> MapHeap(uint64_t size, int file) {
  for (int i = 0; i < kTries; ++i) {
    const uint64_t place = Place(size);
    if (place == 0) break;
    auto* const wanted = reinterpret_cast<void*>(place);
    void* const got = ::mmap(wanted, size, kProtection, kFlags | MAP_FIXED_NOREPLACE, file, 0);
    if (got == wanted) return static_cast<std::byte*>(got);
    if (got != MAP_FAILED) ::munmap(got, size);  // A kernel that does not know the flag takes it for a hint.
  }
  void* const got = ::mmap(nullptr, size, kProtection, kFlags, file, 0);
  if (got == MAP_FAILED) return wire::Status::FromErrno("no shared heap: mmap");
  return static_cast<std::byte*>(got);
}

}  // namespace hawser::server
