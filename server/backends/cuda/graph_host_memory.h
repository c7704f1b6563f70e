// SPDX-License-Identifier: Apache-2.0
// Functions of the guest in a graph use memory of the guest that copies of the same graph read and write. For those
// copies staging memory stands for it, so the guest has to know which pieces to fetch before a function, and which to
// fill behind it.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_GRAPH_HOST_MEMORY_H_
#define HAWSER_SERVER_BACKENDS_CUDA_GRAPH_HOST_MEMORY_H_

#include <functional>
#include <vector>

#include "proto/cuda/messages.h"
#include "server/backends/cuda/driver_table.h"

namespace hawser::server::cuda_backend {

class GraphHostMemory {
 public:
  /// The staging memory that an address lies in; null if none.
  using StagingAt = std::function<wire::Id(const void* address)>;
  /// The guest's name of a host node's function.
  using CallbackOf = std::function<uint64_t(const CUDA_HOST_NODE_PARAMS&)>;

  GraphHostMemory(const DriverTable* driver, StagingAt staging_at, CallbackOf callback_of)
      : driver_(driver), staging_at_(std::move(staging_at)), callback_of_(std::move(callback_of)) {}

  /// What is to be told of each host node of the graph and of its child graphs. Bodies of conditional nodes are not
  /// looked into. The driver's error if it has one.
  CUresult Find(CUgraph graph, std::vector<cuda::HostNodeMemory>* found) const;
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
  CUresult Read(CUgraph graph, Level* level) const;
  CUresult Walk(CUgraph graph, const Ids& before, const Ids& after, std::vector<cuda::HostNodeMemory>* found) const;

  const DriverTable* const driver_;
  const StagingAt staging_at_;
  const CallbackOf callback_of_;
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_GRAPH_HOST_MEMORY_H_
