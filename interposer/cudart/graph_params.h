// SPDX-License-Identifier: Apache-2.0
// The parameters of graph nodes, between the runtime's description and the driver's. All need a current context.
#ifndef HAWSER_INTERPOSER_CUDART_GRAPH_PARAMS_H_
#define HAWSER_INTERPOSER_CUDART_GRAPH_PARAMS_H_

#include "interposer/cudart/api.h"
#include "interposer/cudart/driver.h"

namespace hawser::cudart {

cudaError_t ToDriverKernelNode(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* to);
cudaError_t FromDriverKernelNode(const Driver& driver, const CUDA_KERNEL_NODE_PARAMS& from, cudaKernelNodeParams* to);
cudaError_t ToDriverMemsetNode(const cudaMemsetParams* from, CUDA_MEMSET_NODE_PARAMS* to);
/// For cudaGraphAddNode() and its like; `to` may point into `from`.
cudaError_t ToDriverNode(const Driver& driver, const cudaGraphNodeParams& from, CUgraphNodeParams* to);
/// A copy of `count` bytes to or from a part of a variable.
cudaError_t ToDriverSymbolCopy(const void* symbol, const void* source, size_t count, size_t offset, cudaMemcpyKind kind,
                               CUDA_MEMCPY3D* to);
cudaError_t FromDriverSymbolCopy(void* destination, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind, CUDA_MEMCPY3D* to);
CUcontext CurrentContext(const Driver& driver);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_GRAPH_PARAMS_H_
