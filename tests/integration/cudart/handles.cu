// SPDX-License-Identifier: Apache-2.0
// Handles and memory that have ended: each use is refused with the manual's code, and nothing else breaks.
#include "check.h"

__global__ void Add(int* to, int value) { *to += value; }

void Streams() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamDestroy(stream));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaGetLastError());
  OK(cudaGetLastError());
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamQuery(stream));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
  int* data = nullptr;
  OK(cudaMalloc(&data, 4));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaMemsetAsync(data, 0, 4, stream));
  (void)cudaGetLastError();
  Add<<<1, 1, 0, stream>>>(data, 1);
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaGetLastError());
  OK(cudaFree(data));
}

void Events() {
  cudaEvent_t event;
  OK(cudaEventCreate(&event));
  OK(cudaEventDestroy(event));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaEventRecord(event));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(nullptr, event));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaEventSynchronize(event));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaEventQuery(event));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaEventDestroy(event));
}

void Memory() {
  int* data = nullptr;
  int* host = nullptr;
  OK(cudaMalloc(&data, 4));
  OK(cudaFree(data));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaFree(data));
  int value = 0;
  EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost));
  OK(cudaMallocHost(&host, 4));
  OK(cudaFreeHost(host));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaFreeHost(host));
  OK(cudaFree(nullptr));
}

void Graphs() {
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t node;
  cudaGraphNode_t other;
  OK(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphExecDestroy(exec));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphLaunch(exec, nullptr));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  size_t count = 0;
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&other, graph, nullptr, 0));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphDestroy(graph));
}

int main() {
  Streams();
  Events();
  Memory();
  Graphs();
  (void)cudaGetLastError();
  int* data = nullptr;
  int value = 1;
  OK(cudaMalloc(&data, 4));
  OK(cudaMemcpy(data, &value, 4, cudaMemcpyHostToDevice));
  Add<<<1, 1>>>(data, 2);
  OK(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost));
  EXPECT(value == 3);
  return Done();
}
