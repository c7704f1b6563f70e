// SPDX-License-Identifier: Apache-2.0
// Streams, events, callbacks, stream-ordered memory and pools.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

__global__ void Fill(int* data, int value, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = value + i;
}

std::atomic<int> g_called{0};
void CUDART_CB Note(void* data) { g_called += *static_cast<int*>(data); }
void CUDART_CB NoteStatus(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) g_called += *static_cast<int*>(data);
}

int main() {
  constexpr int kCount = 1000;
  int least = 0;
  int greatest = 0;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(greatest <= least);
  cudaStream_t a;
  cudaStream_t b;
  OK(cudaStreamCreate(&a));
  OK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, greatest));
  int priority = 99;
  unsigned flags = 99;
  OK(cudaStreamGetPriority(b, &priority));
  EXPECT(priority == greatest);
  OK(cudaStreamGetFlags(b, &flags));
  EXPECT(flags == cudaStreamNonBlocking);
  int device = -1;
  OK(cudaStreamGetDevice(a, &device));
  EXPECT(device == 0);

  int* data = nullptr;
  int* host = nullptr;
  OK(cudaMallocAsync(&data, kCount * sizeof(int), a));
  OK(cudaHostAlloc(&host, kCount * sizeof(int), cudaHostAllocDefault));
  cudaEvent_t filled;
  cudaEvent_t end;
  OK(cudaEventCreate(&filled));
  OK(cudaEventCreate(&end));
  int one = 1;
  int ten = 10;
  OK(cudaMemsetAsync(data, 0, kCount * sizeof(int), a));
  Fill<<<4, 256, 0, a>>>(data, 7, kCount);
  OK(cudaEventRecord(filled, a));
  OK(cudaStreamWaitEvent(b, filled, 0));
  OK(cudaMemcpyAsync(host, data, kCount * sizeof(int), cudaMemcpyDeviceToHost, b));
  OK(cudaLaunchHostFunc(b, Note, &one));
  OK(cudaStreamAddCallback(b, NoteStatus, &ten, 0));
  OK(cudaEventRecord(end, b));
  OK(cudaEventSynchronize(end));
  OK(cudaStreamSynchronize(b));
  EXPECT(g_called == 11);
  bool right = true;
  for (int i = 0; i < kCount; ++i) right &= host[i] == 7 + i;
  EXPECT(right);
  OK(cudaEventQuery(end));
  OK(cudaStreamQuery(a));
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, filled, end));
  EXPECT(milliseconds >= 0);
  OK(cudaFreeAsync(data, a));
  OK(cudaStreamSynchronize(a));

  cudaMemPool_t pool;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = 1 << 20;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  unsigned long long back = 0;
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &back));
  EXPECT(back == threshold);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t own;
  OK(cudaMemPoolCreate(&own, &properties));
  OK(cudaMallocFromPoolAsync(reinterpret_cast<void**>(&data), 4096, own, a));
  OK(cudaFreeAsync(data, a));
  OK(cudaStreamSynchronize(a));
  OK(cudaMemPoolTrimTo(own, 0));
  OK(cudaMemPoolDestroy(own));

  // Several threads, each with its own default stream.
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      int* mine = nullptr;
      int values[64];
      if (cudaMalloc(&mine, sizeof(values)) != cudaSuccess) ++wrong;
      for (int round = 0; round < 20; ++round) {
        Fill<<<1, 64, 0, cudaStreamPerThread>>>(mine, t * 1000 + round, 64);
        cudaMemcpyAsync(values, mine, sizeof(values), cudaMemcpyDeviceToHost, cudaStreamPerThread);
        if (cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess || values[63] != t * 1000 + round + 63) ++wrong;
      }
      cudaFree(mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT(wrong == 0);

  EXPECT_ERROR(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&a, 0x80));
  EXPECT_ERROR(cudaErrorInvalidValue, cudaEventCreateWithFlags(&end, 0x80));
  EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
  (void)cudaGetLastError();
  OK(cudaEventDestroy(filled));
  OK(cudaEventDestroy(end));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
  OK(cudaFreeHost(host));
  return Done();
}
