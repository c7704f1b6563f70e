// SPDX-License-Identifier: Apache-2.0
// The functions whose parameters differ between CUDA 12 and CUDA 13. They are written once, here with the parameters of
// CUDA 13; abi12.cc and abi13.cc export them under the names and with the parameters of each.
#ifndef HAWSER_INTERPOSER_CUDART_VERSIONED_H_
#define HAWSER_INTERPOSER_CUDART_VERSIONED_H_

#include "interposer/cudart/api.h"

namespace hawser::cudart {

cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int ordinal);
cudaError_t MemAdvise(const void* pointer, size_t size, cudaMemoryAdvise advice, cudaMemLocation location);
cudaError_t MemPrefetchAsync(const void* pointer, size_t size, cudaMemLocation location, unsigned flags,
                             cudaStream_t stream);
cudaError_t MemcpyBatchAsync(void* const* destinations, const void* const* sources, const size_t* sizes, size_t count,
                             cudaMemcpyAttributes* attributes, size_t* attribute_indices, size_t attribute_count,
                             cudaStream_t stream);
cudaError_t Memcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations, unsigned long long flags,
                               cudaStream_t stream);
cudaError_t StreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                 cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                 const cudaGraphEdgeData** edges, size_t* count);
cudaError_t StreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                            const cudaGraphEdgeData* edges, size_t count, unsigned flags);
cudaError_t GraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                 const cudaGraphEdgeData* edges, size_t count);
cudaError_t GraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    const cudaGraphEdgeData* edges, size_t count);
cudaError_t GraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                          size_t* count);
cudaError_t GraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                     size_t* count);
cudaError_t GraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
                                       size_t* count);
cudaError_t GraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters);

}  // namespace hawser::cudart

#endif  // HAWSER_INTERPOSER_CUDART_VERSIONED_H_
