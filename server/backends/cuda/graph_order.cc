// SPDX-License-Identifier: Apache-2.0
#include "server/backends/cuda/graph_order.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace hawser::server::cuda_backend {

/// Nodes that can be reached. Cheap to use again: it forgets what it has seen by counting.
class GraphOrder::Walk {
 public:
  explicit Walk(const std::vector<Place>& places) : places_(places), seen_(places.size()) {}

  void Forget() { ++now_; }
  /// Calls visit(number) for what comes behind that node and has not been seen since Forget(); where it returns false,
  /// not for what comes behind there.
  template <typename Visit>
  void Behind(size_t number, const Visit& visit) {
    open_ = places_[number].to;
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      if (seen_[at] == now_) continue;
      seen_[at] = now_;
      if (visit(at)) open_.insert(open_.end(), places_[at].to.begin(), places_[at].to.end());
    }
  }
  bool IsSeen(size_t number) const { return seen_[number] == now_; }

 private:
  const std::vector<Place>& places_;
  std::vector<uint64_t> seen_;  ///< When a node was.
  uint64_t now_ = 1;
  std::vector<size_t> open_;
};

size_t GraphOrder::Add(Node node) {
  places_.push_back({std::move(node), {}});
  return places_.size() - 1;
}

void GraphOrder::Connect(size_t from, size_t to) { places_[from].to.push_back(to); }

std::optional<size_t> GraphOrder::FindTooEarly(const Extents& extents) const {
  Walk without(places_), handed(places_);
  std::vector<size_t> readers, functions;
  for (size_t filler = 0; filler < places_.size(); ++filler) {
    for (const wire::Id filled : places_[filler].node.fills) {
      const auto extent = extents.find(filled.raw());
      if (extent == extents.end()) continue;
      const auto meets = [&](wire::Id read) {
        const auto other = extents.find(read.raw());
        return other != extents.end() && extent->second.Meets(other->second);
      };
      readers.clear();
      functions.clear();
      without.Forget();
      without.Behind(filler, [&](size_t at) {
        const Node& node = places_[at].node;
        if (std::any_of(node.reads.begin(), node.reads.end(), meets)) readers.push_back(at);
        if (node.calls) functions.push_back(at);
        return !node.calls;
      });
      if (readers.empty()) continue;
      // There may be a function on another way to them: then they wait for that one too.
      handed.Forget();
      for (const size_t function : functions) handed.Behind(function, [](size_t) { return true; });
      for (const size_t reader : readers) {
        if (!handed.IsSeen(reader)) return reader;
      }
    }
  }
  return std::nullopt;
}

std::vector<size_t> GraphOrder::InOrder() const {
  // Depth first: a node is done when all that comes behind it is. What is met again while it is open closes a loop.
  std::vector<size_t> done;
  std::vector<bool> met(places_.size());
  std::vector<std::pair<size_t, size_t>> open;  // Nodes, and how many of their edges have been followed.
  for (size_t start = 0; start < places_.size(); ++start) {
    if (!met[start]) open.emplace_back(start, 0);
    met[start] = true;
    while (!open.empty()) {
      const size_t at = open.back().first;
      if (open.back().second == places_[at].to.size()) {
        done.push_back(at);
        open.pop_back();
        continue;
      }
      const size_t to = places_[at].to[open.back().second++];
      if (!met[to]) open.emplace_back(to, 0);
      met[to] = true;
    }
  }
  std::reverse(done.begin(), done.end());
  return done;
}

std::vector<wire::Id> GraphOrder::Filled(const Extents& extents) const {
  const std::vector<size_t> order = InOrder();
  std::vector<wire::Id> filled;
  std::unordered_set<uint64_t> seen;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    for (const wire::Id id : places_[*at].node.fills) {
      if (extents.contains(id.raw()) && seen.insert(id.raw()).second) filled.push_back(id);
    }
  }
  std::reverse(filled.begin(), filled.end());
  return filled;
}

}  // namespace hawser::server::cuda_backend
