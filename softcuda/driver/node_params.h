// SPDX-License-Identifier: Apache-2.0
// Between the parameter structures of graph nodes and work.
#ifndef HAWSER_SOFTCUDA_DRIVER_NODE_PARAMS_H_
#define HAWSER_SOFTCUDA_DRIVER_NODE_PARAMS_H_

#include <cuda.h>

#include "softcuda/driver/graph.h"
#include "softcuda/driver/work.h"

namespace hawser::soft {

/// Each checks as the stream's call for the same work does.
CUresult ToWork(const CUDA_KERNEL_NODE_PARAMS& params, Work* work);
CUresult ToWork(const CUDA_MEMCPY3D& params, Work* work);
CUresult ToWork(const CUDA_MEMSET_NODE_PARAMS& params, Work* work);
CUresult ToWork(const CUDA_HOST_NODE_PARAMS& params, Work* work);
CUresult ToWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS& params, Work* work);
CUresult EventWork(CUevent event, bool record, Work* work);
CUresult ChildGraphWork(CUgraph graph, Work* work);
/// Takes the memory at once and says where in `params`.
CUresult AllocationWork(CUDA_MEM_ALLOC_NODE_PARAMS* params, Work* work);
CUresult ReleaseWork(CUdeviceptr address, Work* work);
/// Of any kind.
CUresult ToWork(CUgraphNodeParams* params, Work* work);

/// A kernel node's parameters; the pointers in it live as long as the node is not changed.
CUDA_KERNEL_NODE_PARAMS KernelParams(Node* node);

CUDA_KERNEL_NODE_PARAMS Newer(const CUDA_KERNEL_NODE_PARAMS_v1& params);
CUDA_KERNEL_NODE_PARAMS_v1 Older(const CUDA_KERNEL_NODE_PARAMS& params);

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_NODE_PARAMS_H_
