// SPDX-License-Identifier: Apache-2.0
#include "interposer/cudart/redirect/patcher.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hawser::redirect {
namespace {

constexpr uint8_t kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

// A jump behind an endbr64 where there is room for both: indirect calls may demand the mark.
void Write(const Patch& patch) {
  auto* at = reinterpret_cast<uint8_t*>(patch.address);
  if (std::memcmp(at, kEndbr64, sizeof(kEndbr64)) == 0 && patch.room >= sizeof(kEndbr64) + kJumpSize) {
    at += sizeof(kEndbr64);
  }
  const auto distance =
      static_cast<int32_t>(static_cast<intptr_t>(patch.target) - reinterpret_cast<intptr_t>(at + kJumpSize));
  at[0] = 0xe9;
  std::memcpy(at + 1, &distance, sizeof(distance));
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

}  // namespace

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
