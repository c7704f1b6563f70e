// SPDX-License-Identifier: Apache-2.0
// Conditional nodes of graphs, set by device code (-rdc=true: the function that sets them is no header's).
#include "check.h"

__global__ void Choose(const int* data, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, static_cast<unsigned>(*data));
}

__global__ void CountDown(int* data, cudaGraphConditionalHandle handle) {
  if (--*data == 0) cudaGraphSetConditional(handle, 0);
}

__global__ void Add(int* data, int value) { *data += value; }

void Put(int* data, int value) { OK(cudaMemcpy(data, &value, sizeof(value), cudaMemcpyHostToDevice)); }

int Get(const int* data) {
  int value = -1;
  OK(cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost));
  return value;
}

template <typename... A>
cudaGraphNode_t AddKernel(cudaGraph_t graph, const cudaGraphNode_t* before, void* kernel, A... arguments) {
  void* pointers[] = {&arguments...};
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeKernel};
  parameters.kernel.func = kernel;
  parameters.kernel.gridDim = dim3(1);
  parameters.kernel.blockDim = dim3(1);
  parameters.kernel.kernelParams = pointers;
  cudaGraphNode_t node = nullptr;
  OK(cudaGraphAddNode(&node, graph, before, nullptr, before != nullptr ? 1 : 0, &parameters));
  return node;
}

/// Its bodies.
cudaGraph_t* AddConditional(cudaGraph_t graph, const cudaGraphNode_t* before, cudaGraphConditionalHandle handle,
                            cudaGraphConditionalNodeType type, unsigned size, cudaGraphNode_t* node) {
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = size;
  OK(cudaGraphAddNode(node, graph, before, nullptr, before != nullptr ? 1 : 0, &parameters));
  return parameters.conditional.phGraph_out;
}

void IfElse(int* data) {
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  OK(cudaGraphConditionalHandleCreate(&handle, graph));
  const cudaGraphNode_t choose = AddKernel(graph, nullptr, reinterpret_cast<void*>(Choose), data, handle);
  cudaGraphNode_t node;
  cudaGraph_t* const bodies = AddConditional(graph, &choose, handle, cudaGraphCondTypeIf, 2, &node);
  AddKernel(bodies[0], nullptr, reinterpret_cast<void*>(Add), data + 1, 1);
  AddKernel(bodies[1], nullptr, reinterpret_cast<void*>(Add), data + 1, 100);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(node, &type));
  EXPECT(type == cudaGraphNodeTypeConditional);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  Put(data + 1, 0);
  for (const int value : {0, 3, 0, 1}) {
    Put(data, value);
    OK(cudaGraphLaunch(exec, nullptr));
  }
  OK(cudaDeviceSynchronize());
  EXPECT(Get(data + 1) == 202);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

void CapturedLoop(int* data) {
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNode_t node;
  cudaGraph_t* const body = AddConditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1, &node);
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamBeginCaptureToGraph(stream, body[0], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  Add<<<1, 1, 0, stream>>>(data + 1, 2);
  CountDown<<<1, 1, 0, stream>>>(data, handle);
  OK(cudaStreamEndCapture(stream, nullptr));
  cudaGraph_t none = nullptr;
  EXPECT(cudaStreamEndCapture(stream, &none) == cudaErrorIllegalState);  // It captures no more.
  (void)cudaGetLastError();
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  for (const int rounds : {1, 25}) {
    Put(data, rounds);
    Put(data + 1, 0);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(Get(data) == 0);
    EXPECT(Get(data + 1) == 2 * rounds);
  }
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaStreamDestroy(stream));
}

int main() {
  int* data = nullptr;
  OK(cudaMalloc(&data, 2 * sizeof(int)));
  IfElse(data);
  CapturedLoop(data);
  OK(cudaFree(data));
  return Done();
}
