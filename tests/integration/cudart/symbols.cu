// SPDX-License-Identifier: Apache-2.0
// Device variables: plain, constant, static; copies, addresses and sizes. Managed ones are in managed.cu.
#include "check.h"

__device__ int g_counter = 5;
__device__ float g_table[8];
__constant__ int g_constant[4] = {1, 2, 3, 4};
static __device__ double g_static = 0.5;

__global__ void Use(int* out) {
  out[0] = ++g_counter;
  for (int i = 0; i < 4; ++i) out[1 + i] = g_constant[i];
  g_table[threadIdx.x] = 1.5f * threadIdx.x;
  g_static *= 2;
}

int main() {
  int* out = nullptr;
  OK(cudaMalloc(&out, 16 * sizeof(int)));
  const int constants[] = {10, 20, 30, 40};
  OK(cudaMemcpyToSymbol(g_constant, constants, sizeof(constants)));
  OK(cudaMemcpyToSymbol(g_constant, constants, sizeof(int), 3 * sizeof(int)));
  Use<<<1, 1>>>(out);
  OK(cudaDeviceSynchronize());
  int host[5];
  OK(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 6);
  EXPECT(host[1] == 10 && host[2] == 20 && host[3] == 30 && host[4] == 10);
  int counter = 0;
  OK(cudaMemcpyFromSymbol(&counter, g_counter, sizeof(counter)));
  EXPECT(counter == 6);
  double value = 0;
  OK(cudaMemcpyFromSymbol(&value, g_static, sizeof(value)));
  EXPECT(value == 1.0);
  size_t size = 0;
  void* address = nullptr;
  OK(cudaGetSymbolSize(&size, g_table));
  EXPECT(size == sizeof(g_table));
  OK(cudaGetSymbolAddress(&address, g_table));
  float table[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  OK(cudaMemcpy(table, address, sizeof(table), cudaMemcpyDeviceToHost));
  EXPECT(table[0] == 0.0f);
  EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(g_constant, constants, 20));
  int ordinary = 0;
  EXPECT_ERROR(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(ordinary, constants, 4));
  EXPECT_ERROR(cudaErrorInvalidSymbol, cudaGetLastError());
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, out));
  EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == out && attributes.device == 0);
  OK(cudaPointerGetAttributes(&attributes, &ordinary));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  OK(cudaFree(out));
  return Done();
}
