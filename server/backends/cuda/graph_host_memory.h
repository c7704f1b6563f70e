// SPDX-License-Identifier: Apache-2.0
// Functions of the guest in a graph use memory of the guest that copies of the same graph read and write. For those
// copies staging memory stands for it, so the guest has to know which pieces to fetch before a function, and which to
// fill behind it; and where it has to put a function between two copies with the same memory, or which of them comes
// last.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_GRAPH_HOST_MEMORY_H_
#define HAWSER_SERVER_BACKENDS_CUDA_GRAPH_HOST_MEMORY_H_

#include <functional>
#include <vector>

#include "proto/cuda/messages.h"
#include "server/backends/cuda/driver_table.h"
#include "server/backends/cuda/graph_order.h"

namespace hawser::server::cuda_backend {

class GraphHostMemory {
 public:
  /// The staging memory that an address lies in; null if none.
  using StagingAt = std::function<wire::Id(const void* address)>;
  /// The guest's name of a host node's function.
  using CallbackOf = std::function<uint64_t(const CUDA_HOST_NODE_PARAMS&)>;
  /// The bodies of a conditional node; none if the guest has not named them.
  struct Body {
    CUgraph graph = nullptr;
    bool loops = false;
  };
  using BodiesOf = std::function<std::vector<Body>(CUgraphNode)>;

  GraphHostMemory(const DriverTable* driver, StagingAt staging_at, CallbackOf callback_of, BodiesOf bodies_of)
      : driver_(driver),
        staging_at_(std::move(staging_at)),
        callback_of_(std::move(callback_of)),
        bodies_of_(std::move(bodies_of)) {}

  /// What is to be told of each host node of the graph and of its child graphs. The driver's error if it has one.
  CUresult Find(CUgraph graph, std::vector<cuda::HostNodeMemory>* found) const;
  /// How copies pass memory of the guest on to each other.
  struct Passing {
    /// One reads memory which another one before it has written, with no function between the two. `node`: the later
    /// one; null where it is in a child graph or a body.
    bool too_early = false;
    CUgraphNode node = nullptr;
    std::vector<wire::Id> filled;  ///< In the order of the copies.
  };
  CUresult FindPassing(CUgraph graph, const GraphOrder::Extents& extents, Passing* passing) const;
  /// What the guest has given a node: of a copy its staging memory, of a host node its callback. 0: neither, or the
  /// driver does not say.
  uint64_t NameIn(CUgraphNode node) const;

 private:
  using Ids = std::vector<wire::Id>;
  /// Of a copy node.
  CUresult ReadCopy(CUgraphNode node, Ids* reads, Ids* fills) const;
  /// Of a host node. 0: not the guest's.
  CUresult ReadCallback(CUgraphNode node, uint64_t* callback) const;
  struct Level;
  struct Flat;
  bool HasEntries() const;
  CUresult Read(CUgraph graph, Level* level) const;
  /// Adds the graph with all that is in it. What comes before it is connected to `begin`, what comes behind to `end`.
  CUresult Flatten(CUgraph graph, Flat* flat, size_t* begin, size_t* end) const;
  CUresult Walk(CUgraph graph, const Ids& before, const Ids& after, std::vector<cuda::HostNodeMemory>* found) const;

  const DriverTable* const driver_;
  const StagingAt staging_at_;
  const CallbackOf callback_of_;
  const BodiesOf bodies_of_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_GRAPH_HOST_MEMORY_H_
