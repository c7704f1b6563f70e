// SPDX-License-Identifier: Apache-2.0
#include "softcuda/ptx/block_order.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace hawser::ptx {
namespace {

using Blocks = std::vector<uint32_t>;  // Numbers, ascending.

class Orderer {
 public:
  explicit Orderer(const std::vector<BasicBlock>& blocks)
      : all_(blocks), successors_(blocks.size()), part_(blocks.size(), 0), state_(blocks.size()) {
    predecessors_.resize(blocks.size());
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      successors_[b] = blocks[b].successors;
      for (const uint32_t next : successors_[b]) predecessors_[next].push_back(b);
    }
  }

  BlockOrder Run() {
    if (all_.empty()) return {};
    const std::vector<bool> reached = Reached();
    Blocks blocks;
    for (uint32_t b = 0; b < all_.size(); ++b) {
      if (reached[b]) blocks.push_back(b);
    }
    Order(blocks, 0);
    for (uint32_t b = 0; b < all_.size(); ++b) {
      if (!reached[b]) Place(b);
    }
    return std::move(order_);
  }

 private:
  /// Of Tarjan's search for strongly connected components.
  struct State {
    uint32_t number = 0;  ///< In the order of discovery, from 1; 0: not seen.
    uint32_t lowest = 0;
    uint32_t component = 0;
    bool open = false;
  };

  std::vector<bool> Reached() const {
    std::vector<bool> reached(all_.size(), false);
    Blocks open{0};
    reached[0] = true;
    while (!open.empty()) {
      const uint32_t block = open.back();
      open.pop_back();
      for (const uint32_t next : all_[block].successors) {
        if (reached[next]) continue;
        reached[next] = true;
        open.push_back(next);
      }
    }
    return reached;
  }

  void Place(uint32_t block) { order_.places.push_back({block, false}); }

  /// The strongly connected components of the graph between `blocks`, each ascending; State::component is set.
  std::vector<Blocks> Components(const Blocks& blocks) {
    const uint32_t part = ++parts_;
    for (const uint32_t block : blocks) {
      part_[block] = part;
      state_[block] = {};
    }
    std::vector<Blocks> components;
    Blocks open;
    uint32_t numbers = 0;
    std::vector<std::pair<uint32_t, size_t>> path;  // A block, and which of its successors comes next.
    const auto enter = [&](uint32_t block) {
      state_[block].number = state_[block].lowest = ++numbers;
      state_[block].open = true;
      open.push_back(block);
      path.emplace_back(block, 0);
    };
    for (const uint32_t first : blocks) {
      if (state_[first].number != 0) continue;
      enter(first);
      while (!path.empty()) {
        const uint32_t block = path.back().first;
        if (path.back().second < successors_[block].size()) {
          const uint32_t next = successors_[block][path.back().second++];
          if (part_[next] != part) continue;
          if (state_[next].number == 0) {
            enter(next);
          } else if (state_[next].open) {
            state_[block].lowest = std::min(state_[block].lowest, state_[next].number);
          }
          continue;
        }
        path.pop_back();
        if (!path.empty()) {
          State& before = state_[path.back().first];
          before.lowest = std::min(before.lowest, state_[block].lowest);
        }
        if (state_[block].lowest != state_[block].number) continue;
        Blocks component;
        do {
          component.push_back(open.back());
          state_[open.back()].open = false;
          state_[open.back()].component = static_cast<uint32_t>(components.size());
          open.pop_back();
        } while (component.back() != block);
        std::sort(component.begin(), component.end());
        components.push_back(std::move(component));
      }
    }
    return components;
  }

  /// Places the blocks: components after those that lead to them, and of several that could come next the first of the
  /// text.
  void Order(const Blocks& blocks, uint32_t depth) {
    const std::vector<Blocks> components = Components(blocks);
    const uint32_t part = parts_;
    std::vector<uint32_t> before(components.size(), 0);
    std::vector<Blocks> after(components.size());
    for (const uint32_t block : blocks) {
      for (const uint32_t next : successors_[block]) {
        const uint32_t from = state_[block].component;
        if (part_[next] != part || state_[next].component == from) continue;
        after[from].push_back(state_[next].component);
        ++before[state_[next].component];
      }
    }
    using Ready = std::pair<uint32_t, uint32_t>;  // First block, component.
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (uint32_t c = 0; c < components.size(); ++c) {
      if (before[c] == 0) ready.emplace(components[c].front(), c);
    }
    while (!ready.empty()) {
      const uint32_t c = ready.top().second;
      ready.pop();
      OrderComponent(components[c], depth);
      for (const uint32_t next : after[c]) {
        if (--before[next] == 0) ready.emplace(components[next].front(), next);
      }
    }
  }

  void OrderComponent(const Blocks& component, uint32_t depth) {
    const uint32_t only = component.front();
    const auto& next = successors_[only];
    const bool loop = component.size() > 1 || std::find(next.begin(), next.end(), only) != next.end();
    if (!loop) return Place(only);
    if (depth == kDeepestOrderedLoop) {
      for (const uint32_t block : component) Place(block);
      return;
    }
    const uint32_t header = HeaderOf(component);
    Blocks back;
    for (const uint32_t block : component) {
      if (std::erase(successors_[block], header) != 0) back.push_back(block);
    }
    Order(component, depth + 1);
    if (back.size() < 2) return;  // One: it has become the last of its loop by itself.
    for (const uint32_t block : back) order_.latches[{block, header}] = static_cast<uint32_t>(order_.places.size());
    order_.places.push_back({header, true});
  }

  /// Where the loop is entered; of several places the first of the text.
  uint32_t HeaderOf(const Blocks& component) const {
    for (const uint32_t block : component) {
      if (block == 0) return block;  // The function's begin.
      for (const uint32_t before : predecessors_[block]) {
        if (!std::binary_search(component.begin(), component.end(), before)) return block;
      }
    }
    return component.front();
  }

  const std::vector<BasicBlock>& all_;
  std::vector<Blocks> successors_;  ///< Without the ways back to the begin of loops that have been looked at.
  std::vector<Blocks> predecessors_;
  std::vector<uint32_t> part_;  ///< The last call of Components() that a block was in.
  std::vector<State> state_;
  uint32_t parts_ = 0;
  BlockOrder order_;
};

}  // namespace

BlockOrder OrderBlocks(const std::vector<BasicBlock>& blocks) { return Orderer(blocks).Run(); }

}  // namespace hawser::ptx
