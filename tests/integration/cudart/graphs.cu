// SPDX-License-Identifier: Apache-2.0
// Graphs: captured from streams, made of explicit nodes, cloned, updated, looked into.
#include <vector>

#include "check.h"

__global__ void Add(int* data, int value) { data[threadIdx.x] += value; }

__device__ int g_variable;
int g_host_calls = 0;
void CUDART_CB CountCall(void*) { ++g_host_calls; }

constexpr int kCount = 32;
constexpr size_t kBytes = kCount * sizeof(int);

void Captured(int* data) {
  cudaStream_t stream;
  cudaStream_t side;
  cudaEvent_t fork;
  cudaEvent_t join;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamCreate(&side));
  OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  OK(cudaMemsetAsync(data, 0, kBytes, stream));
  OK(cudaEventRecord(fork, stream));
  OK(cudaStreamWaitEvent(side, fork, 0));
  Add<<<1, kCount / 2, 0, stream>>>(data, 3);
  Add<<<1, kCount / 2, 0, side>>>(data + kCount / 2, 4);
  OK(cudaEventRecord(join, side));
  OK(cudaStreamWaitEvent(stream, join, 0));
  Add<<<1, kCount, 0, stream>>>(data, 10);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 4);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int round = 0; round < 3; ++round) OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  int host[kCount];
  OK(cudaMemcpy(host, data, kBytes, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 13);
  EXPECT(host[kCount - 1] == 14);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaEventDestroy(fork));
  OK(cudaEventDestroy(join));
  OK(cudaStreamDestroy(stream));
  OK(cudaStreamDestroy(side));
}

void Explicit(int* data) {
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill = {};
  fill.dst = data;
  fill.value = 5;
  fill.elementSize = 4;
  fill.width = kCount;
  fill.height = 1;
  cudaGraphNode_t fill_node;
  OK(cudaGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &fill));
  int value = 2;
  void* arguments[] = {&data, &value};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(Add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(kCount);
  kernel.kernelParams = arguments;
  cudaGraphNode_t kernel_node;
  OK(cudaGraphAddKernelNode(&kernel_node, graph, &fill_node, 1, &kernel));
  int host[kCount] = {};
  cudaGraphNode_t copy_node;
  OK(cudaGraphAddMemcpyNode1D(&copy_node, graph, &kernel_node, 1, host, data, kBytes, cudaMemcpyDeviceToHost));
  cudaHostNodeParams call = {};
  call.fn = CountCall;
  cudaGraphNode_t host_node;
  OK(cudaGraphAddHostNode(&host_node, graph, &copy_node, 1, &call));
  int forty = 40;
  cudaGraphNode_t symbol_node;
  OK(cudaGraphAddMemcpyNodeToSymbol(&symbol_node, graph, nullptr, 0, g_variable, &forty, sizeof(forty), 0,
                                    cudaMemcpyHostToDevice));
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(kernel_node, &type));
  EXPECT(type == cudaGraphNodeTypeKernel);
  cudaKernelNodeParams seen = {};
  OK(cudaGraphKernelNodeGetParams(kernel_node, &seen));
  EXPECT(seen.func == kernel.func);
  EXPECT(seen.blockDim.x == kCount);

  cudaLaunchAttributeValue attribute = {};
  OK(cudaGraphKernelNodeGetAttribute(kernel_node, cudaLaunchAttributeCooperative, &attribute));
  EXPECT(attribute.cooperative == 0);
  attribute.cooperative = 1;
  OK(cudaGraphKernelNodeSetAttribute(kernel_node, cudaLaunchAttributeCooperative, &attribute));
  attribute = {};
  OK(cudaGraphKernelNodeGetAttribute(kernel_node, cudaLaunchAttributeCooperative, &attribute));
  EXPECT(attribute.cooperative == 1);
  OK(cudaGraphKernelNodeCopyAttributes(kernel_node, kernel_node));
  EXPECT_ERROR(cudaErrorInvalidValue,
               cudaGraphKernelNodeSetAttribute(fill_node, cudaLaunchAttributeCooperative, &attribute));

  cudaGraph_t clone;
  OK(cudaGraphClone(&clone, graph));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, clone, 0));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host[0] == 7 && host[kCount - 1] == 7);
  EXPECT(g_host_calls == 1);
  int variable = 0;
  OK(cudaMemcpyFromSymbol(&variable, g_variable, sizeof(variable)));
  EXPECT(variable == 40);

  cudaGraphNode_t cloned_kernel;
  OK(cudaGraphNodeFindInClone(&cloned_kernel, kernel_node, clone));
  value = 100;
  OK(cudaGraphExecKernelNodeSetParams(exec, cloned_kernel, &kernel));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host[3] == 105);

  // The original still has the old value, and an update brings it back.
  cudaGraphExecUpdateResultInfo info;
  value = 1;
  OK(cudaGraphKernelNodeSetParams(cloned_kernel, &kernel));
  OK(cudaGraphExecUpdate(exec, clone, &info));
  EXPECT(info.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host[3] == 6);
  size_t edges = 0;
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(edges == 3);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(clone));
  OK(cudaGraphDestroy(graph));
}

void Allocating() {
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams given = {};
  given.poolProps.allocType = cudaMemAllocationTypePinned;
  given.poolProps.location.type = cudaMemLocationTypeDevice;
  given.bytesize = kBytes;
  cudaGraphNode_t node;
  OK(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &given));
  cudaMemAllocNodeParams seen = {};
  OK(cudaGraphMemAllocNodeGetParams(node, &seen));
  EXPECT(seen.bytesize == kBytes);
  EXPECT(seen.dptr == given.dptr);
  OK(cudaGraphDestroy(graph));
}

int main() {
  int* data = nullptr;
  OK(cudaMalloc(&data, kBytes));
  Captured(data);
  Explicit(data);
  Allocating();
  OK(cudaFree(data));
  return Done();
}
