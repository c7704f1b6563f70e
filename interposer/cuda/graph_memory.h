// SPDX-License-Identifier: Apache-2.0
// Pageable host memory in a graph: staging memory on the server stands for it. The guest fills it before each launch of
// the graph and fetches it after (docs/decisions/0006).
#ifndef HAWSER_INTERPOSER_CUDA_GRAPH_MEMORY_H_
#define HAWSER_INTERPOSER_CUDA_GRAPH_MEMORY_H_

#include "interposer/cuda/transfer.h"

namespace hawser::cu {

/// A copy from or to host memory, while the command's stream is being captured.
CUresult CaptureWrite(StreamCommand& command, CUdeviceptr to, const HostRegion& from);
CUresult CaptureRead(StreamCommand& command, CUdeviceptr from, const HostRegion& to);

}  // namespace hawser::cu

#endif  // HAWSER_INTERPOSER_CUDA_GRAPH_MEMORY_H_
