// SPDX-License-Identifier: Apache-2.0
// What libcudart.so.12 exports otherwise than libcudart.so.13: functions that CUDA 13 dropped, older parameters under
// the plain names, and today's parameters under names ending in _v2 and _v3. The labels give the functions the names
// that the headers of CUDA 13 use for others.
#include "interposer/cudart/abi12.h"

#include <cstddef>
#include <cstring>

#include "interposer/cudart/entry.h"
#include "interposer/cudart/twin.h"
#include "interposer/cudart/versioned.h"

namespace rt = hawser::cudart;

namespace {

cudaMemLocation LocationOf(int ordinal) {
  if (ordinal == cudaCpuDeviceId) return {cudaMemLocationTypeHost, 0};
  return {cudaMemLocationTypeDevice, ordinal};
}

cudaError_t GetProperties12(hawser::cudart::DeviceProperties12* to, int ordinal) {
  cudaDeviceProp from;
  if (to == nullptr) return rt::Record(cudaErrorInvalidValue);
  if (const cudaError_t error = rt::GetDeviceProperties(&from, ordinal); error != cudaSuccess) return error;
  rt::Device& device = *rt::Runtime::Get().device(ordinal);
  return rt::Record(hawser::cudart::ToProperties12(device, from, to));
}

}  // namespace

#define LABEL(name) __asm__(#name)

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return rt::Record(cudaErrorInvalidValue);
  *version = 12090;
  return cudaSuccess;
}

HAWSER_CUDART_EXPORT cudaError_t GetDeviceProperties12(rt::DeviceProperties12* to, int ordinal)
    LABEL(cudaGetDeviceProperties_v2);
cudaError_t GetDeviceProperties12(rt::DeviceProperties12* to, int ordinal) { return GetProperties12(to, ordinal); }

// Programs compiled by CUDA 11 know the structure up to here.
HAWSER_CUDART_EXPORT cudaError_t GetDeviceProperties11(void* to, int ordinal) LABEL(cudaGetDeviceProperties);
cudaError_t GetDeviceProperties11(void* to, int ordinal) {
  rt::DeviceProperties12 properties;
  const cudaError_t error = to == nullptr ? rt::Record(cudaErrorInvalidValue) : GetProperties12(&properties, ordinal);
  if (error == cudaSuccess) std::memcpy(to, &properties, offsetof(rt::DeviceProperties12, hostRegisterSupported));
  return error;
}

HAWSER_CUDART_EXPORT cudaError_t MemAdvise12(const void* pointer, size_t size, cudaMemoryAdvise advice, int ordinal)
    LABEL(cudaMemAdvise);
cudaError_t MemAdvise12(const void* pointer, size_t size, cudaMemoryAdvise advice, int ordinal) {
  return rt::MemAdvise(pointer, size, advice, LocationOf(ordinal));
}
HAWSER_CUDART_EXPORT cudaError_t cudaMemAdvise_v2(const void* pointer, size_t size, cudaMemoryAdvise advice,
                                                  cudaMemLocation location) {
  return rt::MemAdvise(pointer, size, advice, location);
}

HAWSER_CUDART_EXPORT cudaError_t MemPrefetch12(const void* pointer, size_t size, int ordinal, cudaStream_t stream)
    LABEL(cudaMemPrefetchAsync);
cudaError_t MemPrefetch12(const void* pointer, size_t size, int ordinal, cudaStream_t stream) {
  return rt::MemPrefetchAsync(pointer, size, LocationOf(ordinal), 0, stream);
}
HAWSER_CUDART_EXPORT cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t size, int ordinal,
                                                           cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return rt::MemPrefetchAsync(pointer, size, LocationOf(ordinal), 0, stream);
}
HAWSER_CUDART_EXPORT cudaError_t cudaMemPrefetchAsync_v2(const void* pointer, size_t size, cudaMemLocation location,
                                                         unsigned flags, cudaStream_t stream) {
  return rt::MemPrefetchAsync(pointer, size, location, flags, stream);
}
HAWSER_CUDART_EXPORT cudaError_t cudaMemPrefetchAsync_v2_ptsz(const void* pointer, size_t size,
                                                              cudaMemLocation location, unsigned flags,
                                                              cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return rt::MemPrefetchAsync(pointer, size, location, flags, stream);
}

// `failed` is where CUDA 12 tells which copy was refused; SIZE_MAX means none in particular.
HAWSER_CUDART_EXPORT cudaError_t MemcpyBatch12(void** destinations, void** sources, size_t* sizes, size_t count,
                                               cudaMemcpyAttributes* attributes, size_t* indices,
                                               size_t attribute_count, size_t* failed, cudaStream_t stream)
    LABEL(cudaMemcpyBatchAsync);
cudaError_t MemcpyBatch12(void** destinations, void** sources, size_t* sizes, size_t count,
                          cudaMemcpyAttributes* attributes, size_t* indices, size_t attribute_count, size_t* failed,
                          cudaStream_t stream) {
  const cudaError_t error =
      rt::MemcpyBatchAsync(destinations, sources, sizes, count, attributes, indices, attribute_count, stream);
  if (error != cudaSuccess && failed != nullptr) *failed = SIZE_MAX;
  return error;
}
HAWSER_CUDART_EXPORT cudaError_t cudaMemcpyBatchAsync_ptsz(void** destinations, void** sources, size_t* sizes,
                                                           size_t count, cudaMemcpyAttributes* attributes,
                                                           size_t* indices, size_t attribute_count, size_t* failed,
                                                           cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return MemcpyBatch12(destinations, sources, sizes, count, attributes, indices, attribute_count, failed, stream);
}

HAWSER_CUDART_EXPORT cudaError_t Memcpy3DBatch12(size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed,
                                                 unsigned long long flags, cudaStream_t stream)
    LABEL(cudaMemcpy3DBatchAsync);
cudaError_t Memcpy3DBatch12(size_t count, cudaMemcpy3DBatchOp* operations, size_t* failed, unsigned long long flags,
                            cudaStream_t stream) {
  const cudaError_t error = rt::Memcpy3DBatchAsync(count, operations, flags, stream);
  if (error != cudaSuccess && failed != nullptr) *failed = SIZE_MAX;
  return error;
}
HAWSER_CUDART_EXPORT cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, cudaMemcpy3DBatchOp* operations,
                                                             size_t* failed, unsigned long long flags,
                                                             cudaStream_t stream) {
  const rt::PerThreadScope scope;
  return Memcpy3DBatch12(count, operations, failed, flags, stream);
}

HAWSER_CUDART_EXPORT cudaError_t CaptureInfo12(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                               unsigned long long* id) LABEL(cudaStreamGetCaptureInfo);
cudaError_t CaptureInfo12(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return rt::StreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                               unsigned long long* id) {
  const rt::PerThreadScope scope;
  return CaptureInfo12(stream, status, id);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                             unsigned long long* id, cudaGraph_t* graph,
                                                             const cudaGraphNode_t** dependencies, size_t* count) {
  return rt::StreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo_v2_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                                  unsigned long long* id, cudaGraph_t* graph,
                                                                  const cudaGraphNode_t** dependencies, size_t* count) {
  const rt::PerThreadScope scope;
  return rt::StreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                             unsigned long long* id, cudaGraph_t* graph,
                                                             const cudaGraphNode_t** dependencies,
                                                             const cudaGraphEdgeData** edges, size_t* count) {
  return rt::StreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamGetCaptureInfo_v3_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                                  unsigned long long* id, cudaGraph_t* graph,
                                                                  const cudaGraphNode_t** dependencies,
                                                                  const cudaGraphEdgeData** edges, size_t* count) {
  const rt::PerThreadScope scope;
  return rt::StreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t UpdateDependencies12(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count,
                                                      unsigned flags) LABEL(cudaStreamUpdateCaptureDependencies);
cudaError_t UpdateDependencies12(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned flags) {
  return rt::StreamUpdateCaptureDependencies(stream, dependencies, nullptr, count, flags);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
                                                                          cudaGraphNode_t* dependencies, size_t count,
                                                                          unsigned flags) {
  const rt::PerThreadScope scope;
  return rt::StreamUpdateCaptureDependencies(stream, dependencies, nullptr, count, flags);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream,
                                                                        cudaGraphNode_t* dependencies,
                                                                        const cudaGraphEdgeData* edges, size_t count,
                                                                        unsigned flags) {
  return rt::StreamUpdateCaptureDependencies(stream, dependencies, edges, count, flags);
}
HAWSER_CUDART_EXPORT cudaError_t cudaStreamUpdateCaptureDependencies_v2_ptsz(cudaStream_t stream,
                                                                             cudaGraphNode_t* dependencies,
                                                                             const cudaGraphEdgeData* edges,
                                                                             size_t count, unsigned flags) {
  const rt::PerThreadScope scope;
  return rt::StreamUpdateCaptureDependencies(stream, dependencies, edges, count, flags);
}

HAWSER_CUDART_EXPORT cudaError_t AddDependencies12(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                   const cudaGraphNode_t* to, size_t count)
    LABEL(cudaGraphAddDependencies);
cudaError_t AddDependencies12(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
  return rt::GraphAddDependencies(graph, from, to, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                             const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                                             size_t count) {
  return rt::GraphAddDependencies(graph, from, to, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t RemoveDependencies12(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                      const cudaGraphNode_t* to, size_t count)
    LABEL(cudaGraphRemoveDependencies);
cudaError_t RemoveDependencies12(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                 size_t count) {
  return rt::GraphRemoveDependencies(graph, from, to, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                                const cudaGraphNode_t* to,
                                                                const cudaGraphEdgeData* edges, size_t count) {
  return rt::GraphRemoveDependencies(graph, from, to, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t GetEdges12(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                            size_t* count) LABEL(cudaGraphGetEdges);
cudaError_t GetEdges12(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  return rt::GraphGetEdges(graph, from, to, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                                      cudaGraphEdgeData* edges, size_t* count) {
  return rt::GraphGetEdges(graph, from, to, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t GetDependencies12(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count)
    LABEL(cudaGraphNodeGetDependencies);
cudaError_t GetDependencies12(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  return rt::GraphNodeGetDependencies(node, dependencies, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                                                 cudaGraphEdgeData* edges, size_t* count) {
  return rt::GraphNodeGetDependencies(node, dependencies, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t GetDependents12(cudaGraphNode_t node, cudaGraphNode_t* dependents, size_t* count)
    LABEL(cudaGraphNodeGetDependentNodes);
cudaError_t GetDependents12(cudaGraphNode_t node, cudaGraphNode_t* dependents, size_t* count) {
  return rt::GraphNodeGetDependentNodes(node, dependents, nullptr, count);
}
HAWSER_CUDART_EXPORT cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                                                   cudaGraphEdgeData* edges, size_t* count) {
  return rt::GraphNodeGetDependentNodes(node, dependents, edges, count);
}

HAWSER_CUDART_EXPORT cudaError_t AddNode12(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           cudaGraphNodeParams* parameters) LABEL(cudaGraphAddNode);
cudaError_t AddNode12(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                      cudaGraphNodeParams* parameters) {
  return rt::GraphAddNode(node, graph, dependencies, nullptr, count, parameters);
}
HAWSER_CUDART_EXPORT cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph,
                                                     const cudaGraphNode_t* dependencies,
                                                     const cudaGraphEdgeData* edges, size_t count,
                                                     cudaGraphNodeParams* parameters) {
  return rt::GraphAddNode(node, graph, dependencies, edges, count, parameters);
}

HAWSER_CUDART_EXPORT cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

// The names of the first runtimes.
HAWSER_CUDART_EXPORT cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
HAWSER_CUDART_EXPORT cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
HAWSER_CUDART_EXPORT cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}
HAWSER_CUDART_EXPORT cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) {
  return cudaDeviceGetLimit(value, limit);
}
HAWSER_CUDART_EXPORT cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) {
  return cudaDeviceGetCacheConfig(config);
}
HAWSER_CUDART_EXPORT cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
  return cudaDeviceSetCacheConfig(config);
}

// Every device computes with double precision: nothing to convert.
HAWSER_CUDART_EXPORT cudaError_t cudaSetDoubleForDevice(double* /*value*/) { return cudaSuccess; }
HAWSER_CUDART_EXPORT cudaError_t cudaSetDoubleForHost(double* /*value*/) { return cudaSuccess; }

HAWSER_CUDART_EXPORT cudaError_t cudaLaunchCooperativeKernelMultiDevice(void* /*launches*/, unsigned /*count*/,
                                                                        unsigned /*flags*/) {
  return rt::Record(rt::NotSupported("cudaLaunchCooperativeKernelMultiDevice"));
}
HAWSER_CUDART_EXPORT cudaError_t cudaSignalExternalSemaphoresAsync_v2() {
  return rt::Record(rt::NotSupported("cudaSignalExternalSemaphoresAsync"));
}
HAWSER_CUDART_EXPORT cudaError_t cudaSignalExternalSemaphoresAsync_v2_ptsz() {
  return cudaSignalExternalSemaphoresAsync_v2();
}
HAWSER_CUDART_EXPORT cudaError_t cudaWaitExternalSemaphoresAsync_v2() {
  return rt::Record(rt::NotSupported("cudaWaitExternalSemaphoresAsync"));
}
HAWSER_CUDART_EXPORT cudaError_t cudaWaitExternalSemaphoresAsync_v2_ptsz() {
  return cudaWaitExternalSemaphoresAsync_v2();
}

}  // extern "C"
