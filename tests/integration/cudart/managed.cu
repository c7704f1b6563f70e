// SPDX-License-Identifier: Apache-2.0
// Managed memory and managed variables: one address for host and device.
#include "check.h"

__managed__ int g_managed = 17;
__managed__ float g_managed_table[100];
__device__ int g_plain;

__global__ void Use(int* data, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] = 2 * data[i] + 1;
  if (threadIdx.x == 0) {
    g_managed += 100;
    g_managed_table[99] = 0.5f;
  }
}

int main() {
  EXPECT(g_managed == 17);
  g_managed = 20;
  constexpr int kCount = 5000;
  int* data = nullptr;
  OK(cudaMallocManaged(&data, kCount * sizeof(int)));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kCount; ++i) data[i] = i + round;
    Use<<<1, 128>>>(data, kCount);
    OK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < kCount; ++i) right &= data[i] == 2 * (i + round) + 1;
    EXPECT(right);
  }
  EXPECT(g_managed == 220);
  EXPECT(g_managed_table[99] == 0.5f && g_managed_table[98] == 0.0f);
  void* address = nullptr;
  OK(cudaGetSymbolAddress(&address, g_managed));
  EXPECT(address == &g_managed);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, &g_managed));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&attributes, data));
  EXPECT(attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == data);
  // Who may touch it when is no question here, but programs say it.
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachSingle));
  OK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachGlobal));
  OK(cudaStreamAttachMemAsync(stream, &g_managed, 0, cudaMemAttachHost));
  int* plain = nullptr;
  OK(cudaMalloc(&plain, 64));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, plain, 0, cudaMemAttachSingle));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, data, 0, 64));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaGetLastError());
  OK(cudaStreamSynchronize(stream));
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(plain));
  // Hints change nothing, but are remembered.
  cudaMemLocation here = {};
  here.type = cudaMemLocationTypeDevice;
  OK(cudaMemAdvise(data, kCount * sizeof(int), cudaMemAdviseSetReadMostly, here));
  OK(cudaMemAdvise(&g_managed, sizeof(g_managed), cudaMemAdviseSetPreferredLocation, here));
  OK(cudaMemPrefetchAsync(data, kCount * sizeof(int), here, 0, nullptr));
  int said = -77;
  OK(cudaMemRangeGetAttribute(&said, sizeof(said), cudaMemRangeAttributeReadMostly, data, kCount * sizeof(int)));
  EXPECT(said == 1);
  OK(cudaMemRangeGetAttribute(&said, sizeof(said), cudaMemRangeAttributePreferredLocation, &g_managed,
                              sizeof(g_managed)));
  EXPECT(said == 0);
  OK(cudaMemRangeGetAttribute(&said, sizeof(said), cudaMemRangeAttributeLastPrefetchLocation, data, sizeof(int)));
  EXPECT(said == 0);
  const int value = 5;
  OK(cudaMemcpyToSymbol(g_managed, &value, sizeof(value)));
  OK(cudaDeviceSynchronize());
  EXPECT(g_managed == 5);
  // Nothing runs after a copy, so the host may write again.
  OK(cudaMemcpyToSymbol(g_plain, &value, sizeof(value)));
  g_managed = 41;
  g_managed_table[3] = 2.0f;
  Use<<<1, 128>>>(data, kCount);
  OK(cudaDeviceSynchronize());
  EXPECT(g_managed == 141);
  EXPECT(g_managed_table[3] == 2.0f);
  OK(cudaFree(data));
  return Done();
}
