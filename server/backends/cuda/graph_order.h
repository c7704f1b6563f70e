// SPDX-License-Identifier: Apache-2.0
// What comes behind what in a graph with everything in it. Does a copy take from memory of the guest what another copy
// has put there, before a function of the guest could hand it over (graph_host_memory.h)? Whose data comes last?
#ifndef HAWSER_SERVER_BACKENDS_CUDA_GRAPH_ORDER_H_
#define HAWSER_SERVER_BACKENDS_CUDA_GRAPH_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "wire/id.h"

namespace hawser::server::cuda_backend {

/// The guest's memory that a piece of staging memory stands for. The address is the guest's.
struct HostExtent {
  uint64_t begin = 0, bytes = 0;

  /// Also where an extent reaches beyond the last address.
  bool Meets(const HostExtent& other) const {
    if (bytes == 0 || other.bytes == 0) return false;
    return begin <= other.begin ? other.begin - begin < bytes : begin - other.begin < other.bytes;
  }
};

/// Threading: one thread at a time.
class GraphOrder {
 public:
  struct Node {
    std::vector<wire::Id> fills, reads;  ///< Staging memory.
    bool calls = false;                  ///< It is a function of the guest.
  };
  using Extents = std::unordered_map<uint64_t, HostExtent>;  ///< By the raw ids of staging memory.

  /// Returns the node's number: they are counted from 0.
  size_t Add(Node node);
  void Connect(size_t from, size_t to);
  /// A node that reads what one before it fills (both of them in `extents`, and with some memory in common), with no
  /// function between the two. Nodes may come behind themselves, in a loop. Null: there is none.
  std::optional<size_t> FindTooEarly(const Extents& extents) const;
  /// Of those in `extents` the ones that nodes fill, in an order in which they may do so; each once, by the last node.
  /// The way back of a loop is no order.
  std::vector<wire::Id> Filled(const Extents& extents) const;

 private:
  struct Place {
    Node node;
    std::vector<size_t> to;
  };
  class Walk;
  /// All numbers, none before what it comes behind.
  std::vector<size_t> InOrder() const;

  std::vector<Place> places_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_GRAPH_ORDER_H_
