// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/slicing/loops.h"

#include <algorithm>

namespace hawser::server::cuda_slicing {

using ptx::BasicBlock;

// Tarjan's algorithm, without recursion: a hostile text may be as deep as it is long.
std::vector<std::vector<uint32_t>> LoopsOf(const std::vector<BasicBlock>& blocks) {
  constexpr uint32_t kUnseen = UINT32_MAX;
  const auto count = static_cast<uint32_t>(blocks.size());
  std::vector<uint32_t> number(count, kUnseen), low(count, 0);
  std::vector<bool> open(count, false);
  std::vector<uint32_t> stack;
  struct Step {
    uint32_t block = 0;
    size_t next = 0;
  };
  std::vector<Step> path;
  std::vector<std::vector<uint32_t>> loops;
  uint32_t seen = 0;
  const auto enter = [&](uint32_t block) {
    number[block] = low[block] = seen++;
    open[block] = true;
    stack.push_back(block);
    path.push_back({block, 0});
  };
  for (uint32_t root = 0; root < count; ++root) {
    if (number[root] != kUnseen) continue;
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      const uint32_t block = step.block;
      const std::vector<uint32_t>& successors = blocks[block].successors;
      if (step.next < successors.size()) {
        const uint32_t next = successors[step.next++];
        if (number[next] == kUnseen) {
          enter(next);
        } else if (open[next]) {
          low[block] = std::min(low[block], number[next]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().block] = std::min(low[path.back().block], low[block]);
      if (low[block] != number[block]) continue;
      std::vector<uint32_t> part;
      for (;;) {
        const uint32_t member = stack.back();
        stack.pop_back();
        open[member] = false;
        part.push_back(member);
        if (member == block) break;
      }
      const bool itself = std::find(successors.begin(), successors.end(), block) != successors.end();
      if (part.size() > 1 || itself) loops.push_back(std::move(part));
    }
  }
  return loops;
}

}  // namespace hawser::server::cuda_slicing
