// SPDX-License-Identifier: Apache-2.0
// Nodes of graphs: what NodeParameters says becomes what the driver takes.
#ifndef HAWSER_SERVER_BACKENDS_CUDA_GRAPH_NODES_H_
#define HAWSER_SERVER_BACKENDS_CUDA_GRAPH_NODES_H_

#include <cstdint>
#include <vector>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {

/// NodeParameters::kind.
enum class NodeKind : uint32_t {
  kKernel = 0,
  kCopy = 1,
  kMemset = 2,
  kHost = 3,
  kGraph = 4,
  kEmpty = 5,
  kWait = 6,
  kRecord = 7,
  kAllocation = 10,
  kFree = 11,
  kBatch = 12,
};

struct CudaBackend::KernelParameters {
  CUDA_KERNEL_NODE_PARAMS native{};
  size_t size = 0;
  void* extra[5] = {};
  std::vector<void*> pointers;  ///< To each of them.
};

}  // namespace hawser::server::cuda_backend

#endif  // HAWSER_SERVER_BACKENDS_CUDA_GRAPH_NODES_H_
