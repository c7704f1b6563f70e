// SPDX-License-Identifier: Apache-2.0
// What libcudart.so.13 exports otherwise than libcudart.so.12.
#include "interposer/cudart/entry.h"
#include "interposer/cudart/twin.h"
#include "interposer/cudart/versioned.h"

namespace rt = hawser::cudart;

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return rt::Record(cudaErrorInvalidValue);
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  return rt::GetDeviceProperties(properties, ordinal);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t size, cudaMemoryAdvise advice, cudaMemLocation location) {
  return rt::MemAdvise(pointer, size, advice, location);
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t size, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
  return rt::MemPrefetchAsync(pointer, size, location, flags, stream);
}

HAWSER_CUDART_EXPORT cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t size, cudaMemLocation location,
                                                           unsigned flags, cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return rt::MemPrefetchAsync(pointer, size, location, flags, stream);
}

cudaError_t cudaMemcpyBatchAsync(void* const* destinations, const void* const* sources, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* attribute_indices,
                                 size_t attribute_count, cudaStream_t stream) {
  return rt::MemcpyBatchAsync(destinations, sources, sizes, count, attributes, attribute_indices, attribute_count,
                              stream);
}

HAWSER_CUDART_EXPORT cudaError_t cudaMemcpyBatchAsync_ptsz(void* const* destinations, const void* const* sources,
                                                           const size_t* sizes, size_t count,
                                                           cudaMemcpyAttributes* attributes, size_t* attribute_indices,
                                                           size_t attribute_count, cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return rt::MemcpyBatchAsync(destinations, sources, sizes, count, attributes, attribute_indices, attribute_count,
                              stream);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* operations, unsigned long long flags,
                                   cudaStream_t stream) {
  return rt::Memcpy3DBatchAsync(count, operations, flags, stream);
}

HAWSER_CUDART_EXPORT cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, cudaMemcpy3DBatchOp* operations,
                                                             unsigned long long flags, cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return rt::Memcpy3DBatchAsync(count, operations, flags, stream);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return rt::StreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                               unsigned long long* id, cudaGraph_t* graph,
                                                               const cudaGraphNode_t** dependencies,
                                                               const cudaGraphEdgeData** edges, size_t* count) {
  const rt::PerThreadScope scope;
  return rt::StreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count, unsigned flags) {
  return rt::StreamUpdateCaptureDependencies(stream, dependencies, edges, count, flags);
}

HAWSER_CUDART_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
                                                                          cudaGraphNode_t* dependencies,
                                                                          const cudaGraphEdgeData* edges, size_t count,
                                                                          unsigned flags) {
  const rt::PerThreadScope scope;
  return rt::StreamUpdateCaptureDependencies(stream, dependencies, edges, count, flags);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
  return rt::GraphAddDependencies(graph, from, to, edges, count);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edges, size_t count) {
  return rt::GraphRemoveDependencies(graph, from, to, edges, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return rt::GraphGetEdges(graph, from, to, edges, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return rt::GraphNodeGetDependencies(node, dependencies, edges, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return rt::GraphNodeGetDependentNodes(node, dependents, edges, count);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
  return rt::GraphAddNode(node, graph, dependencies, edges, count, parameters);
}

}  // extern "C"
