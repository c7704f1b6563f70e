// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/patcher.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace hawser::redirect {
namespace {

constexpr uint8_t kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

// jmp to itself.
constexpr uint16_t kWaitHere = 0xfeeb;

void Write(const Patch& patch) {
  const uintptr_t place = PlaceOfJump(patch.address, patch.room);
  const std::array<uint8_t, kJumpSize> jump = MakeJump(place, patch.target);
  std::memcpy(reinterpret_cast<void*>(place), jump.data(), jump.size());
}

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

bool Protect(const Range& range, int protection) {
  return mprotect(reinterpret_cast<void*>(range.begin), range.end - range.begin, protection) == 0;
}

// The pages that the patches touch, joined where they meet.
std::vector<Range> PagesOf(std::vector<Patch> patches) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  std::sort(patches.begin(), patches.end(), [](const Patch& a, const Patch& b) { return a.address < b.address; });
  std::vector<Range> ranges;
  for (const Patch& patch : patches) {
    const uintptr_t begin = patch.address & ~(page - 1);
    const uintptr_t end = (patch.address + patch.room + page - 1) & ~(page - 1);
    if (!ranges.empty() && begin <= ranges.back().end) {
      ranges.back().end = std::max(ranges.back().end, end);
    } else {
      ranges.push_back({begin, end});
    }
  }
  return ranges;
}

// Every other processor sees what was written before it runs what comes next (Intel SDM volume 3, 9.1.3: code that
// another processor changes). Where the kernel cannot, the jump to itself and the order of the stores are what there
// is.
void LetAllSee() {
  const int error = errno;
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0) {
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
  }
  errno = error;
}

}  // namespace

// A jump behind an endbr64 where there is room for both: indirect calls may demand the mark.
uintptr_t PlaceOfJump(uintptr_t function, size_t room) {
  const bool marked = room >= sizeof(kEndbr64) + kJumpSize &&
                      std::memcmp(reinterpret_cast<const void*>(function), kEndbr64, sizeof(kEndbr64)) == 0;
  return marked ? function + sizeof(kEndbr64) : function;
}

std::array<uint8_t, kJumpSize> MakeJump(uintptr_t place, uintptr_t target) {
  const auto distance = static_cast<int32_t>(static_cast<intptr_t>(target) - static_cast<intptr_t>(place + kJumpSize));
  std::array<uint8_t, kJumpSize> jump{0xe9};
  std::memcpy(jump.data() + 1, &distance, sizeof(distance));
  return jump;
}

bool Replace(uintptr_t place, const std::array<uint8_t, kJumpSize>& code) {
  if (place % sizeof(uint16_t) != 0) {
    errno = EINVAL;
    return false;
  }
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const Range range{place & ~(page - 1), (place + kJumpSize + page - 1) & ~(page - 1)};
  if (!Protect(range, PROT_READ | PROT_WRITE | PROT_EXEC)) return false;
  // The first two bytes are one store, before all others and after them.
  const std::atomic_ref<uint16_t> first(*reinterpret_cast<uint16_t*>(place));
  first.store(kWaitHere, std::memory_order_seq_cst);
  LetAllSee();
  std::memcpy(reinterpret_cast<void*>(place + sizeof(kWaitHere)), code.data() + sizeof(kWaitHere),
              code.size() - sizeof(kWaitHere));
  LetAllSee();
  uint16_t begin = 0;
  std::memcpy(&begin, code.data(), sizeof(begin));
  first.store(begin, std::memory_order_seq_cst);
  LetAllSee();
  Protect(range, PROT_READ | PROT_EXEC);
  return true;
}

bool Apply(const std::vector<Patch>& patches) {
  const std::vector<Range> ranges = PagesOf(patches);
  // Hardened systems refuse to run a page of a file that was written to: then its bytes are put back. A runtime's
  // functions lie together, so there is one range as a rule.
  for (const Range& range : ranges) {
    if (!Protect(range, PROT_READ | PROT_WRITE)) return false;
    const std::vector<uint8_t> before(reinterpret_cast<const uint8_t*>(range.begin),
                                      reinterpret_cast<const uint8_t*>(range.end));
    for (const Patch& patch : patches) {
      if (patch.address >= range.begin && patch.address < range.end) Write(patch);
    }
    if (Protect(range, PROT_READ | PROT_EXEC)) continue;
    const int error = errno;
    std::memcpy(reinterpret_cast<void*>(range.begin), before.data(), before.size());
    Protect(range, PROT_READ | PROT_EXEC);
    errno = error;
    return false;
  }
  return true;
}

}  // namespace hawser::redirect
